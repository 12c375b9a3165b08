"""Mutated JSON through the kernel and plain Python: the same columns and errors, nothing else.

Schemas are drawn, and so are projections. With `guarded=True` the input and every buffer that the kernel writes to end
at a page that may not be touched, so a step over an end kills the process: such runs belong in a process of their own
(tests/schemas/json_schema/test_kernel.py).
"""

from __future__ import annotations

import json
import random
import string
import sys
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from tests.fuzz.avro import mutate
from tests.fuzz.guarded_buffers import guarded_columns
from tests.fuzz.records import GuardedMemory

from kwire import native
from kwire.errors import DecodeError
from kwire.schemas.column_plan import ROOT
from kwire.schemas.json_schema import Decoder, JsonSchema, parse
from kwire.schemas.json_schema.parsing import Node
from kwire.schemas.schema_codec import Decoded, row_errors

SCHEMA_VALUES, COLUMN_VALUES = 60, 6
TEXTS = ("", "a", "ü", "line\n", 'a "quoted" \\', "\U0001f600", "\0\x1f\x7f", "ab" * 40, "\u2028/")
NAMES = ("a", "b", "id", "name", "äö", "a b", "b" * 20, "", "\\")
SIGNS = (*'{}[],:"\\ueE0+-.1tfn \n', "\\ud83d", "\\ude00", "null", "1e400", "-0", "00", "\xff", '"a":1,')
KINDS = ("boolean", "integer", "number", "string", "any", "object", "array", "map")
INTEGERS = (0, 1, -1, 7, 2**31, 2**53 + 1, -(2**63), 2**63 - 1, 2**63, 10**25)
FLOATS = (0.0, -0.0, 1.0, 0.1, 1 / 3, -2.5e-7, 1e22, 1e23, 1e300, 5e-324, 123456789.123456789)


def schema(source: random.Random, depth: int = 0) -> dict[str, Any]:
    """Draw a schema."""
    kind = source.choice(KINDS if depth < 3 else KINDS[:5])
    match kind:
        case "any":
            return {}
        case "object":
            names = source.sample(NAMES, source.randint(1, 6))
            return {"type": "object", "properties": {name: schema(source, depth + 1) for name in names}}
        case "array":
            return {"type": "array", "items": schema(source, depth + 1)}
        case "map":
            return {"type": "object", "additionalProperties": schema(source, depth + 1)}
    return {"type": kind}


def value(source: random.Random, given: dict[str, Any], depth: int = 0) -> Any:
    """Draw a value of a schema, now and then of another type."""
    if source.random() < 0.08:
        return None
    if not given or source.random() < 0.04:
        given = schema(source, depth) if depth < 4 else {"type": "string"}
    match given.get("type"):
        case "object" if "properties" in given:
            found = {name: value(source, each, depth + 1) for name, each in given["properties"].items()}
            kept = [name for name in found if source.random() < 0.85]
            source.shuffle(kept)
            extra = {source.choice(TEXTS): value(source, {}, depth + 1)} if source.random() < 0.2 else {}
            return {name: found[name] for name in kept} | extra
        case "object":
            names = [source.choice((*NAMES, *TEXTS)) for _ in range(source.choice((0, 1, 3, 20)))]
            return {name: value(source, given["additionalProperties"], depth + 1) for name in names}
        case "array":
            return [value(source, given["items"], depth + 1) for _ in range(source.choice((0, 1, 2, 9)))]
        case "boolean":
            return source.random() < 0.5
        case "integer":
            return source.choice(INTEGERS) if source.random() < 0.5 else source.randrange(-1000, 1000)
        case "number":
            return source.choice((*FLOATS, *INTEGERS)) if source.random() < 0.5 else source.uniform(-1e4, 1e4)
    return source.choice(TEXTS) if source.random() < 0.7 else "".join(source.choices(string.printable, k=9))


def loosened(node: Node) -> Node:
    """Return a node in which strings take every JSON value."""
    return replace(
        node,
        kind="string_or_text" if node.kind == "string" else node.kind,
        members={name: loosened(each) for name, each in node.members.items()},
        element=None if node.element is None else loosened(node.element),
    )


def written(source: random.Random, given: Any) -> bytes:
    """Write a value as one of the programs that write JSON does."""
    ascii_only, indent = source.random() < 0.4, source.choice((None, None, 1))
    separators = source.choice(((",", ":"), (", ", ": "), (" ,\r\n", "\t: ")))
    return json.dumps(given, ensure_ascii=ascii_only, indent=indent, separators=separators).encode()


def damaged(source: random.Random, data: bytes) -> bytes:
    """Change some bytes, half of the time to what JSON has."""
    if source.random() < 0.5:
        return mutate(data, source)
    at = source.randrange(len(data) + 1)
    return data[:at] + source.choice(SIGNS).encode() + data[at + source.choice((0, 0, 1)) :]


def in_plain_python(decoder: Decoder, values: list[bytes]) -> Decoded:
    """Decode values without the kernel."""
    rows, errors = list[Any](), list[tuple[int, DecodeError]]()
    for row, data in enumerate(values):
        rows.append(None)
        try:
            rows[-1] = decoder.read(data)
        except DecodeError as error:
            errors.append((row, error))
    return Decoded(pa.array(rows, decoder.type), row_errors(errors))


def compare(decoder: Decoder, values: list[bytes], guard: GuardedMemory | None = None) -> int:
    """Check that the kernel and plain Python decode values alike; returns how many the kernel left to Python."""
    column = pa.array(values, pa.binary())
    if guard:
        _, offsets, data = column.buffers()
        data = pa.py_buffer(guard.holding(data.to_pybytes()))
        column = pa.Array.from_buffers(column.type, len(values), [None, offsets, data])
    zeros = np.zeros(len(values), np.int64)
    decoded = decoder.decode(column, zeros, zeros.astype(np.int32))
    wanted = in_plain_python(decoder, values)
    decoded.array.validate(full=True)
    assert decoded.errors == wanted.errors
    assert repr(decoded.array.to_pylist()) == repr(wanted.array.to_pylist())  # 0.0 and -0.0 differ
    return len(left_to_python(decoder, values)) if native.LEVEL is not None else len(values)


def left_to_python(decoder: Decoder, values: list[bytes]) -> list[int]:
    """Return the rows that the kernel does not read."""
    ends = np.cumsum([len(each) for each in values], dtype=np.int64)
    starts, data = ends - [len(each) for each in values], pa.py_buffer(b"".join(values) or b"\0")
    _, left = decoder._decoder.run_kernel(data, starts, ends, np.full(len(values), ROOT, np.int64))
    found: list[int] = left.tolist()
    return found


def run(inputs: int, seed: int, guarded: bool = False) -> int:
    """Run this number of mutated inputs and return it; an AssertionError or another exception is a finding."""
    source = random.Random(seed)
    done = left = 0
    with guarded_columns() if guarded else nullcontext() as guard:
        while done < inputs:
            given = schema(source)
            decoders = [Decoder(parse(json.dumps(given)))]
            decoders.append(
                Decoder(JsonSchema(document=True, references={}, root=loosened(parse(json.dumps(given)).root)))
            )
            if names := list(given.get("properties", [])):
                decoders.append(Decoder(parse(json.dumps(given)), source.sample(names, source.randint(1, len(names)))))
            for _ in range(SCHEMA_VALUES // COLUMN_VALUES):
                values = [written(source, value(source, given)) for _ in range(COLUMN_VALUES)]
                values = [damaged(source, each) if source.random() < 0.4 else each for each in values]
                try:
                    left += compare(source.choice(decoders), values, guard)
                except BaseException:
                    print(f"seed {seed}, schema {json.dumps(given)}, input {values}", file=sys.stderr)
                    raise
                if guard:
                    guard.kept.clear()
                done += len(values)
    assert inputs < 1000 or done / 10 < left < done * 0.9
    print(f"json: {done} inputs{', nothing outside was touched' if guarded else ''}, {left} left to Python")
    return done


if __name__ == "__main__":
    print(run(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1, guarded=sys.argv[1] == "guarded"))
