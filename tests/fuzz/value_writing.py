"""Arrow arrays through the encoders of Protobuf and JSON: the kernel's bytes are those of plain Python, and of others.

Schemas and values are drawn. Protobuf is compared with google.protobuf byte for byte, JSON with Python's own module and
with jsonschema. With `guarded=True` every buffer that the kernel writes to ends at a page that may not be touched.
"""

from __future__ import annotations

import json
import random
import sys
from contextlib import nullcontext
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError as GoogleError
from tests.fuzz import json_values
from tests.fuzz.avro import guard_pages, plain_python
from tests.schemas.protobuf.drawing import Drawing, Writer

from kwire.schemas import json_schema, protobuf
from kwire.schemas.schema_codec import Decoded, SchemaDecoder, SchemaEncoder

VALUES = 12
WORDS: dict[str, tuple[tuple[str, tuple[Any, ...]], ...]] = {
    "integer": (("minimum", (0, -5.5, 2**63)), ("exclusiveMaximum", (7, 500, 1e300)), ("exclusiveMinimum", (0, -1))),
    "number": (("maximum", (0, 0.1, 1e22)), ("exclusiveMinimum", (-1, 0.0, -1e300)), ("multipleOf", (1,))),
    "string": (
        ("minLength", (1, 2)),
        ("maxLength", (1, 9)),
        ("enum", (list(json_values.TEXTS[:4]),)),
        ("const", ("a",)),
    ),
    "array": (("minItems", (1,)), ("maxItems", (1, 2)), ("uniqueItems", (True,))),
}


def limited(source: random.Random, schema: dict[str, Any]) -> dict[str, Any]:
    """Add limits, branches and references to a schema."""
    made = dict(schema)
    for name in ("items", "additionalProperties"):
        if name in made:
            made[name] = limited(source, made[name])
    if "properties" in made:
        made["properties"] = {name: limited(source, each) for name, each in made["properties"].items()}
        if source.random() < 0.3:
            made["required"] = source.sample(list(made["properties"]), 1)
        if source.random() < 0.3:
            made["additionalProperties"] = False
    if source.random() < 0.25:
        for word, values in WORDS.get(made.get("type", ""), ()):
            if source.random() < 0.4:
                made[word] = source.choice(values)
    if made.get("type") in json_values.KINDS and source.random() < 0.3:
        wrapped = (
            {"oneOf": [{"type": "null"}, made]} if source.random() < 0.5 else made | {"type": [made["type"], "null"]}
        )
        return wrapped | ({"title": "x"} if source.random() < 0.3 else {})
    return made


def decoded(decoder: SchemaDecoder, values: list[bytes]) -> pa.Array:
    """Decode values, of which some may be bad ones."""
    zeros = np.zeros(len(values), np.int64)
    return decoder.decode(pa.array(values, pa.binary()), zeros, zeros.astype(np.int32)).array


def compare(encoder: SchemaEncoder, array: pa.Array) -> Decoded:
    """Check that the kernel encodes an array as plain Python does; returns what it encoded."""
    found = encoder.encode(array, b"prefix")
    found.array.validate(full=True)
    with plain_python():
        wanted = encoder.encode(array, b"prefix")
    assert found.array.to_pylist() == wanted.array.to_pylist()
    assert found.errors == wanted.errors
    return found


def wider(kind: pa.DataType) -> pa.DataType:
    """Return a type with doubles for its floats."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, wider(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", wider(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, wider(kind.item_type))
    return pa.float64() if kind == pa.float32() else kind


def quieted(array: pa.Array) -> pa.Array:
    """Return the array with quiet NaNs of 32 bits.

    google.protobuf and the kernel write the bits of a signalling NaN that they have read. A float of Python is a
    double, in which such a NaN becomes a quiet one, for google.protobuf just as for our code in Python.
    """
    return array.cast(wider(array.type)).cast(array.type)


def check_json(source: random.Random) -> int:
    """Draw a schema and values, and compare; returns how many were written."""
    given = limited(source, json_values.schema(source))
    try:
        schema = json_schema.parse(json.dumps(given))
    except BaseException:
        print(f"schema {json.dumps(given)}", file=sys.stderr)
        raise
    loose = json.loads(json.dumps(given).replace('"oneOf": [{"type": "null"}, ', '"anyOf": [{"type": "null"}, '))
    values = [json_values.written(source, json_values.value(source, loose)) for _ in range(VALUES)]
    array = decoded(json_schema.Decoder(schema), values)
    array = array.slice(source.randrange(3))
    try:
        found = compare(json_schema.Encoder(schema, array.type), array)
        validator = jsonschema.Draft7Validator(given)
        bad = {error.row for error in found.errors}
        for row, data in enumerate(found.array.to_pylist()):
            if data is not None:
                validator.validate(json.loads(data.removeprefix(b"prefix")))
            else:
                assert row in bad or not array[row].is_valid
    except BaseException:
        print(f"schema {json.dumps(given)}, values {array.to_pylist()}", file=sys.stderr)
        raise
    return len(array) - len(found.errors)


def check_protobuf(source: random.Random) -> int:
    """Draw a file and messages, and compare; returns how many were written."""
    drawing = Drawing(source, maps=source.random() < 0.3, recursion=source.random() < 0.2)
    message, theirs = drawing.ours(), drawing.theirs()
    writer = Writer(source)
    values = [writer.message(theirs.DESCRIPTOR) for _ in range(VALUES)]
    array = decoded(protobuf.Decoder(message), values).slice(source.randrange(3))
    try:
        encoder = protobuf.Encoder(message, array.type)
        compare(encoder, quieted(array))
        found = encoder.encode(array, b"prefix")
        for row, data in enumerate(found.array.to_pylist()):
            if data is None or drawing.recursion:
                continue
            made = theirs.FromString(data.removeprefix(b"prefix"))
            if drawing.maps:  # their order is google.protobuf's
                assert made == theirs.FromString(made.SerializePartialToString())
            else:
                assert made.SerializePartialToString(deterministic=True) == data.removeprefix(b"prefix"), row
    except GoogleError:
        print(f"file {drawing.file}, values {array.to_pylist()}", file=sys.stderr)
        raise
    return len(array) - len(found.errors)


def run(inputs: int, seed: int, guarded: bool = False) -> None:
    """Run about this number of values of each format; an AssertionError or another exception is a finding."""
    source = random.Random(seed)
    written = {"json": 0, "protobuf": 0}
    with guard_pages() if guarded else nullcontext() as guard:
        for _ in range(0, inputs, VALUES):
            written["json"] += check_json(source)
            written["protobuf"] += check_protobuf(source)
            if guard:
                guard.kept.clear()
    print(f"value writing: {written}{', nothing outside was touched' if guarded else ''}")


if __name__ == "__main__":
    run(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1, guarded=sys.argv[1] == "guarded")
