"""Avro schemas for Arrow types, as Spark's `to_avro` makes them."""

from __future__ import annotations

import json

import pyarrow as pa

from kwire.schemas.avro.encode_plan import family, is_list
from kwire.schemas.avro.model import Schema
from kwire.schemas.avro.parsing import fail, parse

__all__ = ["schema_of", "schema_text"]

Json = str | list["Json"] | dict[str, "Json"] | int | bool | None
SIMPLE: dict[str, Json] = {
    "boolean": "boolean",
    "text": "string",
    "bytes": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "null": "null",
}
TIMESTAMPS = {"timestamp": "timestamp", "local timestamp": "local-timestamp"}


def schema_text(kind: pa.DataType, name: str = "topLevelRecord", namespace: str = "") -> str:
    """Return the JSON text of a schema for values of an Arrow type; name: of the record.

    Columns that may be null become unions of their type and null. Raises InvalidSchema for types that Avro lacks.
    """
    text = json.dumps(_schema(kind, name, namespace, ""))
    parse(text)  # duplicate names and the like
    return text


def schema_of(kind: pa.DataType, name: str = "topLevelRecord", namespace: str = "") -> Schema:
    """Return the schema of `schema_text`."""
    return parse(schema_text(kind, name, namespace))


def _field(field: pa.Field, name: str, namespace: str, path: str) -> Json:
    inner = _schema(field.type, name, namespace, path)
    return [inner, "null"] if field.nullable and inner != "null" else inner


def _schema(kind: pa.DataType, name: str, namespace: str, path: str) -> Json:
    if pa.types.is_dictionary(kind):
        return _schema(kind.value_type, name, namespace, path)
    if pa.types.is_struct(kind):
        below = f"{namespace}.{name}" if namespace else name
        fields: list[Json] = [
            {"name": each.name, "type": _field(each, each.name, below, f"{path}.{each.name}" if path else each.name)}
            for each in kind
        ]
        return {"type": "record", "name": name, "namespace": namespace, "fields": fields}
    if pa.types.is_map(kind):
        return {"type": "map", "values": _field(kind.item_field, name, namespace, f"{path}[]")}
    if is_list(kind):
        return {"type": "array", "items": _field(kind.value_field, name, namespace, f"{path}[]")}
    kind_family = family(kind)
    if kind_family in SIMPLE:
        return SIMPLE[kind_family]
    if kind_family == "integer":
        return "int" if kind.bit_width < 32 or kind == pa.int32() else "long"
    if kind_family == "floating":
        return "double" if kind.bit_width == 64 else "float"
    if kind_family == "decimal":
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if kind_family in TIMESTAMPS:
        return {
            "type": "long",
            "logicalType": f"{TIMESTAMPS[kind_family]}-{'nanos' if kind.unit == 'ns' else 'micros'}",
        }
    raise fail(f"Avro has no type for {kind}; cast the column", path)
