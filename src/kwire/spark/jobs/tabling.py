"""table: the records of logs into an Iceberg or Delta table, from the offsets that the table has to the ends.

    driver    new offsets of each partition -> ranges -> steps of a bounded size
    tasks     a range as Arrow batches -> Parquet files, whose names return to the driver
    driver    a commit for each step: the files, and the offsets of their partitions

Rows do not pass through Spark's JVM. Nothing but the table says what is complete, so there is no journal: a job that
was killed loses the files of one step, which `kwire lake clean` deletes. See docs/tables.md.
"""

from __future__ import annotations

import base64
import logging
import pickle
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from kwire.errors import LogError, OptionError
from kwire.identifiers import TopicPartition
from kwire.lake.append import new_offsets
from kwire.lake.data_files import FilePlan, TaskFiles, WrittenFile, write_files
from kwire.lake.state import Change, Spans
from kwire.lake.table import LakeTable, Layout
from kwire.log.paths import StorageOptions, open_logs
from kwire.spark.jobs.choice import as_list, select_logs
from kwire.spark.jobs.journal import Row
from kwire.spark.jobs.result import JobResult, result_of
from kwire.spark.jobs.runner import Item, JobRun, Outcome, Progress, ProgressCallback, run_items
from kwire.spark.packing import RECORD_BYTES, SMALLEST_TASK_BYTES, TaskSizes

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from kwire.log.file_names import Ignored
    from kwire.log.readable_log import Isolation, ReadableLog
    from kwire.schemas import RegisteredSchema, Registry

__all__ = ["table"]

STEP_BYTES = 8 << 30  # of logs, in a commit
MERGED_STEP_BYTES = 256 << 20  # with merge_key, since the driver merges the rows of a commit in memory
VALUE = "value"
COLUMNS = {
    "topic": "string",
    "partition": "int",
    "start_offset": "bigint",
    "end_offset": "bigint",
    "rows": "bigint",
    "problem": "string",
}

logger = logging.getLogger("kwire.spark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Offsets [start, end) of a partition, for one task. log: None in a cluster, which tasks connect to."""

    key: TopicPartition
    start: int
    end: int
    size_bytes: int
    log: ReadableLog | None
    topic_id: uuid.UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDecoding:
    """Decodes the values of a topic. schema: which they are read as, the latest one when the job began."""

    registry: Registry
    schema: RegisteredSchema

    @classmethod
    def of(cls, registry: str | Registry, keys: Iterable[TopicPartition]) -> ValueDecoding:
        """Look up the schema of a topic's values. Raises OptionError for several topics, RegistryError."""
        from kwire.schemas import subject_name
        from kwire.schemas.columns import open_registry

        topics = sorted({topic for topic, _ in keys})
        if len(topics) != 1:
            found = ", ".join(topics)[:500] or "none"
            raise OptionError(f"registry: requires one topic, since its values are one column; topics: {found}")
        opened = open_registry(registry)
        return cls(registry=opened, schema=opened.latest(subject_name(topics[0])))

    def schema_of(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of decoded rows."""
        from kwire.schemas import schema_type

        return schema.set(schema.get_field_index(VALUE), pa_field(schema_type(self.registry, schema=self.schema)))

    def decode(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode the column `value`. Raises DecodeError with topic, partition, offset and schema id."""
        from kwire.schemas.columns import ColumnDecoder, Target

        decoder = ColumnDecoder(
            self.registry, Target(schema=self.schema, subject=None, message=None, key=False), mode="failfast"
        )
        for batch in batches:
            headers = batch.column("headers") if "headers" in batch.schema.names else None
            source = [batch.column(name) for name in ("topic", "partition", "offset")]
            values = decoder.decode(batch.column(VALUE), headers, source)
            yield batch.set_column(batch.schema.get_field_index(VALUE), pa_field(values.type), values)


def pa_field(kind: pa.DataType) -> pa.Field:
    """Return the field of decoded values."""
    import pyarrow as pa

    return pa.field(VALUE, kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRange:
    """Writes the files of one range. cluster: its URL; settings: of the client. decoding: of values, if any."""

    plan: FilePlan
    decoding: ValueDecoding | None
    columns: tuple[str, ...]
    isolation: Isolation
    cluster: str | None
    settings: Mapping[str, object] = field(repr=False)

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.log.arrow import read_pinned

        part: Range = item.subject
        with self._open(part) as (log, ignored):
            pinned = log.pin(part.start, part.end, self.isolation)
            if pinned.end_offset < part.end:
                raise LogError(
                    f"the log ends at offset {pinned.end_offset}; it had offset {part.end - 1} when the job began",
                    log.url,
                )
            batches = read_pinned(log, pinned, self.columns)
            written = write_files(batches if self.decoding is None else self.decoding.decode(batches), self.plan)
            notes = [each.reason for each in ignored if each.name == f"{log.topic}-{log.partition}"]
            if pinned.start_offset > part.start:
                notes.insert(0, _deleted(part.start, min(pinned.start_offset, part.end)))
        return {"files": base64.b64encode(pickle.dumps(written)).decode(), "notes": notes}

    @contextmanager
    def _open(self, part: Range) -> Iterator[tuple[ReadableLog, Sequence[Ignored]]]:
        """Return the log, and a list to which reading it adds what it skips."""
        if part.log is not None:
            yield part.log, ()
            return
        from kwire.client.cluster_logs import ClusterLogs

        assert self.cluster is not None
        logs = ClusterLogs(self.cluster, **self.settings)
        try:
            log = logs[part.key]
            if log.topic_id != part.topic_id:
                raise LogError("the topic was deleted and created again while the job ran", log.url)
            yield log, logs.ignored
        finally:
            logs.close()


@dataclass(slots=True, kw_only=True)
class Partition:
    """How far a partition is. ranges: what is left. failure: why it stopped. notes: what was not appended, and why."""

    start: int
    end: int
    done: int
    ranges: list[Range]
    rows: int = 0
    failure: str | None = None
    notes: list[str] = field(default_factory=list)


def table(
    spark: SparkSession,
    path: str | Sequence[str],
    target: str,
    *,
    catalog: Mapping[str, str] | None = None,
    table_storage: Mapping[str, str] | None = None,
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
    merge_key: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    isolation: Isolation = "read_committed",
    headers: bool = False,
    registry: str | Registry | None = None,
    settings: Mapping[str, object] | None = None,
    progress: ProgressCallback | None = None,
    storage: StorageOptions | None = None,
) -> JobResult:
    """Append the records of logs to a table, from the offsets that the table has to the end of each partition.

    path: log directories, partitions, globs or URLs, also tiered+URL; or kafka://host:port[,host:port][/topic]. target:
    an Iceberg table NAMESPACE.NAME, or the path or URL of a Delta table, which has a slash; created if it is missing.
    catalog: properties of an Iceberg catalog. table_storage: options of a Delta table's object store. topics: names and
    patterns (*, ?), all by default. merge_key: columns to replace rows by, as for a compacted topic. partition_by: of a
    new table. registry: a schema registry, its URL or a folder: values of the one topic become structs, read as its
    latest schema (see kwire.schemas). settings: of the client of a cluster, by Kafka's names. storage: of the logs'
    file system.
    The same call appends what is new since, and continues a job that was killed.
    Raises OptionError, LogError, TableError, RegistryError, BrokerError, ConnectionFailed; JobFailed when all other
    partitions are complete.
    """
    from kwire.lake import open_table
    from kwire.log.arrow import default_columns
    from kwire.log.readable_log import check_bounds
    from kwire.records.columns import COLUMNS as RECORD_COLUMNS

    started = time.monotonic()
    for name, given in (("merge_key", merge_key), ("partition_by", partition_by)):
        if isinstance(given, str):
            raise OptionError(f"{name}: expected a list of columns, got the string {given!r}")
    check_bounds(0, isolation)
    lake = open_table(target, catalog=catalog, storage=table_storage)
    with ExitStack() as stack:
        cluster, logs = _open_logs(as_list(path), dict(settings or {}), storage or {}, stack)
        chosen = select_logs(logs, topics, partitions)
        decoding = None if registry is None else ValueDecoding.of(registry, chosen)
        lake.refresh()
        found = _plan(lake, chosen, isolation, is_cluster=cluster is not None)
    job = TableJob(
        spark=spark,
        lake=lake,
        layout=Layout(partition_by=tuple(partition_by)),
        merge_key=tuple(merge_key),
        columns=tuple(RECORD_COLUMNS) if headers else default_columns(None),
        isolation=isolation,
        cluster=cluster,
        settings=dict(settings or {}),
        decoding=decoding,
    )
    resumed = sum(each.start == each.end for each in found.values())
    job.run(found, progress or (lambda state: logger.info("%s", state)))
    run = JobRun(outcomes=_outcomes(found), resumed=resumed, seconds=time.monotonic() - started)
    return result_of(spark, "table", run, COLUMNS, f"what was committed is in {target}; run the job again to continue")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJob:
    """Writes and commits ranges, step by step."""

    spark: SparkSession
    lake: LakeTable
    layout: Layout
    merge_key: tuple[str, ...]
    columns: tuple[str, ...]
    isolation: Isolation
    cluster: str | None
    settings: Mapping[str, object] = field(repr=False)
    decoding: ValueDecoding | None

    def run(self, found: Mapping[TopicPartition, Partition], progress: ProgressCallback) -> None:
        """Append all ranges. Raises TableError; what was committed before is noted in `found`."""
        total = [part for each in found.values() for part in each.ranges]
        while step := _next_step(found, MERGED_STEP_BYTES if self.merge_key else STEP_BYTES):
            self._append(step, found)
            left = [part for each in found.values() for part in each.ranges]
            total_bytes = sum(part.size_bytes for part in total)
            progress(
                Progress(
                    job="table",
                    done=len(total) - len(left),
                    total=len(total),
                    done_bytes=total_bytes - sum(part.size_bytes for part in left),
                    total_bytes=total_bytes,
                )
            )

    def _append(self, step: Sequence[Range], found: Mapping[TopicPartition, Partition]) -> None:
        """Write the files of a step in tasks and commit those before the first failure of each partition."""
        from kwire.log.arrow import schema_of

        self.lake.refresh()
        schema = schema_of(self.columns)
        if self.decoding is not None:
            schema = self.decoding.schema_of(schema)
        plan = self.lake.prepare(schema, self.layout, key=self.merge_key)
        work = WriteRange(
            plan=plan,
            columns=self.columns,
            isolation=self.isolation,
            cluster=self.cluster,
            settings=self.settings,
            decoding=self.decoding,
        )
        done = run_items(self.spark, "table", [_item(part) for part in step], work, progress=lambda _: None)
        files, useless, spans, rows = list[WrittenFile](), list[WrittenFile](), Spans(), dict[TopicPartition, int]()
        for each in done.outcomes:
            part: Range = each.item.subject
            partition = found[part.key]
            if each.row is None:
                partition.failure = partition.failure or each.problem
                continue
            written = cast(TaskFiles, pickle.loads(base64.b64decode(each.row["files"])))
            if partition.failure is not None:
                useless += written.files
                continue
            files += written.files
            partition.notes += each.row["notes"]
            rows[part.key] = rows.get(part.key, 0) + written.rows
            spans[part.key] = (spans.get(part.key, (part.start, 0))[0], part.end)
        self.lake.discard(useless, plan)
        if spans:
            change = Change(id=uuid.uuid4().hex, spans=spans, continues=True)
            self.lake.commit(files, change, plan, key=self.merge_key if files else ())
        for key, partition in found.items():
            if key in spans:
                partition.done = spans[key][1]
                partition.rows += rows[key]
            left = [part for part in partition.ranges if part.start >= partition.done]
            partition.ranges = [] if partition.failure is not None else left


def _open_logs(
    paths: Sequence[str], settings: Mapping[str, object], storage: StorageOptions, stack: ExitStack
) -> tuple[str | None, Mapping[TopicPartition, ReadableLog]]:
    """Return the URL of the cluster, if it is one, and the logs."""
    from kwire.client.address import is_cluster_url

    clusters = [path for path in paths if is_cluster_url(path)]
    if not clusters:
        if settings:
            raise OptionError("settings: configs of a client, which require the URL of a cluster, kafka://host:port")
        return None, cast("Mapping[TopicPartition, ReadableLog]", open_logs(paths, storage))
    if len(paths) > 1:
        raise OptionError(f"{clusters[0]}: a cluster is read alone; run a job for each path")
    from kwire.client.cluster_logs import ClusterLogs

    logs = ClusterLogs(clusters[0], **settings)
    stack.callback(logs.close)
    for each in logs.ignored:
        logger.warning("table: ignored %s: %s", each.name, each.reason)
    return clusters[0], cast("Mapping[TopicPartition, ReadableLog]", logs.partitions)


def _plan(
    lake: LakeTable, logs: Mapping[TopicPartition, ReadableLog], isolation: Isolation, *, is_cluster: bool
) -> dict[TopicPartition, Partition]:
    """Divide the new offsets of each log into ranges. Raises TableError for a log that ends before the table."""
    known = lake.end_offsets(logs)
    bounds = {key: new_offsets(lake, log, isolation) for key, log in logs.items()}
    densities = {key: _bytes_per_offset(log) for key, log in logs.items()}
    total = sum(int((end - start) * densities[key]) for key, (start, end) in bounds.items())
    limit = TaskSizes().task_bytes(total, len(logs), SMALLEST_TASK_BYTES)
    found = {}
    for key, log in logs.items():
        start, end = bounds[key]
        end = max(start, end)
        count = max(int(limit / densities[key]), 1)
        ranges = [
            Range(
                key=key,
                start=first,
                end=min(first + count, end),
                size_bytes=int((min(first + count, end) - first) * densities[key]),
                log=None if is_cluster else log,
                topic_id=log.topic_id if is_cluster else None,
            )
            for first in range(start, end, count)
        ]
        found[key] = Partition(start=start, end=end, done=start, ranges=ranges)
        if start > known.get(key, start):
            found[key].notes.append(_deleted(known[key], start))
    return found


def _deleted(start: int, end: int) -> str:
    return f"retention deleted offsets {start} to {end - 1} before they were appended"


def _bytes_per_offset(log: ReadableLog) -> float:
    count = log.log_end_offset - log.log_start_offset
    size = log.size_bytes
    return RECORD_BYTES if size is None or count <= 0 else max(size / count, 0.001)


def _next_step(found: Mapping[TopicPartition, Partition], max_bytes: int) -> list[Range]:
    """Return the next ranges of all partitions up to a size, in the order of each partition; at least one."""
    step, size = list[Range](), 0
    for turn in range(max((len(each.ranges) for each in found.values()), default=0)):
        for each in found.values():
            if turn >= len(each.ranges):
                continue
            if step and size + each.ranges[turn].size_bytes > max_bytes:
                return step
            step.append(each.ranges[turn])
            size += each.ranges[turn].size_bytes
    return step


def _item(part: Range) -> Item:
    return Item(name=f"{part.key[0]}-{part.key[1]} from {part.start}", size_bytes=part.size_bytes, subject=part)


def _outcomes(found: Mapping[TopicPartition, Partition]) -> tuple[Outcome, ...]:
    """Return the result of each partition."""
    return tuple(
        Outcome(
            item=Item(name=f"{key[0]}-{key[1]}", size_bytes=0, subject=key),
            row={
                "start_offset": each.start,
                "end_offset": each.done,
                "rows": each.rows,
                "problem": "; ".join(each.notes) or None,
            }
            if each.failure is None
            else None,
            problem=each.failure,
        )
        for key, each in found.items()
    )
