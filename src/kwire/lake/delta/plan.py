"""How tasks write data files of a Delta table: Parquet without the partition columns, and statistics as JSON."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kwire.lake.arrow_columns import group_rows
from kwire.lake.data_files import FilePlan, PartitionValues, WrittenFile
from kwire.lake.delta.errors import as_table_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import fs, parquet

__all__ = ["DeltaPlan", "file_system", "partition_text", "statistics_of"]

TARGET_BYTES = 128 << 20
INDEXED_COLUMNS = 32  # Delta's default of delta.dataSkippingNumIndexedCols
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
LAST_MILLISECOND = datetime.max.replace(microsecond=999_000)
LONGEST_TEXT = 32  # of a string's bounds, as Delta truncates them


def file_system(uri: str, storage: Mapping[str, str]) -> fs.FileSystem:
    """Return the directory of a table as a file system: the store that delta-rs itself uses."""
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import PyFileSystem

    return PyFileSystem(DeltaStorageHandler(uri, dict(storage)))


@dataclass(frozen=True, kw_only=True)
class DeltaPlan(FilePlan):
    """arrow: the table's columns. storage: options of the object store; may contain secrets.

    is_staged: files are read by a merge and have all columns.
    """

    table: str
    table_id: str
    uri: str
    arrow: pa.Schema
    partition_by: tuple[str, ...]
    storage: Mapping[str, str] = field(repr=False)
    sort_by: tuple[tuple[str, str], ...] = ()
    target_bytes: int = TARGET_BYTES
    is_staged: bool = False

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name in self.__dataclass_fields__}

    @cached_property
    def _files(self) -> fs.FileSystem:
        return file_system(self.uri, self.storage)

    @property
    def schema(self) -> pa.Schema:
        return self.arrow

    @property
    def parquet_options(self) -> Mapping[str, Any]:
        return {"compression": "snappy", "store_decimal_as_integer": True}

    def split(self, rows: pa.RecordBatch) -> Iterator[tuple[PartitionValues, pa.RecordBatch]]:
        if self.is_staged or not self.partition_by:
            yield (), rows
            return
        kept = [name for name in rows.schema.names if name not in self.partition_by]
        for key, group in group_rows(rows, [rows.column(name) for name in self.partition_by], self.table):
            yield tuple(map(partition_text, key)), group.select(kept)

    def create(self, partition: PartitionValues, task: int) -> tuple[str, pa.NativeFile]:
        # Delta reads values from its log, but Polars reads them from these names, as Hive has them.
        folders = [
            f"{quote(name, safe=' ')}={HIVE_NULL if value is None else quote(str(value), safe=' ')}/"
            for name, value in zip(self.partition_by, partition, strict=False)
        ]
        path = f"{''.join(folders)}part-{task:05d}-{uuid.uuid4()}.snappy.parquet"
        with as_table_errors(self.table):
            return path, self._files.open_output_stream(path)

    def written(
        self, path: str, partition: PartitionValues, size_bytes: int, footer: parquet.FileMetaData
    ) -> WrittenFile:
        values = {} if self.is_staged else dict(zip(self.partition_by, partition, strict=True))
        facts = {"partition": values, "footer": footer}
        return WrittenFile(path=path, size_bytes=size_bytes, rows=footer.num_rows, facts=facts)

    def delete(self, path: str) -> None:
        self._files.delete_file(path)

    def read(self, written: WrittenFile) -> pa.Table:
        """Return the rows of a file that is not committed. Raises OSError."""
        import pyarrow as pa
        from pyarrow import parquet

        with self._files.open_input_file(written.path) as file:
            rows = parquet.read_table(file)
        for name, text in written.facts["partition"].items():
            values = pa.array([text] * len(rows), pa.string()).cast(self.arrow.field(name).type)
            rows = rows.append_column(name, values)
        return rows.select(self.arrow.names).cast(self.arrow)


def partition_text(value: object) -> str | None:
    """Return a partition value as Delta's log has it. Source: Delta protocol, "Partition Value Serialization"."""
    match value:
        case None | "":  # Delta reads an empty string as null
            return None
        case bool():
            return "true" if value else "false"
        case datetime():
            if value.tzinfo is None:
                return str(value)
            return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")  # years have four digits
        case _:
            return str(value)


# ---- statistics


def statistics_of(footer: parquet.FileMetaData) -> str:
    """Return numRecords, minValues, maxValues and nullCount of a file as JSON.

    Source: Delta protocol, "Per-file Statistics". Columns inside lists and maps have none, nor have types whose JSON
    form is not exact.
    """
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for index in range(min(footer.num_columns, INDEXED_COLUMNS)):
        column = footer.schema.column(index)
        if column.max_repetition_level:
            continue
        path = column.path.split(".")
        groups = [footer.row_group(number).column(index).statistics for number in range(footer.num_row_groups)]
        if not groups or any(each is None or not each.has_null_count for each in groups):
            continue
        _put(nulls, path, sum(each.null_count for each in groups))
        try:
            bounds = [(each.min, each.max) for each in groups if each.has_min_max]
        except (OverflowError, ValueError):  # a date that Python does not have, such as one after the year 9999
            continue
        if len(bounds) < sum(each.num_values > 0 for each in groups) or not bounds:
            continue
        least, most = (
            _bound(min(each[0] for each in bounds), up=False),
            _bound(max(each[1] for each in bounds), up=True),
        )
        if least is not None:
            _put(low, path, least)
        if most is not None:
            _put(high, path, most)
    found = {"numRecords": footer.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    return json.dumps(found, separators=(",", ":"))


def _put(tree: dict[str, Any], path: Sequence[str], value: object) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _bound(value: object, *, up: bool) -> object:
    """Return a bound as JSON, rounded outwards; None without an exact form."""
    match value:
        case bool() | bytes() | Decimal():
            return None
        case int() | str() if not isinstance(value, str) or len(value) <= LONGEST_TEXT:
            return value
        case str():
            return None if up else value[:LONGEST_TEXT]
        case float():
            return value if value == value and abs(value) != float("inf") else None
        case datetime():
            if up and value.microsecond % 1000:
                if value.replace(tzinfo=None) > LAST_MILLISECOND:
                    return None
                value += timedelta(milliseconds=1)
            return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if value.tzinfo else "")
        case date():
            return value.isoformat()
    return None
