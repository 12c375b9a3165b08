"""Offsets of partitions as ranges, with the holes between them: what a table, a commit or a task has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise

from kwire.errors import TableError
from kwire.identifiers import TopicPartition

__all__ = [
    "Ranges",
    "Spans",
    "holes_of",
    "hull_of",
    "intersection",
    "joined",
    "overlap",
    "parse_spans",
    "render_spans",
    "subtract",
    "text_of",
    "union",
]

Ranges = tuple[tuple[int, int], ...]
"""Ranges [from, to) in ascending order, none empty, with a hole between each and the next."""

Spans = dict[TopicPartition, Ranges]
"""Ranges by partition, for partitions that have some."""


def union(*parts: Ranges) -> Ranges:
    """Return the offsets of all. Ranges that touch become one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(each for ranges in parts for each in ranges):
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)


def intersection(left: Ranges, right: Ranges) -> Ranges:
    """Return the offsets of both."""
    common = []
    first = 0
    for start, end in right:
        while first < len(left) and left[first][1] <= start:
            first += 1
        for begin, until in left[first:]:
            if begin >= end:
                break
            common.append((max(start, begin), min(end, until)))
    return tuple(common)


def subtract(left: Ranges, right: Ranges) -> Ranges:
    """Return the offsets of `left` that `right` does not have."""
    if not left:
        return ()
    low, high = left[0][0], left[-1][1]
    outside = ((low, low), *intersection(right, ((low, high),)), (high, high))
    return intersection(left, tuple((end, start) for (_, end), (start, _) in pairwise(outside) if end < start))


def holes_of(ranges: Ranges) -> Ranges:
    """Return the holes between ranges."""
    return tuple((end, start) for (_, end), (start, _) in pairwise(ranges))


def overlap(left: Spans, right: Spans) -> Spans:
    """Return the offsets of both."""
    found = {key: intersection(ranges, right.get(key, ())) for key, ranges in left.items()}
    return {key: ranges for key, ranges in found.items() if ranges}


def joined(left: Spans, right: Spans) -> Spans:
    """Return the offsets of either."""
    return {key: union(left.get(key, ()), right.get(key, ())) for key in {*left, *right}}


def hull_of(all_spans: Iterable[Spans]) -> Spans:
    """Return for each partition one range, from the first offset to the last."""
    hulls: Spans = {}
    for spans in all_spans:
        for key, ranges in spans.items():
            both = (*hulls.get(key, ()), *ranges)
            hulls[key] = ((min(start for start, _ in both), max(end for _, end in both)),)
    return hulls


def text_of(ranges: Ranges) -> str:
    """Return the offsets for people: `150 to 249, 300`."""
    return ", ".join(str(start) if end == start + 1 else f"{start} to {end - 1}" for start, end in ranges)


def render_spans(spans: Mapping[TopicPartition, Ranges]) -> str:
    """Return spans as JSON: `{"orders":{"0":[[0,300],[500,600]]}}`."""
    by_topic: dict[str, dict[str, Ranges]] = {}
    for (topic, partition), ranges in sorted(spans.items()):
        by_topic.setdefault(topic, {})[str(partition)] = ranges
    return json.dumps(by_topic, separators=(",", ":"))


def parse_spans(text: str, table: str) -> Spans:
    """Parse render_spans()'s JSON. Raises TableError."""
    try:
        return {
            (str(topic), int(partition)): union(tuple((int(start), int(end)) for start, end in ranges))
            for topic, partitions in json.loads(text).items()
            for partition, ranges in partitions.items()
        }
    except (ValueError, TypeError, AttributeError):
        raise TableError(f"kwire.offsets cannot be read: {text[:100]!r}", table) from None
