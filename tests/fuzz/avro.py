"""Mutated Avro values through the kernels and plain Python: the same columns, bytes and errors, nothing else.

Schemas are drawn, and so are readers' schemas and projections. With `guarded=True` the input and every buffer that the
kernel writes to end at a page that may not be touched, so a step over an end kills the process: such runs belong in a
process of their own (tests/schemas/avro/test_hostile_bytes.py).
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import pyarrow as pa
from tests.fuzz.guarded_buffers import guarded_columns
from tests.fuzz.records import GuardedMemory
from tests.schemas.avro.drawing import Drawing, plain, written
from tests.schemas.avro.evolving import evolved

from kwire import native
from kwire.errors import InvalidSchema
from kwire.schemas.avro import Decoder, Encoder, Schema, parse
from kwire.schemas.plan_encoder import PlanEncoder

INTERESTING = (0, 1, 2, 3, 0x7F, 0x80, 0x81, 0xC3, 0xED, 0xFE, 0xFF)
NUMBERS = (b"\x80\x80\x80\x80\x10", b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"\xff" * 9 + b"\x02", b"\x80\0")
VALUES_PER_SCHEMA = 60


def mutate(data: bytes, source: random.Random) -> bytes:
    """Return data with up to three changes."""
    out = bytearray(data)
    for _ in range(source.randint(0, 3)):
        at = source.randrange(len(out) + 1)
        kind = source.randrange(6)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << source.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = source.choice(INTERESTING)
        elif kind == 2:
            out[at:at] = source.choice(NUMBERS)
        elif kind == 3:
            del out[at : at + source.randint(1, 6)]
        elif kind == 4:
            out[at:at] = bytes(source.choice(INTERESTING) for _ in range(source.randint(1, 5)))
        else:
            del out[at:]
    return bytes(out)


def paths(kind: pa.DataType, before: str = "") -> Iterator[str]:
    """Yield the dotted paths of the fields of a type."""
    while pa.types.is_list(kind) or pa.types.is_map(kind):
        kind = kind.item_type if pa.types.is_map(kind) else kind.value_type
    if pa.types.is_struct(kind):
        for each in kind:
            yield f"{before}{each.name}"
            yield from paths(each.type, f"{before}{each.name}.")


def decoders(source: random.Random) -> tuple[Drawing, Any, list[Decoder]]:
    """Draw a writer's schema; returns it with decoders for it, for another reader, and for some columns."""
    drawing = Drawing(source, max_depth=source.choice((1, 3, 5)))
    drawn = drawing.record() if source.random() < 0.8 else drawing.schema()
    writer = parse(json.dumps(drawn))
    found = [Decoder([writer], writer)]
    with suppress(InvalidSchema):  # an evolved union does not always have the writer's type
        found.append(Decoder([writer], parse(json.dumps(evolved(drawn, source)))))
    if known := list(paths(found[0].type)):
        found.append(Decoder([writer], writer, columns=source.sample(known, source.randint(1, min(3, len(known))))))
    return drawing, drawn, found


@contextmanager
def plain_python() -> Iterator[None]:
    """Run without compiled code."""
    level = native.LEVEL
    native.LEVEL = None
    try:
        yield
    finally:
        native.LEVEL = level


def compare(decoder: Decoder, data: bytes | memoryview) -> pa.Array:
    """Check that the kernel decodes a value as plain Python does, and leaves only bad ones; returns the column."""
    offsets, data = np.array([0, len(data)], np.int32), pa.py_buffer(data)
    values = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(offsets), data])
    decoded = decoder.decode(values)
    with plain_python():
        wanted = decoder.decode(values)
    assert repr(list(decoded.errors)) == repr(list(wanted.errors))
    decoded.array.validate(full=True)
    wanted.array.validate(full=True)
    assert repr(plain(decoded.array)) == repr(plain(wanted.array))  # NaN differs from itself
    bounds = np.zeros(1, np.int64), np.array([data.size], np.int64)
    _, left = decoder._decoder.run_kernel(data, *bounds, decoder._roots[:1])
    assert left.tolist() == decoded.errors.rows.tolist()
    return decoded.array


def compare_encoded(schema: Schema, array: pa.Array) -> None:
    """Check that the kernel and plain Python encode an array to the same bytes, with the same errors."""
    encoder = Encoder(schema)
    encoded = encoder.encode(array, prefix=b"prefix")
    encoded.array.validate(full=True)
    with plain_python():
        wanted = encoder.encode(array, prefix=b"prefix")
    assert repr(list(encoded.errors)) == repr(list(wanted.errors))
    assert encoded.array.to_pylist() == wanted.array.to_pylist()


def run(inputs: int, seed: int, guarded: bool = False) -> int:
    """Run this number of mutated inputs and return it; an AssertionError or another exception is a finding."""
    source = random.Random(seed)
    done = 0
    with guard_pages() if guarded else nullcontext() as guard:
        while done < inputs:
            drawing, drawn, found = decoders(source)
            schema = parse(json.dumps(drawn))
            for _ in range(min(VALUES_PER_SCHEMA, inputs - done)):
                data = mutate(written(drawn, drawing.value(drawn)), source)
                decoder = source.choice(found)
                try:
                    array = compare(decoder, guard.holding(data) if guard else data)
                    if decoder is found[0]:
                        compare_encoded(schema, array)
                except BaseException:
                    print(f"seed {seed}, schema {json.dumps(drawn)}, input {data.hex()}", file=sys.stderr)
                    raise
                if guard:
                    guard.kept.clear()
                done += 1
    print(f"avro: {done} inputs{', nothing outside was touched' if guarded else ''}")
    return done


@contextmanager
def guard_pages() -> Iterator[GuardedMemory]:
    """Place the columns and the output of kernels before guard pages too, as small as they can be."""
    output = PlanEncoder.allocate, PlanEncoder.resized
    with guarded_columns() as guard:

        def resized(self: PlanEncoder, buffer: pa.Buffer, n_bytes: int, used: int) -> pa.Buffer:
            memory = guard.allocate(n_bytes)
            memory[:used] = np.frombuffer(buffer, np.uint8)[:used]
            return pa.py_buffer(memory)

        PlanEncoder.allocate = lambda self, n_bytes: pa.py_buffer(guard.allocate(1))  # type: ignore[method-assign]
        PlanEncoder.resized = resized  # type: ignore[method-assign]
        try:
            yield guard
        finally:
            PlanEncoder.allocate, PlanEncoder.resized = output  # type: ignore[method-assign]


if __name__ == "__main__":
    print(run(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1, guarded=sys.argv[1] == "guarded"))
