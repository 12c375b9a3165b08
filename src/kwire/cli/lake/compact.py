"""`kwire lake compact`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, if_interrupted
from kwire.cli.lake.options import CatalogProperties, StorageOptions, TableName, existing_table
from kwire.cli.options import FormatOption
from kwire.cli.rows import Column, Format, write_rows
from kwire.pages.quantities import bytes_text

if TYPE_CHECKING:
    from kwire.lake.compact import CompactedFiles

__all__ = ["compact"]

COMPACTED = (
    Column(key="partition", heading="PARTITION"),
    Column(key="rows", heading="ROWS", right=True),
    Column(key="files", heading="FILES", right=True),
    Column(key="size_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="files_after", heading="FILES AFTER", right=True),
    Column(key="size_bytes_after", heading="SIZE AFTER", show=bytes_text, right=True),
)


def compact(
    table: TableName,
    catalog: CatalogProperties = None,
    storage: StorageOptions = None,
    target: Annotated[
        float | None, typer.Option(min=0.001, metavar="MIB", help="Size of the new files; by default the table's.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Rewrite the files; otherwise they are only listed.")] = False,
    format: FormatOption = Format.TABLE,
) -> int:
    """Join small files within the partitions of a table, in its sort order, and commit them at once with --apply.

    Rows, offsets and micro-batches stay as they are. Other writers may append meanwhile; if one changes a file that is
    rewritten, nothing is committed. Exit code 1 if there are small files and they are not rewritten.
    """
    from kwire.lake.compact import compact_table

    terminal.show_warnings("kwire.lake")
    seen: list[CompactedFiles] = []

    def rows() -> Iterator[dict[str, object]]:
        for each in compact_table(
            lake_table, target_bytes=None if target is None else int(target * 2**20), dry_run=not apply
        ):
            seen.append(each)
            yield dataclasses.asdict(each)

    with existing_table(table, catalog, storage) as lake_table, if_interrupted("nothing was committed"):
        write_rows(rows(), COMPACTED, format, live=True)
    return FOUND if seen and not apply else FINE
