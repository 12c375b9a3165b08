"""`kwire lake clean`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from kwire.cli.command import FINE, FOUND
from kwire.cli.lake.options import CatalogProperties, StorageOptions, TableName, existing_table
from kwire.cli.options import FormatOption
from kwire.cli.rows import Column, Format, write_rows
from kwire.pages.quantities import bytes_text

__all__ = ["clean"]

ORPHANS = (
    Column(key="path", heading="FILE"),
    Column(key="size_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="modified", heading="MODIFIED"),
)


def clean(
    table: TableName,
    catalog: CatalogProperties = None,
    storage: StorageOptions = None,
    older_than: Annotated[
        float,
        typer.Option("--older-than", min=0, metavar="HOURS", help="Only files unchanged for this time."),
    ] = 72,
    apply: Annotated[bool, typer.Option("--apply", help="Delete the files; otherwise they are only listed.")] = False,
    format: FormatOption = Format.TABLE,
) -> int:
    """Find files of killed tasks, to which no commit of the table refers, and delete them with --apply.

    Keep --older-than above the duration of any write: the files of a commit that is still to come look the same. Exit
    code 1 if files are found and not deleted.
    """
    with existing_table(table, catalog, storage) as lake_table:
        orphans = lake_table.find_orphans(older_than * 3600)
        if apply:
            lake_table.delete_orphans(orphans)
    rows = (
        {
            "path": each.path,
            "size_bytes": each.size_bytes,
            "modified": datetime.fromtimestamp(each.modified_ms / 1000, UTC).isoformat(timespec="seconds"),
        }
        for each in orphans
    )
    write_rows(rows, ORPHANS, format)
    return FOUND if orphans and not apply else FINE
