"""`kwire lake expire`."""

from __future__ import annotations

from typing import Annotated

import typer

from kwire.cli.command import FINE, FOUND
from kwire.cli.lake.options import CatalogProperties, StorageOptions, TableName, existing_table
from kwire.cli.options import FormatOption
from kwire.cli.rows import Column, Format, write_rows

__all__ = ["expire"]

EXPIRED = (Column(key="path", heading="FILE"),)


def expire(
    table: TableName,
    catalog: CatalogProperties = None,
    storage: StorageOptions = None,
    older_than: Annotated[
        float, typer.Option("--older-than", min=0, metavar="HOURS", help="Only snapshots or versions of that age.")
    ] = 168,
    apply: Annotated[bool, typer.Option("--apply", help="Delete the files; otherwise they are only listed.")] = False,
    format: FormatOption = Format.TABLE,
) -> int:
    """Delete files that only old snapshots (Iceberg) or versions (Delta) of a table need.

    The table's rows, offsets and micro-batches stay; it cannot be rolled back to what has expired. Exit code 1 if there
    are such files and they are not deleted.
    """
    with existing_table(table, catalog, storage) as lake_table:
        files = lake_table.expire(older_than * 3600, dry_run=not apply)
    write_rows(({"path": each} for each in files), EXPIRED, format)
    return FOUND if files and not apply else FINE
