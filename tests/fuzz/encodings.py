"""Random definitions and integer encodings: kernel, walker, columns and a third writer give the same bytes.

The third writer is `reference_bytes`: one function, written from the specification alone (docs/spec/messages.md, parts
3 and 6), that shares only the model of definitions with the package. Then the bytes are mutated, and kernel and walker
must still agree. `./dev fuzz` calls `run(inputs, seed)`.
"""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pyarrow as pa
from tests.fuzz.messages import Target, make_invalid, mutate
from tests.messages.test_any_definition import Filler, Writer

from kwire import schema
from kwire.errors import DecodeError
from kwire.plan.columns import ColumnReader
from kwire.plan.nested_columns import NestedReader
from kwire.schema.model import STRUCT_DEFAULTS, Field, Message, Struct

FIXED = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
    "fixed16": ">h",
    "fixed32": ">i",
    "fixed64": ">q",
}


def reference_bytes(spec: Message, version: int, obj: Any) -> bytes:
    """Encode a message as the specification defines it."""
    return _struct(spec, version, spec.struct, obj)


def _uvarint(n: int) -> bytes:
    assert n >= 0
    return bytes([n]) if n < 128 else bytes([n % 128 + 128]) + _uvarint(n // 128)


def _struct(spec: Message, version: int, struct: Struct, obj: Any) -> bytes:
    out = b""
    tagged = dict(obj.unknown_tagged_fields)
    for field in struct.fields:
        value = getattr(obj, field.attr)
        if version not in field.versions:
            continue
        if version not in field.tagged:
            out += _value(spec, version, field, value)
        elif not _is_default(field, value):
            assert field.tag is not None
            tagged[field.tag] = _value(spec, version, field, value)
    if version in spec.flexible:
        out += _uvarint(len(tagged))
        for tag, data in sorted(tagged.items()):
            out += _uvarint(tag) + _uvarint(len(data)) + data
    return out


def _is_default(field: Field, value: Any) -> bool:
    if field.default is STRUCT_DEFAULTS:
        assert field.struct is not None
        return value is not None and all(_is_default(f, getattr(value, f.attr)) for f in field.struct.fields)
    if value is None or field.default is None:
        return value is field.default
    return bool(len(value) == 0 if field.default == () else value == field.default)


def _length(compact: bool, width: str, n: int | None) -> bytes:
    if compact:
        return _uvarint(0 if n is None else n + 1)
    return struct.pack(width, -1 if n is None else n)


def _value(spec: Message, version: int, field: Field, value: Any) -> bytes:
    compact = version in spec.flexible
    if field.is_array:
        out = _length(compact, ">i", None if value is None else len(value))
        return out + b"".join(_element(spec, version, field, each) for each in value or ())
    if field.struct is not None and version in field.nullable:
        null, present = (b"\0", b"\1") if version in field.tagged else (b"\xff", b"\1")
        return null if value is None else present + _struct(spec, version, field.struct, value)
    return _element(spec, version, field, value)


def _element(spec: Message, version: int, field: Field, value: Any) -> bytes:
    if field.struct is not None:
        return _struct(spec, version, field.struct, value)
    if field.type in ("string", "bytes", "records"):
        data = value.encode() if isinstance(value, str) else value
        width = ">h" if field.type == "string" else ">i"
        return _length(version in spec.flexible, width, None if data is None else len(data)) + (data or b"")
    if field.type == "uuid":
        return bytes(value.bytes)
    name = next((name for versions, name in field.encodings if version in versions), field.type)
    if name in FIXED:
        return struct.pack(FIXED[name], value)
    bits = int(name[-2:])
    assert -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
    if name.startswith("packed"):
        return _uvarint(2 * value if value >= 0 else -2 * value - 1)
    return _uvarint(value % 2**bits)


def drawn(draw: random.Random) -> list[Target]:
    """Draw a definition; return each version with a few messages that the reference encoded."""
    cls = schema.compile(schema.parse(json.dumps(Writer(draw, encodings=1.0).definition())))
    found = []
    for version in cls.VALID_VERSIONS:
        target = Target(cls, version)
        filler = Filler(draw, cls, version)
        for _ in range(3):
            obj = filler.message()
            wire = reference_bytes(cls.SPEC, version, obj)
            assert target.kernel_encode(obj) == wire, f"{cls.DEFINITION}: {obj}"
            assert target.writer.write(obj) == wire, f"{cls.DEFINITION}: {obj}"
            assert target.kernel_decode(wire) == obj, f"{cls.DEFINITION}: {wire.hex()}"
            assert target.walker_decode(wire) == obj, f"{cls.DEFINITION}: {wire.hex()}"
            assert obj.encoded_size(version=version) == len(wire)
            target.wires.append(wire)
        check_columns(target)
        found.append(target)
    return found


def check_columns(target: Target) -> None:
    """Check the integers of a message, and arrays of them, as flat and nested columns."""
    spec: Message = target.type.SPEC
    fields = [f for f in spec.struct.fields if f.type.startswith(("int", "uint"))]
    objects = [target.walker_decode(wire) for wire in target.wires]
    paths = [f.attr for f in fields]
    rows = ColumnReader(spec, target.version, paths).read_all(target.wires).to_pylist()
    assert rows == [{path: getattr(obj, path) for path in paths} for obj in objects], f"{target}: {rows}"
    paths = [f.attr for f in fields if target.version in f.versions]
    nested = NestedReader(spec, target.version).read(pa.array(target.wires, pa.binary())).to_pylist()
    found = [{path: row[path] for path in paths} for row in nested]
    assert found == [{path: getattr(obj, path) for path in paths} for obj in objects], f"{target}: {found}"


def run(inputs: int, seed: int) -> None:
    """Check this number of mutated inputs, 40 per definition. Raises AssertionError with the input."""
    draw = random.Random(seed)
    taken = made = 0
    while made < inputs:
        for target in drawn(draw):
            for i in range(10):
                wire = draw.choice(target.wires)
                if i % 5:
                    taken += target.check_bytes(mutate(wire, draw.choice(target.wires), draw))
                else:
                    obj = target.walker_decode(wire)
                    assert not isinstance(obj, DecodeError)
                    make_invalid(obj, draw)
                    taken += target.check_object(obj)
                made += 1
    print(f"encodings: {made} inputs, {taken} taken, no difference", flush=True)
