"""Option startFrom of copy_stream, and starting_offsets: a new query begins at the offsets that its table has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kwire.errors import OptionError, TableError
from kwire.identifiers import TopicPartition, render_uuid
from kwire.lake.offset_ranges import text_of
from kwire.lake.state import TableState
from kwire.lake.table import LakeTable, check_topic_ids

if TYPE_CHECKING:
    from kwire.spark.live.source import LiveStreamReader
    from kwire.spark.log.stream import LogStreamReader
    from kwire.spark.offsets import Bounds

__all__ = ["START_FROM", "TABLE", "offsets_of_table", "without_start_from"]

START_FROM, TABLE = "startfrom", "table"
OTHERS = ("startingoffsets", "startingoffsetsbytimestamp", "startingtimestamp")
EARLIEST = -2


def without_start_from(options: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """Return the options of a source without startFrom, and whether it was there. Raises OptionError."""
    names = {name.lower(): name for name in options}
    if START_FROM not in names:
        return dict(options), False
    value = options[names[START_FROM]]
    if value.strip().lower() != TABLE:
        raise OptionError(f"Option 'startFrom': expected 'table', got '{value}'")
    for other in OTHERS:
        if other in names:
            raise OptionError(f"Options 'startFrom' and '{names[other]}' exclude each other; remove one of them")
    return {name: options[name] for name in options if name != names[START_FROM]}, True


def offsets_of_table(table: LakeTable, reader: LiveStreamReader | LogStreamReader) -> str:
    """Return startingOffsets for a query: the table's ends, and the earliest offsets of partitions that it lacks.

    Raises TableError if the table has a hole, offsets that the source does not have, or those of another topic; the
    errors of the source.
    """
    source = reader.open_offset_source()
    try:
        bounds: Mapping[TopicPartition, Bounds] = source.bounds()
        topics = {topic for topic, _ in bounds}
        topic_ids = {topic: render_uuid(each) for topic, each in source.topic_ids(topics).items()}
    finally:
        source.close()
    with table:
        table.refresh()
        state = table.state()
        if table.exists and not state.spans and not state.rows_only and table.live_files():
            raise TableError("it has rows and no offsets of kwire, so a query cannot start from them", table.name)
    check_topic_ids(state, topic_ids, table.name)
    known = {topic for topic, _ in (*state.spans, *state.rows_only)}
    if known and not known & topics:
        raise TableError(
            f"it has offsets of {', '.join(sorted(known))}, and the query reads {', '.join(sorted(topics))}: another "
            "topic; write to another table",
            table.name,
        )
    found: dict[str, dict[str, int]] = {}
    for key, each in sorted(bounds.items()):
        found.setdefault(key[0], {})[str(key[1])] = _start(state, key, each, table.name)
    return json.dumps(found, separators=(",", ":"))


def _start(state: TableState, key: TopicPartition, bounds: Bounds, table: str) -> int:
    """Return where a partition begins. Raises TableError."""
    if key not in state.spans:
        return EARLIEST
    if key in state.holes:
        raise TableError(
            f"it lacks offsets {text_of(state.holes[key])} of {key[0]}-{key[1]}, which a query that starts at its end "
            "would not read; append them with 'kwire lake append --fill'",
            table,
        )
    end = state.spans[key][-1][1]
    if end > bounds.latest:
        raise TableError(
            f"it has offsets of {key[0]}-{key[1]} to {end - 1}, and the source ends at {bounds.latest}: another "
            "topic or cluster; write to another table",
            table,
        )
    if end < bounds.earliest:
        raise TableError(
            f"it ends before offset {end} of {key[0]}-{key[1]}, and the source begins at {bounds.earliest}: retention "
            "deleted the offsets between; start with startingOffsets to leave a hole",
            table,
        )
    return end
