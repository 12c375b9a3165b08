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

from kwire.errors import InvalidSchema
from kwire.schemas.avro import Decoder, Encoder, Schema, parse
from kwire.schemas.avro.encode_plan import bind
from kwire.schemas.avro.walker import Walker
from kwire.schemas.avro.writing import PlainWriter
from kwire.schemas.buffers import assemble

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


def compare(decoder: Decoder, data: bytes | memoryview) -> pa.Array:
    """Check that the kernel and the walker decode a value to the same column, with the same faults; returns it."""
    source = pa.py_buffer(data)
    bounds = np.zeros(1, np.int64), np.array([source.size], np.int64)
    roots = np.array(decoder._plan.roots, np.int64)
    decoded = decoder.decode_bounds(source, *bounds, roots)
    walker = Walker(decoder._plan)
    table = walker.run(source, *bounds, roots)
    finished = [walker.finished(each) for each in decoder._plan.columns]
    wanted = assemble(decoder._plan.columns[0], finished)
    assert decoded.errors._table.tolist() == table.tolist()
    decoded.array.validate(full=True)
    wanted.validate(full=True)
    assert repr(plain(decoded.array)) == repr(plain(wanted))  # NaN differs from itself
    return decoded.array


def compare_encoded(schema: Schema, array: pa.Array) -> None:
    """Check that the kernel and plain Python encode an array to the same bytes, with the same faults."""
    encoder = Encoder(schema)
    encoded = encoder.encode(array, prefix=b"prefix")
    encoded.array.validate(full=True)
    bound: dict[int, pa.Array] = {}
    bind(array, encoder._plan.columns[0], bound)
    nulls = array.is_null().to_numpy(zero_copy_only=False).astype(np.uint8)
    ends = np.zeros(len(array) + 1, np.int32)
    out, table = PlainWriter(encoder._plan, bound).run(b"prefix", nulls, ends)
    assert encoded.errors._table.tolist() == table.tolist()
    assert b"".join(each or b"" for each in encoded.array.to_pylist()) == out.to_pybytes()


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
    output = Encoder.allocate, Encoder.resized
    with guarded_columns() as guard:

        def resized(self: Encoder, buffer: pa.Buffer, n_bytes: int, used: int) -> pa.Buffer:
            memory = guard.allocate(n_bytes)
            memory[:used] = np.frombuffer(buffer, np.uint8)[:used]
            return pa.py_buffer(memory)

        Encoder.allocate = lambda self, n_bytes: pa.py_buffer(guard.allocate(1))  # type: ignore[method-assign]
        Encoder.resized = resized  # type: ignore[method-assign]
        try:
            yield guard
        finally:
            Encoder.allocate, Encoder.resized = output  # type: ignore[method-assign]


if __name__ == "__main__":
    print(run(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1, guarded=sys.argv[1] == "guarded"))
