"""Arrow types and schemas from Spark's DDL. Imports pyarrow on first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Ddl", "arrow_type"]


class Ddl(str):
    """A schema for both engines: DDL for Spark, which exports an Arrow schema for Sail. types: in DDL or of Arrow."""

    types: Mapping[str, str | pa.DataType]

    def __new__(cls, ddl: str, types: Mapping[str, str | pa.DataType]) -> Ddl:
        """Create the schema."""
        made = super().__new__(cls, ddl)
        made.types = types
        return made

    def __arrow_c_schema__(self) -> object:
        """Export the columns: the Arrow PyCapsule interface."""
        import pyarrow as pa

        types = ((name, arrow_type(kind) if isinstance(kind, str) else kind) for name, kind in self.types.items())
        return pa.schema(list(types)).__arrow_c_schema__()


def arrow_type(ddl: str) -> pa.DataType:
    """Return the Arrow type of a DDL type such as `bigint` or `array<struct<name:string>>`."""
    import pyarrow as pa

    if ddl.startswith("array<"):
        element = arrow_type(ddl.removeprefix("array<").removesuffix(">"))
        return pa.list_(pa.field("element", element))  # what Spark calls it
    if ddl.startswith("struct<"):
        return pa.struct(
            [
                pa.field(name, arrow_type(kind))
                for name, _, kind in (each.partition(":") for each in _fields(ddl.removeprefix("struct<")[:-1]))
            ]
        )
    simple: dict[str, pa.DataType] = {
        "string": pa.string(),
        "binary": pa.binary(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", "UTC"),
    }
    return simple[ddl]


def _fields(text: str) -> list[str]:
    """Split the fields of a struct at the commas outside brackets."""
    fields, depth, start = list[str](), 0, 0
    for i, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            fields.append(text[start:i])
            start = i + 1
    return [*fields, text[start:]]
