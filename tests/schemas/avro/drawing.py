"""Drawn Avro schemas with values, as fastavro writes them and as Arrow holds them.

A drawn schema exists twice: with logical types, and without them for fastavro, which then takes and returns plain
numbers and bytes. Values of unions are `Branch` objects, so that the type in use is known.
"""

from __future__ import annotations

import io
import json
import struct
from dataclasses import dataclass
from decimal import Context
from random import Random
from typing import Any

import pyarrow as pa
import pytest

fastavro = pytest.importorskip("fastavro")

LEAVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string", "enum", "fixed")
LOGICAL = {
    "int": ("date", "time-millis"),
    "long": (
        *("time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"),
        *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"),
    ),
    "string": ("uuid",),
    "bytes": ("decimal",),
    "fixed": ("decimal", "duration"),
}
TEXTS = ("", "a", "order", "ä", "€uro", "🎈", "\0", "x" * 70)
EXACT = Context(prec=100)
MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True)
class Branch:
    """A value of a union: the branch's index and the value."""

    index: int
    value: Any


class Drawing:
    """Draws schemas and values. multiple_unions: unions of more than null and one type."""

    def __init__(self, source: Random, *, max_depth: int = 3, multiple_unions: bool = True) -> None:
        self.source = source
        self.max_depth = max_depth
        self.multiple_unions = multiple_unions
        self.names = 0
        self.unions = True

    def name(self) -> str:
        self.names += 1
        return f"N{self.names}"

    def record(self, depth: int = 0, fields: int | None = None) -> dict[str, Any]:
        count = self.source.randint(0, 5) if fields is None else fields
        name = self.name()
        parts = [{"name": f"f{i}", "type": self.schema(depth + 1)} for i in range(count)]
        return {"type": "record", "name": name, "fields": parts}

    def schema(self, depth: int = 0) -> Any:
        kinds = [*LEAVES]
        if depth < self.max_depth:
            kinds += ["record", "array", "map", "record", *(["union"] * 2 if self.unions else [])]
        kind = self.source.choice(kinds)
        if kind == "union":
            return self.union(depth)
        return self.of(kind, depth)

    def of(self, kind: str, depth: int) -> Any:
        if kind == "record":
            return self.record(depth)
        if kind == "array":
            return {"type": "array", "items": self.schema(depth + 1)}
        if kind == "map":
            return {"type": "map", "values": self.schema(depth + 1)}
        found: dict[str, Any] = {"type": kind}
        if kind == "enum":
            found |= {"name": self.name(), "symbols": [f"S{i}" for i in range(self.source.randint(1, 4))]}
        elif kind == "fixed":
            found |= {"name": self.name(), "size": self.source.choice((0, 1, 3, 12, 16, 40))}
        if kind in LOGICAL and self.source.random() < 0.4:
            found["logicalType"] = self.source.choice(LOGICAL[kind])
            if found["logicalType"] == "decimal":
                found["precision"] = self.source.choice((1, 2, 9, 18, 20, 38, 39, 76))
                found["scale"] = self.source.randint(0, found["precision"])
        return found if len(found) > 1 else kind

    def union(self, depth: int) -> list[Any]:
        kinds = [each for each in (*LEAVES, "record", "array", "map") if each != "null"]
        count = 1
        if self.multiple_unions and self.source.random() < 0.5:
            count = self.source.randint(1, 4)
        chosen = self.source.sample(kinds, count)
        if "map" in chosen and "record" in chosen:
            chosen.remove("map")  # fastavro cannot tell their values apart
        self.unions = chosen == ["record"]  # nor does it find the types of unions inside of others
        found = [self.of(each, depth + 1) for each in chosen]
        self.unions = True
        if self.source.random() < 0.7:
            found.insert(self.source.randint(0, len(found)), "null")
        return found

    # Values

    def value(self, schema: Any) -> Any:
        """Draw a plain value, as fastavro takes it without logical types, apart from unions."""
        if isinstance(schema, list):
            index = self.source.randrange(len(schema))
            return Branch(index, self.value(schema[index]))
        kind = schema if isinstance(schema, str) else schema["type"]
        draw = self.source
        if kind == "record":
            return {each["name"]: self.value(each["type"]) for each in schema["fields"]}
        if kind == "array":
            return [self.value(schema["items"]) for _ in range(draw.choice((0, 0, 1, 2, 5)))]
        if kind == "map":
            return {draw.choice(TEXTS): self.value(schema["values"]) for _ in range(draw.choice((0, 0, 1, 3)))}
        if kind == "null":
            return None
        if kind == "boolean":
            return draw.random() < 0.5
        if kind in ("int", "long"):
            return self.whole(schema, 31 if kind == "int" else 63)
        if kind in ("float", "double"):
            number = draw.choice((0.0, 1.5, -2.25, 1e30, float("inf"), draw.uniform(-1e6, 1e6)))
            return struct.unpack("<f", struct.pack("<f", number))[0] if kind == "float" else number
        if kind == "string":
            return draw.choice(TEXTS)
        if kind == "enum":
            return draw.choice(schema["symbols"])
        return self.data(schema, kind)

    def whole(self, schema: Any, bits: int) -> int:
        logical = schema.get("logicalType", "") if isinstance(schema, dict) else ""
        draw = self.source
        if logical == "time-micros":
            return draw.randrange(MICROSECONDS_A_DAY)
        if logical.endswith("timestamp-millis"):
            bits = 53
        return draw.choice((0, 1, -1, 63, -64, 64, -65, 2**bits - 1, -(2**bits), draw.randrange(-(2**bits), 2**bits)))

    def data(self, schema: Any, kind: str) -> bytes:
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        size = schema["size"] if kind == "fixed" else self.source.randint(0, 20)
        if logical == "decimal" and (kind == "bytes" or 2 * 10 ** schema["precision"] <= 256**size):
            limit = 10 ** schema["precision"] - 1
            number = self.source.choice((0, 1, -1, limit, -limit, self.source.randint(-limit, limit)))
            size = size if kind == "fixed" else (number + (number < 0)).bit_length() // 8 + 1
            return number.to_bytes(size, "big", signed=True)
        return self.source.randbytes(size)


def without_logical(schema: Any) -> Any:
    """Return a schema for fastavro: its values are plain numbers and bytes."""
    if isinstance(schema, list):
        return [without_logical(each) for each in schema]
    if isinstance(schema, str):
        return schema
    found = {key: value for key, value in schema.items() if key not in ("logicalType", "precision", "scale")}
    if found["type"] == "record":
        found["fields"] = [{**each, "type": without_logical(each["type"])} for each in found["fields"]]
    for key in ("items", "values"):
        if key in found:
            found[key] = without_logical(found[key])
    return found["type"] if found.keys() == {"type"} else found


def datum(schema: Any, value: Any) -> Any:
    """Return the value as fastavro takes it: branches of unions by name."""
    if isinstance(value, Branch):
        branch = schema[value.index]
        kind = branch if isinstance(branch, str) else branch["type"]
        inner = datum(branch, value.value)
        if kind == "null" or kind in ("array", "map"):
            return inner
        return (kind if isinstance(branch, str) else branch.get("name", kind), inner)
    if isinstance(value, dict):
        if schema["type"] == "map":
            return {key: datum(schema["values"], each) for key, each in value.items()}
        return {each["name"]: datum(each["type"], value[each["name"]]) for each in schema["fields"]}
    if isinstance(value, list):
        return [datum(schema["items"], each) for each in value]
    return value


def written(schema: Any, value: Any) -> bytes:
    """Return the bytes that fastavro writes."""
    plain = without_logical(schema)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(plain))), datum(plain, value))
    return out.getvalue()


# What Arrow holds


def expected(schema: Any, value: Any) -> Any:
    """Return a drawn value as `plain` returns it from Arrow."""
    if isinstance(value, Branch):
        branch = schema[value.index]
        others = [each for each in schema if each != "null"]
        if branch == "null":
            return None
        if len(others) == 1:
            return expected(branch, value.value)
        kinds = {each if isinstance(each, str) else each["type"] for each in others}
        if len(others) == 2 and kinds in ({"int", "long"}, {"float", "double"}):
            return value.value
        at = others.index(branch)
        return {f"member{i}": expected(branch, value.value) if i == at else None for i in range(len(others))}
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return {each["name"]: expected(each["type"], value[each["name"]]) for each in schema["fields"]}
    if kind == "array":
        return [expected(schema["items"], each) for each in value]
    if kind == "map":
        return {key: expected(schema["values"], each) for key, each in value.items()}
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if logical in ("timestamp-millis", "local-timestamp-millis"):
        return value * 1000
    if logical == "decimal" and (kind == "bytes" or 2 * 10 ** schema["precision"] <= 256 ** schema["size"]):
        return int.from_bytes(value, "big", signed=True)
    return value


def plain(array: pa.Array) -> list[Any]:
    """Return the values of an array as plain numbers, bytes, lists and dicts."""
    kind = array.type
    if pa.types.is_struct(kind):
        children = [plain(each) for each in array.flatten()]
        rows = [dict(zip([each.name for each in kind], row, strict=True)) for row in zip(*children, strict=True)]
        rows = rows or [{} for _ in range(len(array))]
        return [row if ok else None for row, ok in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_map(kind):
        keys, items = array.keys.to_pylist(), plain(array.items)
        pairs = [each and zip(keys[each[0] : each[1]], items[each[0] : each[1]], strict=True) for each in _spans(array)]
        return [None if each is None else dict(each) for each in pairs]
    if pa.types.is_list(kind):
        items = plain(array.values)
        return [items[each[0] : each[1]] if each else None for each in _spans(array)]
    if pa.types.is_decimal(kind):
        return [None if each is None else int(each.scaleb(kind.scale, EXACT)) for each in array.to_pylist()]
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        array = array.view(pa.int64())
    elif pa.types.is_date(kind):
        array = array.view(pa.int32())
    found: list[Any] = array.to_pylist()
    return found


def _spans(array: pa.Array) -> list[tuple[int, int] | None]:
    offsets = array.offsets.to_pylist()
    return [(offsets[i], offsets[i + 1]) if ok else None for i, ok in enumerate(array.is_valid().to_pylist())]


def as_expected(schema: Any, value: Any) -> Any:
    """Return a value that fastavro read, without logical types, as `plain` returns it.

    For schemas whose unions are of null and one type. fastavro returns defaults as they are in the JSON text, without
    the defaults of fields inside.
    """
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        return None if value is None or not others else as_expected(others[0], value)
    if isinstance(value, dict) and schema["type"] == "record":
        found = {each["name"]: value.get(each["name"], each.get("default")) for each in schema["fields"]}
        return {each["name"]: as_expected(each["type"], found[each["name"]]) for each in schema["fields"]}
    if isinstance(value, dict):
        return {key: as_expected(schema["values"], each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_expected(schema["items"], each) for each in value]
    if schema == "bytes" and isinstance(value, str):
        return value.encode("latin-1")
    if schema == "float":  # fastavro keeps the digits of a promoted number
        return struct.unpack("<f", struct.pack("<f", value))[0]
    return expected(schema, value)


def tagged(schema: Any, value: Any) -> Any:
    """Return a value of `plain` in the form of tests/interop/java/AvroValues.java."""
    if isinstance(schema, list):
        others = [each for each in schema if "null" not in (each, each["type"] if isinstance(each, dict) else each)]
        if value is None or not others:
            return None
        if len(others) == 1:
            return tagged(others[0], value)
        (found,) = ((i, value[f"member{i}"]) for i in range(len(others)) if value[f"member{i}"] is not None)
        return tagged(others[found[0]], found[1])
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return {each["name"]: tagged(each["type"], value[each["name"]]) for each in schema["fields"]}
    if kind == "array":
        return [tagged(schema["items"], each) for each in value]
    if kind == "map":
        return {tagged("string", key): tagged(schema["values"], each) for key, each in value.items()}
    if isinstance(value, float):
        single = kind == "float"
        (bits,) = struct.unpack("<i" if single else "<q", struct.pack("<f" if single else "<d", value))
        return ("f" if single else "d") + ("nan" if value != value else str(bits))
    if isinstance(value, bytes):
        return f"b{value.hex()}"
    return f"s{value.encode().hex()}" if isinstance(value, str) else value
