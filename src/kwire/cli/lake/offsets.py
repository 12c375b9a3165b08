"""`kwire lake offsets`."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.lake.options import CatalogProperties, StorageOptions, TableName, existing_table
from kwire.cli.rows import TOPIC, Column, Format, write_rows

__all__ = ["offsets"]

OFFSETS = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="start_offset", heading="FROM", right=True),
    Column(key="end_offset", heading="TO", right=True),
)


class OffsetsFormat(enum.StrEnum):
    """Values of --format of `offsets`."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    SPARK = "spark"


def offsets(
    table: TableName,
    catalog: CatalogProperties = None,
    storage: StorageOptions = None,
    format: Annotated[
        OffsetsFormat,
        typer.Option("--format", help="Output format; spark is the option startingOffsets of a new query."),
    ] = OffsetsFormat.TABLE,
) -> int:
    """Print which offsets of each partition a table has (TO is exclusive). A partition with a hole has several rows.

    Offsets are those that kwire has stored with its commits. Exit code 1 if the table has none, or has a hole.
    """
    from kwire.lake.offset_ranges import subtract, text_of
    from kwire.lake.state import WRITE_AGAIN

    with existing_table(table, catalog, storage) as lake_table:
        state = lake_table.state()
    if format is OffsetsFormat.SPARK:
        typer.echo(state.starting_offsets())
    else:
        rows = (
            {"topic": topic, "partition": partition, "start_offset": start, "end_offset": end}
            for (topic, partition), ranges in sorted(state.spans.items())
            for start, end in ranges
        )
        write_rows(rows, OFFSETS, Format(format.value))
    if not state.spans:
        terminal.warn(
            f"table {lake_table.name}: no offsets; they are stored with rows that have topic, partition, offset"
        )
    for (topic, partition), holes in sorted(state.holes.items()):
        is_without_rows = bool(subtract(holes, state.rows_only.get((topic, partition), ())))
        remedy = WRITE_AGAIN if state.merge_key and is_without_rows else "append them with kwire lake append --fill"
        terminal.warn(f"{topic}-{partition}: the table lacks offsets {text_of(holes)}; {remedy}")
    return FOUND if state.holes or not state.spans else FINE
