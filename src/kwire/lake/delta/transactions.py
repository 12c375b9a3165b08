"""Names and versions of the transaction identifiers of a Delta table, which have its offsets; see DeltaLakeTable."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kwire.identifiers import TopicPartition
from kwire.lake.offset_ranges import Ranges, Spans, union
from kwire.lake.state import TableState

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = [
    "MERGE_KEY",
    "app_id_of",
    "bounds_of",
    "inner_bounds",
    "merge_mark",
    "partition_of",
    "ranges_of",
    "state_spans",
    "stored_spans",
]

MERGE_KEY = "kwire/merge-key/"
ROWS_ONLY = ":"  # before a topic


def app_id_of(key: TopicPartition, bound: int | None = None) -> str:
    """Return the name of a partition's end, or of another of its bounds."""
    return f"kwire/{key[0]}/{key[1]}" + ("" if bound is None else f"/{bound}")


def bounds_of(table: DeltaTable, key: TopicPartition) -> list[int]:
    """Return the bounds that the transactions of a partition have, besides its end."""
    bounds = list[int]()
    while (bound := table.transaction_version(app_id_of(key, len(bounds)))) is not None:
        bounds.append(bound)
    return bounds


def partition_of(app_id: str) -> TopicPartition | None:
    """Return the partition of app_id_of(), None for the id of a query."""
    match = re.fullmatch(r"kwire/([^/]+)/(\d{1,9})(?:/\d{1,9})?", app_id)
    return None if match is None else (match[1], int(match[2]))


def stored_spans(state: TableState) -> Spans:
    """Return the offsets as transactions have them: those of rows only with a name that no topic has."""
    return state.spans | {
        (f"{ROWS_ONLY}{topic}", partition): ranges for (topic, partition), ranges in state.rows_only.items()
    }


def state_spans(stored: Spans) -> tuple[Spans, Spans]:
    """Return the spans and rows_only of a state that stored_spans() has joined."""
    rows_only = {
        (topic.removeprefix(ROWS_ONLY), partition): ranges
        for (topic, partition), ranges in stored.items()
        if topic.startswith(ROWS_ONLY)
    }
    return {key: ranges for key, ranges in stored.items() if not key[0].startswith(ROWS_ONLY)}, rows_only


def merge_mark(state: TableState) -> str | None:
    """Return the name of the transaction that says how rows are merged."""
    if state.merge_key is None:
        return None
    order = [{"orderBy": state.order_by}] if state.order_by else []
    return MERGE_KEY + json.dumps([*state.merge_key, *order])


def inner_bounds(ranges: Ranges) -> list[int]:
    """Return start, end, start, ... without the last end; [] for offsets from 0 without a hole."""
    bounds = [bound for each in ranges for bound in each][:-1]
    return [] if bounds == [0] else bounds


def ranges_of(bounds: Sequence[int]) -> Ranges:
    """Return the ranges of start, end, start, ..., end."""
    return union(tuple(zip(bounds[::2], bounds[1::2], strict=True)))
