"""Tables of a data lake: Iceberg through PyIceberg, Delta Lake through delta-rs, both written from Arrow.

    open_iceberg(name, catalog), open_delta(path)       a LakeTable, which may not exist yet
    open_table(name)                                    either, by its name
    table.prepare(schema, layout)                       create or evolve it; returns a FilePlan for tasks
    write_files(batches, plan)                          data files of one task
    table.commit(files, change, plan)                   once for each Mark, with the offsets of the rows
    append_logs(table, logs)                            logs into a table, from where it ends
    ValueDecoding.resolve(choice, topics)               decodes their values meanwhile
    RowWriter, commit_dead_letters                      records that cannot be decoded or stored, into a second table
    committed_files(path)                               of a directory of Parquet files that copy_stream writes
    table.state(), find_orphans(), delete_orphans()     what it has, and what it does not

See docs/tables.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from kwire.errors import OptionError
from kwire.lake.append import Appended, RowOptions, append_logs
from kwire.lake.changes import Changes, DeleteWhen
from kwire.lake.data_files import FilePlan, TaskFiles, WrittenFile, write_files
from kwire.lake.dead_letters import (
    DeadLetterPlan,
    RowWriter,
    commit_dead_letters,
    prepare_dead_letters,
    unwrapped_schema,
)
from kwire.lake.known_offsets import KnownOffsets, OnKnownOffsets
from kwire.lake.offset_ranges import Ranges, Spans, hull_of
from kwire.lake.parquet.directory import committed_files
from kwire.lake.replay import Chosen
from kwire.lake.state import Change, Mark, TableState
from kwire.lake.table import LakeTable, Layout, Orphan
from kwire.schemas.record_values import ValueDecoding

__all__ = [
    "Appended",
    "Change",
    "Changes",
    "Chosen",
    "DeadLetterPlan",
    "DeleteWhen",
    "FilePlan",
    "KnownOffsets",
    "LakeTable",
    "Layout",
    "Mark",
    "OnKnownOffsets",
    "Orphan",
    "Ranges",
    "RowOptions",
    "RowWriter",
    "Spans",
    "TableState",
    "TaskFiles",
    "ValueDecoding",
    "WrittenFile",
    "append_logs",
    "commit_dead_letters",
    "committed_files",
    "hull_of",
    "open_delta",
    "open_iceberg",
    "open_table",
    "prepare_dead_letters",
    "unwrapped_schema",
    "write_files",
]


def open_iceberg(name: str, catalog: Mapping[str, str], *, catalog_name: str | None = None) -> LakeTable:
    """Return the Iceberg table `namespace.name`.

    catalog: properties of pyiceberg.catalog.load_catalog, besides those of its configuration for catalog_name.
    Raises OptionError without PyIceberg, and TableError.
    """
    from kwire.lake.iceberg.table import IcebergTable

    return IcebergTable(name, catalog, catalog_name=catalog_name)


def open_delta(uri: str, storage: Mapping[str, str] | None = None) -> LakeTable:
    """Return the Delta table in a directory. storage: delta-rs' options of its object store.

    Raises OptionError without deltalake, and TableError.
    """
    from kwire.lake.delta.table import DeltaLakeTable

    return DeltaLakeTable(uri, storage)


def open_table(
    name: str, *, catalog: Mapping[str, str] | None = None, storage: Mapping[str, str] | None = None
) -> LakeTable:
    """Return the Iceberg table NAMESPACE.NAME of a catalog, or the Delta table at a path or URL, which has a slash.

    catalog: properties, and `name`, that of the catalog: its section in PyIceberg's configuration, or its name in a SQL
    database.
    Raises OptionError, TableError.
    """
    if not name.strip():
        raise OptionError("the name of the table is empty; for the current directory: ./")
    if "/" in name or "." not in name:
        if catalog:
            raise OptionError(f"catalog: requires an Iceberg table NAMESPACE.NAME, got '{name}'")
        return open_delta(name, storage)
    if storage:
        raise OptionError(f"storage: requires the path or URL of a Delta table, got '{name}'")
    properties = dict(catalog or {})
    catalog_name = properties.pop("name", None)
    return open_iceberg(name, properties, catalog_name=catalog_name)
