"""Mutated Protobuf messages through the kernel and plain Python: the same columns and errors, nothing else.

Schemas are drawn, and so are projections. With `guarded=True` the input and every buffer that the kernel writes to end
at a page that may not be touched, so a step over an end kills the process: such runs belong in a process of their own
(tests/schemas/protobuf/test_hostile_bytes.py).
"""

from __future__ import annotations

import random
import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
from tests.fuzz.avro import mutate
from tests.fuzz.guarded_buffers import guarded_columns
from tests.fuzz.records import GuardedMemory
from tests.schemas.protobuf.drawing import Drawing, Writer

from kwire.errors import DecodeError
from kwire.schemas.column_plan import ROOT
from kwire.schemas.protobuf import Decoder
from kwire.schemas.protobuf.columns import _plain
from kwire.schemas.protobuf.reading import read_message
from kwire.schemas.schema_codec import Decoded, row_errors

SCHEMA_VALUES, COLUMN_VALUES = 60, 6


def in_plain_python(decoder: Decoder, values: list[bytes]) -> Decoded:
    """Decode values without the kernel."""
    rows, errors = list[Any](), list[tuple[int, DecodeError]]()
    for row, data in enumerate(values):
        rows.append(None)
        try:
            rows[-1] = read_message(decoder._node, data)
        except DecodeError as error:
            errors.append((row, error))
    return Decoded(pa.array(rows, decoder.type), row_errors(errors))


def compare(decoder: Decoder, values: list[bytes], guard: GuardedMemory | None = None, *, maps: bool = True) -> Decoded:
    """Check that the kernel and plain Python decode values to the same column, with the same errors; returns it.

    maps: whether the kernel may leave values without a fault to plain Python.
    """
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
    plain = _plain(decoder.type)  # Python has no time after the year 9999
    found, expected = (each.array.cast(plain).to_pylist() for each in (decoded, wanted))
    assert repr(found) == repr(expected)  # NaN differs from itself
    if not maps:
        ends = np.cumsum([len(each) for each in values], dtype=np.int64)
        starts, data = ends - [len(each) for each in values], pa.py_buffer(b"".join(values) or b"\0")
        _, left = decoder._decoder.run_kernel(data, starts, ends, np.full(len(values), ROOT, np.int64))
        assert left.tolist() == [error.row for error in decoded.errors]
    return decoded


def run(inputs: int, seed: int, guarded: bool = False) -> int:
    """Run this number of mutated inputs and return it; an AssertionError or another exception is a finding."""
    source = random.Random(seed)
    done = bad = 0
    with guarded_columns() if guarded else nullcontext() as guard:
        while done < inputs:
            maps = source.random() < 0.5
            drawing = Drawing(source, maps=maps)
            message, kind, writer = drawing.ours(), drawing.theirs().DESCRIPTOR, Writer(source)
            decoders = [Decoder(message)]
            if names := [field.name for field in message.fields]:
                decoders.append(Decoder(message, source.sample(names, source.randint(1, min(3, len(names))))))
            for _ in range(SCHEMA_VALUES // COLUMN_VALUES):
                values = [mutate(writer.message(kind), source) for _ in range(COLUMN_VALUES)]
                try:
                    bad += len(compare(source.choice(decoders), values, guard, maps=maps).errors)
                except BaseException:
                    shown = [each.hex() for each in values]
                    print(f"seed {seed}, schema {drawing.file}, input {shown}", file=sys.stderr)
                    raise
                if guard:
                    guard.kept.clear()
                done += len(values)
    assert inputs < 1000 or done / 10 < bad < done * 0.9
    print(f"protobuf: {done} inputs{', nothing outside was touched' if guarded else ''}, {bad} with a fault")
    return done


if __name__ == "__main__":
    print(run(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1, guarded=sys.argv[1] == "guarded"))
