"""The sinks `kwire-iceberg` and `kwire-delta`: DataFrames and streams into tables, without a JAR. docs/tables.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn

from pyspark.sql.datasource import DataSource

from kwire.errors import OptionError
from kwire.spark.lake.options import LakeFormat, parse_lake_options
from kwire.spark.plain_errors import plain_errors
from kwire.spark.sail import is_sail

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kwire.spark.lake.options import LakeOptions
    from kwire.spark.lake.sink import LakeStreamWriter, LakeWriter

__all__ = ["DeltaSink", "IcebergSink"]


@plain_errors
class LakeSink(DataSource):
    """Base class of both formats."""

    format: ClassVar[LakeFormat]

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return f"kwire-{cls.format}"

    def schema(self) -> NoReturn:
        """Raise OptionError: the format is for writing."""
        raise OptionError(
            f"{self.name()} writes tables and does not read them; read with DuckDB, Polars, PyArrow or Spark's own "
            f"format '{self.format}' (docs/table-options.md)"
        )

    def writer(self, schema: StructType | pa.Schema, overwrite: bool) -> LakeWriter:
        """Create the writer of a DataFrame, and the table if it is missing. Raises OptionError, TableError."""
        from kwire.spark.lake.sink import LakeWriter

        return LakeWriter(self._parsed(), _arrow(schema), overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> LakeStreamWriter:  # noqa: N802 (Spark's name)
        """Create the writer of a micro-batch. overwrite: output mode complete. Raises OptionError, TableError."""
        from kwire.spark.lake.sink import LakeStreamWriter

        options = self._parsed()
        if options.app is not None:
            raise OptionError("Option 'txnAppId': a streaming query has an id of its own; use it in foreachBatch")
        return LakeStreamWriter(options, _arrow(schema), overwrite=overwrite)

    def _parsed(self) -> LakeOptions:
        return parse_lake_options(self.options, self.format)


class IcebergSink(LakeSink):
    """`write` and `writeStream` with format("kwire-iceberg")."""

    format = "iceberg"


class DeltaSink(LakeSink):
    """`write` and `writeStream` with format("kwire-delta")."""

    format = "delta"


def _arrow(schema: StructType | pa.Schema) -> pa.Schema:
    from kwire.spark.lake.schema import arrow_schema

    return schema if is_sail(schema) else arrow_schema(schema)
