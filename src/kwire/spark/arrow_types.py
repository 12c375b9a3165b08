"""Spark's DDL types as Arrow types. Imports pyarrow on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_type"]


def arrow_type(ddl: str) -> pa.DataType:
    """Return the Arrow type of a DDL type such as `bigint` or `array<struct<name:string>>`."""
    import pyarrow as pa

    if ddl.startswith("array<"):
        return pa.list_(arrow_type(ddl.removeprefix("array<").removesuffix(">")))
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
