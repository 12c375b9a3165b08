"""The data source `kafka-live`: topics of a running cluster, without a JAR, in batch and streaming queries.

The option names, columns and offset semantics are those of Spark's own Kafka source, so a query that has a checkpoint
reads every record once, whatever is killed meanwhile. Planning imports neither numba nor pyarrow. docs/live.md.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from kwire.spark.columns import choose_columns, columns_of_schema, render_ddl
from kwire.spark.live_options import LiveOptions, parse_options
from kwire.spark.offsets import OffsetRange, offsets_per_task
from kwire.spark.stream import Offsets, has_enough, next_ranges, parse_offsets, rate_limit, render_offsets

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1: no read limits, no Trigger.AvailableNow for Python sources
    ReadLimit = ReadAllAvailable = None  # type: ignore[assignment, misc]

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in where Spark has no such interface."""


if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kwire.spark.live_cluster import LiveCluster

__all__ = ["KafkaLiveSource", "LivePartition", "LiveReader", "LiveStreamReader"]

logger = logging.getLogger("kwire.spark")


class LivePartition(InputPartition):
    """What one Spark task reads: some offsets of one partition."""

    def __init__(self, wanted: OffsetRange) -> None:
        self.wanted = wanted


def split_ranges(ranges: Sequence[OffsetRange], options: LiveOptions) -> list[LivePartition]:
    """The tasks for some ranges: minPartitions and maxRecordsPerPartition cut them up."""
    limits = offsets_per_task(ranges, None, options.max_records)
    if options.min_partitions is not None and len(ranges) < options.min_partitions:
        limits = offsets_per_task(ranges, options.min_partitions, options.max_records)
    return [
        LivePartition(OffsetRange(found.topic, found.partition, start, min(found.end, start + (limit or found.size))))
        for found, limit in zip(ranges, limits, strict=True)
        for start in range(found.start, found.end, limit or max(1, found.size))
    ]


def read_partition(
    partition: InputPartition, columns: tuple[str, ...], options: LiveOptions
) -> Iterator[pa.RecordBatch]:
    """The rows of one task; called in a worker."""
    if not isinstance(partition, LivePartition):
        return iter(())  # Spark's stand-in where there is nothing to read
    from kwire.spark.live_reading import read_range

    return read_range(
        partition.wanted, columns, options.kafka, options.isolation, fail_on_data_loss=options.fail_on_data_loss
    )


class LiveReader(DataSourceReader):
    """Plans and reads one batch query."""

    def __init__(self, options: LiveOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns

    def partitions(self) -> list[LivePartition]:
        """The tasks of the query. Raises OptionError, LogError, BrokerError, ConnectionFailed."""
        from kwire.spark.live_cluster import LiveCluster

        if self.options.limits.max_offsets is not None:
            logger.warning("maxOffsetsPerTrigger option ignored in batch queries")
        cluster = LiveCluster(self.options)
        try:
            return split_ranges([found for found in cluster.start() if found.size], self.options)
        finally:
            cluster.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task as Arrow batches. Raises as read_range does."""
        return read_partition(partition, self.columns, self.options)


class LiveStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans and reads the micro-batches of one streaming query.

    Spark keeps one such object for a running query and asks it from one thread; workers get copies for read().
    """

    def __init__(self, options: LiveOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns
        self._cluster: LiveCluster | None = None
        self._target: Offsets | None = None  # of Trigger.AvailableNow
        self._seen: Offsets = {}
        self._last_batch = time.monotonic()

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options, "columns": self.columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def cluster(self) -> LiveCluster:
        """The connections of the driver's side."""
        if self._cluster is None:
            from kwire.spark.live_cluster import LiveCluster

            self._cluster = LiveCluster(self.options)
        return self._cluster

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """Where a query without a checkpoint starts."""
        return render_offsets({(each.topic, each.partition): each.start for each in self.cluster.start()})

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """maxOffsetsPerTrigger or minOffsetsPerTrigger, so that Spark knows that there is one."""
        from pyspark.sql.streaming.datasource import ReadMaxRows, ReadMinRows

        limits = self.options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        return ReadAllAvailable() if limits.min_offsets is None else ReadMinRows(limits.min_offsets)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read up to what is there now, however long that takes."""
        self._target = self.cluster.latest(self.cluster.partitions())

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """The end of the next micro-batch. start: of the last one's end; Spark 4.1 gives none and knows no limits."""
        cluster = self.cluster
        latest = self._target if self._target is not None else cluster.latest(cluster.partitions())
        self._seen = latest
        if start is None:
            return render_offsets(latest)
        begun = parse_offsets(start)
        if begun.keys() - latest.keys():
            return render_offsets(self._without_lost(begun, latest))
        new = [key for key in latest if key not in begun]
        known = {**(cluster.earliest(new) if new else {}), **begun}
        known = {key: offset for key, offset in known.items() if key in latest}
        limits = self.options.limits
        if isinstance(limit, ReadAllAvailable) and self._target is None:
            return render_offsets(latest)
        waited_ms = int((time.monotonic() - self._last_batch) * 1000)
        if self._target is None and not has_enough(limits, known, latest, waited_ms):
            return start
        self._last_batch = time.monotonic()
        if limits.max_offsets is not None:
            latest = rate_limit(limits.max_offsets, known, latest)
        return render_offsets(latest)

    def _without_lost(self, begun: Offsets, latest: Offsets) -> Offsets:
        """With partitions gone, everything else is read to its end: next_ranges says what is lost."""
        if self._target is not None:  # Trigger.AvailableNow has to come to an end that start reaches
            return {**{key: offset for key, offset in begun.items() if key not in latest}, **latest}
        return latest

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """What the progress of the query shows as the newest offsets."""
        return render_offsets(self._seen) if self._seen else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[LivePartition]:
        """The tasks of one micro-batch; the same for the same offsets. Raises LogError for data that is gone."""
        ranges = next_ranges(
            parse_offsets(start),
            parse_offsets(end),
            self.cluster.earliest,
            fail_on_data_loss=self.options.fail_on_data_loss,
            report=lambda lost: logger.warning("%s", lost),
        )
        return split_ranges(ranges, self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task as Arrow batches. Raises as read_range does."""
        return read_partition(partition, self.columns, self.options)

    def stop(self) -> None:
        """The query has ended."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None


class KafkaLiveSource(DataSource):
    """`spark.read.format("kafka-live")` and `spark.readStream.format("kafka-live")`; docs/live.md."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "kafka-live"

    def schema(self) -> str:
        """The columns that the options choose, as DDL. Raises OptionError."""
        return render_ddl(choose_columns(parse_options(self.options, "any")))

    def reader(self, schema: StructType) -> LiveReader:
        """A reader for a batch query. Raises OptionError."""
        options = parse_options(self.options, "batch")
        return LiveReader(options, columns_of_schema(schema, options))

    def streamReader(self, schema: StructType) -> LiveStreamReader:  # noqa: N802
        """A reader for a streaming query. Raises OptionError."""
        options = parse_options(self.options, "stream")
        return LiveStreamReader(options, columns_of_schema(schema, options))
