"""How tasks write data files of an Iceberg table: Parquet with field ids, split by the table's partitioning."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kwire.errors import TableError
from kwire.lake.arrow_columns import group_rows, no_date
from kwire.lake.data_files import FilePlan, PartitionValues, WrittenFile
from kwire.lake.iceberg.errors import as_table_errors
from kwire.lake.iceberg.transforms import transformed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet
    from pyiceberg.io import FileIO
    from pyiceberg.io.pyarrow import StatisticsCollector
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

__all__ = ["IcebergPlan", "arrow_schema", "data_file", "plan_of"]

TARGET, TARGET_BYTES = "write.target-file-size-bytes", 512 << 20  # and Iceberg's default
LEVEL = "write.parquet.compression-level"
OF_CATALOG = ("uri", "token", "credential", "oauth2-server-uri", "scope", "auth", "auth.manager", "ssl")


@dataclass(frozen=True, kw_only=True)
class IcebergPlan(FilePlan):
    """metadata: of the table, as JSON, without its history. io: settings of the file system; may contain its secrets.

    is_staged: files are read by a merge and have rows of all partitions.
    """

    table: str
    table_id: str
    metadata: str = field(repr=False)
    io: Mapping[str, Any] = field(repr=False)
    spec_id: int
    sort_order_id: int | None
    sort_by: tuple[tuple[str, str], ...]
    target_bytes: int
    is_staged: bool

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name in self.__dataclass_fields__}

    @cached_property
    def _table(self) -> TableMetadata:
        from pyiceberg.table.metadata import TableMetadataUtil

        return TableMetadataUtil.parse_raw(self.metadata)

    @cached_property
    def _io(self) -> FileIO:
        from pyiceberg.io import load_file_io

        return load_file_io(dict(self.io), self._table.location)

    @cached_property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._table)

    @property
    def parquet_options(self) -> Mapping[str, Any]:
        properties = self._table.properties
        codec = properties.get("write.parquet.compression-codec", "zstd").lower()
        level = properties.get(LEVEL, "null")
        has_level = codec in ("zstd", "gzip", "brotli") and level != "null"
        return {
            "compression": "none" if codec == "uncompressed" else codec,
            "compression_level": _number(LEVEL, level, self.table) if has_level else None,
            "store_decimal_as_integer": True,
        }

    def split(self, rows: pa.RecordBatch) -> Iterator[tuple[PartitionValues, pa.RecordBatch]]:
        spec = self._table.spec()
        if self.is_staged or spec.is_unpartitioned():
            yield (), rows
            return
        schema = self._table.schema()
        values = []
        for each in spec.fields:
            name = schema.find_column_name(each.source_id)
            if name is None:
                raise TableError(f"the column of partition field '{each.name}' was dropped", self.table)
            source = schema.find_field(each.source_id)
            with as_table_errors(self.table):
                values.append(transformed(each, source.field_type, _column(rows, name)))
        yield from group_rows(rows, values, self.table)

    def create(self, partition: PartitionValues, task: int) -> tuple[str, pa.NativeFile]:
        from pyiceberg.table.locations import load_location_provider

        locations = load_location_provider(self._table.location, self._table.properties)
        name = f"{task:05d}-{uuid.uuid4()}.parquet"
        with as_table_errors(self.table):
            key = self._partition_key(partition) if partition else None
            try:
                path = locations.new_data_location(name, key)
            except OverflowError as error:
                raise no_date(error, self.table) from error
            return path, self._io.new_output(path).create()

    def written(
        self, path: str, partition: PartitionValues, size_bytes: int, footer: parquet.FileMetaData
    ) -> WrittenFile:
        from pyiceberg.io.pyarrow import (
            compute_statistics_plan,
            data_file_statistics_from_parquet_metadata,
            parquet_path_to_id_mapping,
        )

        schema = self._table.schema()
        columns = compute_statistics_plan(schema, self._table.properties)
        names = parquet_path_to_id_mapping(schema)
        try:
            statistics = data_file_statistics_from_parquet_metadata(footer, columns, names)
        except OverflowError:  # a date that Python does not have
            columns = {number: _counted(column) for number, column in columns.items()}
            statistics = data_file_statistics_from_parquet_metadata(footer, columns, names)
        key = self._partition_key(partition).partition if partition else ()
        facts = {
            "statistics": statistics.to_serialized_dict(),
            "partition": tuple(key[index] for index in range(len(partition))),
            "spec_id": self.spec_id,
            "sort_order_id": self.sort_order_id,
        }
        return WrittenFile(path=path, size_bytes=size_bytes, rows=footer.num_rows, facts=facts)

    def delete(self, path: str) -> None:
        self._io.delete(path)

    def read(self, path: str) -> pa.Table:
        """Return the rows of a file that is not committed. Raises OSError."""
        from pyarrow import parquet

        with self._io.new_input(path).open() as file:
            return parquet.read_table(file)

    def _partition_key(self, partition: PartitionValues) -> Any:
        from pyiceberg.partitioning import PartitionFieldValue, PartitionKey

        spec = self._table.spec()
        values = [
            PartitionFieldValue(field=each, value=value) for each, value in zip(spec.fields, partition, strict=True)
        ]
        return PartitionKey(field_values=values, partition_spec=spec, schema=self._table.schema())


def plan_of(table: Table, name: str, *, is_staged: bool = False) -> IcebergPlan:
    """Return the plan for a table as it is now."""
    from pyiceberg.transforms import IdentityTransform

    metadata = table.metadata
    no_history: dict[str, Any] = {
        "snapshots": [],
        "refs": {},
        "snapshot_log": [],
        "metadata_log": [],
        "current_snapshot_id": None,
    }
    sort_by = []
    for each in metadata.sort_order().fields:
        if not isinstance(each.transform, IdentityTransform):
            break
        column = metadata.schema().find_column_name(each.source_id)
        if column is None or "." in column:
            break
        sort_by.append((column, "ascending" if each.direction.value == "asc" else "descending"))
    is_whole = len(sort_by) == len(metadata.sort_order().fields)
    return IcebergPlan(
        table=name,
        metadata=metadata.model_copy(update=no_history).model_dump_json(),
        table_id=str(metadata.table_uuid),
        io=_file_settings(table.io.properties),
        spec_id=metadata.default_spec_id,
        sort_order_id=metadata.default_sort_order_id if sort_by and is_whole and not is_staged else None,
        sort_by=() if is_staged else tuple(sort_by),
        target_bytes=_number(TARGET, metadata.properties.get(TARGET, str(TARGET_BYTES)), name),
        is_staged=is_staged,
    )


def _file_settings(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a table's file system without its catalog's, which tasks do not ask.

    A catalog that signs the requests to an object store is the exception.
    """
    if "s3.signer" in properties:
        return dict(properties)
    return {
        name: value
        for name, value in properties.items()
        if name not in OF_CATALOG and not name.startswith(("glue.", "dynamodb.", "header.", "rest."))
    }


def _counted(column: StatisticsCollector) -> StatisticsCollector:
    """Return a column's statistics without the bounds of dates and times."""
    from pyiceberg.io.pyarrow import MetricModeTypes, MetricsMode
    from pyiceberg.types import DateType, TimestampType, TimestamptzType

    if not isinstance(column.iceberg_type, DateType | TimestampType | TimestamptzType):
        return column
    return replace(column, mode=MetricsMode(MetricModeTypes.COUNTS))


def data_file(file: WrittenFile) -> DataFile:
    """Return the metadata of a written file as PyIceberg has it."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.path,
        file_format=FileFormat.PARQUET,
        partition=Record(*file.facts["partition"]),
        file_size_in_bytes=file.size_bytes,
        sort_order_id=file.facts["sort_order_id"],
        spec_id=file.facts["spec_id"],
        equality_ids=None,
        key_metadata=None,
        **file.facts["statistics"],
    )


def arrow_schema(metadata: TableMetadata) -> pa.Schema:
    """Return a table's schema with field ids, and types with offsets of 32 bits as Spark's batches have them."""
    import pyarrow as pa
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return pa.schema([_small(field) for field in schema_to_pyarrow(metadata.schema())])


def _small(field: pa.Field) -> pa.Field:
    import pyarrow as pa
    from pyarrow import types

    kind = field.type
    if types.is_large_string(kind):
        kind = pa.string()
    elif types.is_large_binary(kind):
        kind = pa.binary()
    elif types.is_large_list(kind):
        kind = pa.list_(_small(kind.value_field))
    elif types.is_map(kind):
        kind = pa.map_(_small(kind.key_field), _small(kind.item_field))
    elif types.is_struct(kind):
        kind = pa.struct([_small(kind.field(index)) for index in range(kind.num_fields)])
    return field.with_type(kind)


def _column(rows: pa.RecordBatch, name: str) -> pa.Array:
    """Return a column, or a field of a struct: `value.country`."""
    import pyarrow.compute as pc

    if name in rows.schema.names:
        return rows.column(name)
    first, *rest = name.split(".")
    return pc.struct_field(rows.column(first), rest)


def _number(name: str, value: str, table: str) -> int:
    """Return the value of a table property. Raises TableError."""
    try:
        return int(value)
    except ValueError:
        raise TableError(f"its property {name} is not a number: '{value}'", table) from None
