"""How far streaming queries are behind the newest offsets, from the progress that Spark reports of them.

    kwire.spark.lag(query)        a dict for each topic, with the names of the metrics of Spark's Kafka connector
    LagListener                   logs the same with each progress report, and can commit positions to a consumer group

Spark gives Python sources no place for metrics of their own, but reports the offsets that they had read and those that
they saw last. Works for kafka-live, kafka-log and Spark's own Kafka source.
Source: KafkaMicroBatchStream.metrics.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Protocol

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
from kwire.spark.streaming.position import Offsets, Position

__all__ = ["Lag", "LagListener", "lag", "lag_of_progress"]

Lag = dict[str, dict[str, float]]

MINIMUM, AVERAGE, MAXIMUM = "minOffsetsBehindLatest", "avgOffsetsBehindLatest", "maxOffsetsBehindLatest"

logger = logging.getLogger("kwire.spark")


class Query(Protocol):
    """A StreamingQuery, of Spark or of Spark Connect."""

    @property
    def lastProgress(self) -> Mapping[str, Any] | None:  # noqa: N802 (Spark's name)
        """The last report."""


def lag(query: Query) -> Lag:
    """Offsets that a query is behind, by topic, as its last progress report shows it; {} before the first one.

    Values: the least, the mean and the most of all partitions, under the names minOffsetsBehindLatest,
    avgOffsetsBehindLatest and maxOffsetsBehindLatest. Spark 4.1 reports no newest offsets: {} there.
    """
    progress = query.lastProgress
    return {} if progress is None else lag_of_progress(progress)


def lag_of_progress(progress: Mapping[str, Any]) -> Lag:
    """The same from one StreamingQueryProgress, or its JSON as a dict."""
    behind: dict[str, list[int]] = {}
    for source in progress["sources"]:
        latest, read = parse_offsets(source.get("latestOffset")), parse_offsets(source.get("endOffset"))
        begun = parse_offsets(source.get("startOffset"))
        for key, offset in latest.items():
            position = read.get(key, begun.get(key))
            if position is not None:
                behind.setdefault(key[0], []).append(max(0, offset - position))
    return {
        topic: {MINIMUM: min(each), AVERAGE: sum(each) / len(each), MAXIMUM: max(each)}
        for topic, each in sorted(behind.items())
    }


def parse_offsets(text: object) -> Offsets:
    """The offsets in a progress report; {} for a source whose offsets are not those of partitions."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
        return Position.parse(found).offsets if isinstance(found, dict) else {}
    except (AttributeError, KwireError, TypeError, ValueError):
        return {}


class LagListener(StreamingQueryListener):
    """Logs the lag of streaming queries at level INFO, logger kwire.spark; `spark.streams.addListener(LagListener())`.

    query: name or id of the only query to follow; None for all. group: a consumer group that receives the query's
    positions after each micro-batch, so that tools that watch groups show it; needs query, and settings of the client
    by Kafka's names. The group must have no members. What is committed is never read: Spark's checkpoint decides.
    Raises OptionError for settings.
    """

    def __init__(self, *, query: str | None = None, group: str | None = None, **settings: Any) -> None:
        if group is None and settings:
            raise OptionError(f"LagListener: '{next(iter(settings))}' has no effect without group")
        if group is not None:
            if query is None:
                raise OptionError(
                    "LagListener: group needs query, since queries would overwrite each other's positions"
                )
            ClientSettings.parse(settings)
        self.query, self.group, self.settings = query, group, settings
        self._committed: Offsets = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 (Spark's name)
        """Nothing has been read yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """A micro-batch has ended: log the lag, and commit the positions where a group is given."""
        progress: Mapping[str, Any] = event.progress
        if self.query is not None and self.query not in (progress["name"], str(progress["id"])):
            return
        name = progress["name"] or progress["id"]
        for topic, found in lag_of_progress(progress).items():
            logger.info(
                "query %s is behind on topic %s by %d to %d offsets a partition, %.1f on average",
                name,
                topic,
                found[MINIMUM],
                found[MAXIMUM],
                found[AVERAGE],
            )
        if self.group is not None:
            self._commit(self.group, progress)

    def _commit(self, group: str, progress: Mapping[str, Any]) -> None:
        position: dict[TopicPartition, int] = {}
        for source in progress["sources"]:
            position |= parse_offsets(source.get("endOffset"))
        if not position or position == self._committed:
            return
        try:
            with Client(**self.settings) as client:
                commit_offsets(client, group, position)
            self._committed = position
        except KwireError as error:  # the query goes on, and so do its checkpoints
            logger.warning("positions of query %s are not committed to group %s: %s", progress["id"], group, error)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing new."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """The query has ended."""
