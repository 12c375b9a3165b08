"""The lag of streaming queries, from their progress reports.

    kwire.spark.lag(query)        a dict per topic, with the names of the metrics of Spark's Kafka connector
    LagListener                   logs the lag after each micro-batch, and can commit offsets to a consumer group

Python sources cannot add metrics to a progress report, but the report has their end offsets and latest offsets. Works
for kafka-live, kafka-log and Spark's own Kafka source.
Source: KafkaMicroBatchStream.metrics.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Protocol, cast

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from kwire.client import Client, ClientSettings
from kwire.client.group_offsets import commit_offsets
from kwire.errors import KwireError, OptionError
from kwire.identifiers import TopicPartition
from kwire.lake.metrics import write_gauges
from kwire.spark.streaming.position import Offsets, Position

__all__ = ["Lag", "LagListener", "lag", "lag_of_progress"]

Lag = dict[str, dict[str, float]]
Progress = Mapping[str, Any]
"""A StreamingQueryProgress, or its JSON as a dict."""

MINIMUM, AVERAGE, MAXIMUM = "minOffsetsBehindLatest", "avgOffsetsBehindLatest", "maxOffsetsBehindLatest"

logger = logging.getLogger("kwire.spark")


class Query(Protocol):
    """A StreamingQuery, of Spark or of Spark Connect."""

    @property
    def lastProgress(self) -> Progress | None:  # noqa: N802 (Spark's name)
        """The last progress report."""


def lag(query: Query) -> Lag:
    """Return the lag of a query by topic, from its last progress report; {} before the first report.

    Values: minimum, average and maximum over partitions, as minOffsetsBehindLatest, avgOffsetsBehindLatest and
    maxOffsetsBehindLatest. Always {} in Spark 4.1, which does not report latest offsets.
    """
    progress = query.lastProgress
    return {} if progress is None else lag_of_progress(progress)


def lag_of_progress(progress: Progress) -> Lag:
    """Return the lag from a StreamingQueryProgress, or its JSON as a dict."""
    behind: dict[str, list[int]] = {}
    for (topic, _), count in offsets_behind(progress).items():
        behind.setdefault(topic, []).append(count)
    return {
        topic: {MINIMUM: min(each), AVERAGE: sum(each) / len(each), MAXIMUM: max(each)}
        for topic, each in sorted(behind.items())
    }


def offsets_behind(progress: Progress) -> dict[TopicPartition, int]:
    """Return how many offsets of each partition a query has not read yet."""
    behind: dict[TopicPartition, int] = {}
    for source in progress["sources"]:
        latest, read = parse_offsets(source.get("latestOffset")), parse_offsets(source.get("endOffset"))
        start = parse_offsets(source.get("startOffset"))
        for key, offset in latest.items():
            position = read.get(key, start.get(key))
            if position is not None:
                behind[key] = max(0, offset - position)
    return behind


def parse_offsets(text: object) -> Offsets:
    """Parse the offsets in a progress report; {} for a source without partitions."""
    try:
        parsed = json.loads(text) if isinstance(text, str) else text
        return Position.parse(parsed).offsets if isinstance(parsed, dict) else {}
    except (AttributeError, KwireError, TypeError, ValueError):
        return {}


class LagListener(StreamingQueryListener):
    """Logs the lag of streaming queries to the logger kwire.spark, at level INFO.

    Register it with `spark.streams.addListener(LagListener())`.

    query: name or id of a single query; None for all. group: a consumer group to which the query's offsets are
    committed after each micro-batch, so that other tools can show its lag. Requires query, and client configurations as
    keyword arguments. The group must not have members. Queries never read these offsets; they use the checkpoint.
    metrics_file: a file for the lag of each partition in Prometheus' text format, for this listener only.
    Raises OptionError.
    """

    def __init__(
        self,
        *,
        query: str | None = None,
        group: str | None = None,
        metrics_file: str | None = None,
        **settings: object,
    ) -> None:
        if group is None and settings:
            raise OptionError(f"LagListener: '{next(iter(settings))}' requires group")
        if group is not None:
            if query is None:
                raise OptionError(
                    "LagListener: group requires query, because queries would overwrite each other's offsets"
                )
            ClientSettings.parse(settings)
        self.query, self.group, self.settings = query, group, settings
        self.metrics_file = metrics_file
        self._committed: Offsets = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 (Spark's name)
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Log the lag, and commit the offsets to the group."""
        progress: Progress = event.progress
        if self.query is not None and self.query not in (progress["name"], str(progress["id"])):
            return
        name = progress["name"] or progress["id"]
        for topic, lags in lag_of_progress(progress).items():
            logger.info(
                "query %s is behind on topic %s by %d to %d offsets per partition, %.1f on average",
                name,
                topic,
                lags[MINIMUM],
                lags[MAXIMUM],
                lags[AVERAGE],
            )
        if self.metrics_file is not None:
            write_gauges(self.metrics_file, str(name), offsets_behind(progress))
        if self.group is not None:
            self._commit(self.group, progress)

    def _commit(self, group: str, progress: Progress) -> None:
        position: dict[TopicPartition, int] = {}
        for source in progress["sources"]:
            position |= parse_offsets(source.get("endOffset"))
        if not position or position == self._committed:
            return
        try:
            with Client(**cast("dict[str, str]", self.settings)) as client:
                commit_offsets(client, group, position)
            self._committed = position
        except KwireError as error:  # the group is for display only
            logger.warning("offsets of query %s are not committed to group %s: %s", progress["id"], group, error)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing."""
