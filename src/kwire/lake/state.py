"""What a table has of its sources: the offsets of each partition, and the micro-batches of each query.

    Iceberg     the summary of a snapshot: kwire.offsets and kwire.batch of this commit, kwire.state of all commits
    Delta Lake  transaction identifiers (txn actions): a query with its micro-batch, a partition with its end offset

Both formats store this in the same commit as the rows, so a table never has one without the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kwire.errors import TableError
from kwire.identifiers import TopicPartition

__all__ = ["Change", "Mark", "Spans", "TableState", "merge_spans", "parse_spans", "render_spans"]

MAX_QUERIES = 200  # of a table's state; the oldest are forgotten

Spans = dict[TopicPartition, tuple[int, int]]
"""Offsets from the first (inclusive) to the last (exclusive), by partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Identifies a commit, which is made once.

    query: stable id of the query or application. batch: number, which increases. is_strict: an earlier batch than the
    table's last one is an error, since a checkpoint older than the table would lose rows; otherwise it is skipped.
    """

    query: str
    batch: int
    is_strict: bool = True

    def is_done(self, last: int | None, table: str) -> bool:
        """Return whether a commit was made. last: batch of this query in the table, of that name.

        Raises TableError for a checkpoint that is too old.
        """
        if last is None or last < self.batch:
            return False
        if last > self.batch and self.is_strict:
            raise TableError(
                f"batch {self.batch} precedes batch {last}, which this query has committed: the checkpoint is older "
                "than the table; restore a newer checkpoint, or start with a new one",
                table,
            )
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a commit does besides adding files.

    id: unique, to find the commit if its response is lost. spans: offsets of the rows. overwrite: remove all earlier
    rows. continues: fail if the table has some of these offsets already.
    """

    id: str
    mark: Mark | None = None
    spans: Spans = field(default_factory=dict)
    overwrite: bool = False
    continues: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """Offsets and micro-batches that a table has. batches: the last one by query, the most recent query last."""

    spans: Spans = field(default_factory=dict)
    batches: Mapping[str, int] = field(default_factory=dict)

    def after(self, change: Change) -> TableState:
        """Return the state after a commit."""
        batches = dict(self.batches)
        if change.mark is not None:
            batches.pop(change.mark.query, None)
            batches[change.mark.query] = change.mark.batch
        recent = list(batches.items())[-MAX_QUERIES:]
        earlier: Spans = {} if change.overwrite else self.spans
        return TableState(spans=merge_spans([earlier, change.spans]), batches=dict(recent))

    def render(self) -> str:
        """Return the state as JSON."""
        return json.dumps(
            {"offsets": json.loads(render_spans(self.spans)), "batches": dict(self.batches)}, separators=(",", ":")
        )

    @classmethod
    def parse(cls, text: str, table: str) -> TableState:
        """Parse render()'s JSON. Raises TableError."""
        try:
            found = json.loads(text)
            batches = {str(query): int(batch) for query, batch in found["batches"].items()}
            return cls(spans=parse_spans(json.dumps(found["offsets"]), table), batches=batches)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise TableError(f"kwire.state cannot be read: {text[:100]!r}", table) from None


def merge_spans(found: Iterable[Spans]) -> Spans:
    """Return the spans of all, from the first to the last offset of each partition."""
    merged: Spans = {}
    for spans in found:
        for key, (start, end) in spans.items():
            before = merged.get(key, (start, end))
            merged[key] = (min(before[0], start), max(before[1], end))
    return merged


def render_spans(spans: Spans) -> str:
    """Return spans as JSON: `{"orders":{"0":[0,1000]}}`."""
    by_topic: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), (start, end) in sorted(spans.items()):
        by_topic.setdefault(topic, {})[str(partition)] = [start, end]
    return json.dumps(by_topic, separators=(",", ":"))


def parse_spans(text: str, table: str) -> Spans:
    """Parse render_spans()'s JSON. Raises TableError."""
    try:
        return {
            (str(topic), int(partition)): (int(start), int(end))
            for topic, partitions in json.loads(text).items()
            for partition, (start, end) in partitions.items()
        }
    except (ValueError, TypeError, AttributeError):
        raise TableError(f"kwire.offsets cannot be read: {text[:100]!r}", table) from None
