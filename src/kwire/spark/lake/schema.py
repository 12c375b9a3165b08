"""Arrow schemas from schemas of DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

__all__ = ["arrow_schema"]


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the schema of a DataFrame's Arrow batches. Raises OptionError for types that tables do not have."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, _arrow_type(field.name, field.dataType)) for field in schema.fields])


def _arrow_type(column: str, kind: DataType) -> pa.DataType:
    import pyarrow as pa
    from pyspark.sql import types

    match kind:
        case types.StructType():
            return pa.struct(
                [pa.field(each.name, _arrow_type(f"{column}.{each.name}", each.dataType)) for each in kind.fields]
            )
        case types.ArrayType():
            return pa.list_(_arrow_type(f"{column}.element", kind.elementType))
        case types.MapType():
            return pa.map_(_arrow_type(f"{column}.key", kind.keyType), _arrow_type(f"{column}.value", kind.valueType))
        case types.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
    simple = {
        "string": pa.string(),
        "binary": pa.binary(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
    name = kind.simpleString().partition("(")[0]  # char(3) and varchar(3) arrive as strings
    name = "string" if name.startswith(("char", "varchar", "string")) else name
    if name not in simple:
        remedy = "cast it, such as CAST(NULL AS string)" if name == "void" else "cast it or leave it out"
        raise OptionError(f"column '{column}' is of type {kind.simpleString()}, which tables do not have; {remedy}")
    return simple[name]
