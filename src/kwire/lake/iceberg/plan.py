"""How tasks write data files of an Iceberg table: Parquet with field ids, split by the table's partitioning.

Importing PyIceberg takes a process more than a second of CPU time, so tasks do without it where they can: the driver
sends the schema as Arrow has it and the file system, and computes the statistics of a file from its footer. PyIceberg
is imported for partitioned tables, and for stores and locations that DataDirectory does not have.
"""

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
    from pyarrow.fs import FileSystem
    from pyiceberg.io import FileIO
    from pyiceberg.io.pyarrow import StatisticsCollector
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

__all__ = ["DataDirectory", "IcebergPlan", "arrow_schema", "plan_of"]

TARGET, TARGET_BYTES = "write.target-file-size-bytes", 512 << 20  # and Iceberg's default
LEVEL = "write.parquet.compression-level"
NOT_PICKLED = {"s3.signer", "s3.retry-strategy-impl"}
"""Settings of S3 that Arrow's file system does not have in another process."""
OF_CATALOG = ("uri", "token", "credential", "oauth2-server-uri", "scope", "auth", "auth.manager", "ssl")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDirectory:
    """Where files of an unpartitioned table go. location: as the table's metadata has it. path: in the file system."""

    location: str
    path: str
    files: FileSystem = field(repr=False)
    buffer_bytes: int

    @classmethod
    def of(cls, table: Table) -> DataDirectory | None:
        """Return the directory of a table in a local file system or in S3, None for other stores and locations."""
        from pyarrow.fs import LocalFileSystem, S3FileSystem
        from pyiceberg.io.pyarrow import BUFFER_SIZE, ONE_MEGABYTE, PyArrowFileIO
        from pyiceberg.table.locations import SimpleLocationProvider, load_location_provider

        io = table.io
        locations = load_location_provider(table.metadata.location, table.metadata.properties)
        if type(io) is not PyArrowFileIO or type(locations) is not SimpleLocationProvider:
            return None
        scheme, host, path = io.parse_location(locations.data_path, io.properties)
        if scheme == "file":
            files: FileSystem = LocalFileSystem()
        else:
            if scheme not in ("s3", "s3a", "s3n") or NOT_PICKLED & io.properties.keys():
                return None
            files = io.fs_by_scheme(scheme, host)
            if type(files) is not S3FileSystem:
                return None
        size = int(io.properties.get(BUFFER_SIZE, ONE_MEGABYTE))
        return cls(location=locations.data_path, path=path, files=files, buffer_bytes=size)

    def create(self, name: str) -> tuple[str, pa.NativeFile]:
        """Create a file with a unique name; return its location and a stream."""
        from pyarrow.fs import LocalFileSystem

        if isinstance(self.files, LocalFileSystem):
            self.files.create_dir(self.path, recursive=True)
        stream = self.files.open_output_stream(f"{self.path}/{name}", buffer_size=self.buffer_bytes)
        return f"{self.location}/{name}", stream


@dataclass(frozen=True, kw_only=True)
class IcebergPlan(FilePlan):
    """metadata: of the table, as JSON, without its history. io: settings of the file system; may contain its secrets.

    arrow: the schema of the files. properties: of the table. directory: None if PyIceberg has to find names and open
    files. is_staged: files are read by a merge and have rows of all partitions.
    """

    table: str
    table_id: str
    arrow: pa.Schema = field(repr=False)
    properties: Mapping[str, str] = field(repr=False)
    directory: DataDirectory | None = field(repr=False)
    is_partitioned: bool
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

    @property
    def schema(self) -> pa.Schema:
        return self.arrow

    @property
    def column_ids(self) -> set[int]:
        """The ids of the columns and their fields."""
        return self._table.schema().field_ids

    @property
    def parquet_options(self) -> Mapping[str, Any]:
        properties = self.properties
        codec = properties.get("write.parquet.compression-codec", "zstd").lower()
        level = properties.get(LEVEL, "null")
        has_level = codec in ("zstd", "gzip", "brotli") and level != "null"
        return {
            "compression": "none" if codec == "uncompressed" else codec,
            "compression_level": _number(LEVEL, level, self.table) if has_level else None,
            "store_decimal_as_integer": True,
        }

    def split(self, rows: pa.RecordBatch) -> Iterator[tuple[PartitionValues, pa.RecordBatch]]:
        if self.is_staged or not self.is_partitioned:
            yield (), rows
            return
        spec, schema = self._table.spec(), self._table.schema()
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
        name = f"{task:05d}-{uuid.uuid4()}.parquet"
        if self.directory is not None and not partition:
            with as_table_errors(self.table):
                return self.directory.create(name)
        from pyiceberg.table.locations import load_location_provider

        locations = load_location_provider(self._table.location, self._table.properties)
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
        key = self._partition_key(partition).partition if partition else ()
        facts = {"footer": footer, "partition": tuple(key[index] for index in range(len(partition)))}
        return WrittenFile(path=path, size_bytes=size_bytes, rows=footer.num_rows, facts=facts)

    def data_file(self, file: WrittenFile) -> DataFile:
        """Return the metadata of a written file as PyIceberg has it; called on the driver."""
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=file.path,
            file_format=FileFormat.PARQUET,
            partition=Record(*file.facts["partition"]),
            file_size_in_bytes=file.size_bytes,
            sort_order_id=self.sort_order_id,
            spec_id=self.spec_id,
            equality_ids=None,
            key_metadata=None,
            **self._statistics(file.facts["footer"]),
        )

    def _statistics(self, footer: parquet.FileMetaData) -> Mapping[str, Any]:
        """Return the statistics of a file's columns, by the names of DataFile."""
        from pyiceberg.io.pyarrow import (
            compute_statistics_plan,
            data_file_statistics_from_parquet_metadata,
            parquet_path_to_id_mapping,
        )

        schema = self._table.schema()
        columns = compute_statistics_plan(schema, dict(self.properties))
        names = parquet_path_to_id_mapping(schema)
        try:
            found = data_file_statistics_from_parquet_metadata(footer, columns, names)
        except OverflowError:  # a date that Python does not have
            columns = {number: _counted(column) for number, column in columns.items()}
            found = data_file_statistics_from_parquet_metadata(footer, columns, names)
        return found.to_serialized_dict()

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
    with as_table_errors(name):
        directory = DataDirectory.of(table)
    is_whole = len(sort_by) == len(metadata.sort_order().fields)
    return IcebergPlan(
        table=name,
        metadata=metadata.model_copy(update=no_history).model_dump_json(),
        table_id=str(metadata.table_uuid),
        arrow=arrow_schema(metadata),
        properties=dict(metadata.properties),
        directory=directory,
        is_partitioned=not metadata.spec().is_unpartitioned(),
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
