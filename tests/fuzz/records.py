"""Mutated record sets through both reading paths: the same rows, the same errors, nothing but kwire errors.

`./dev fuzz` runs run(inputs, seed) for long; a short run is part of the suite. With `guarded=True` every buffer that a
kernel reads from or writes to ends at a page that may not be touched, so a step over its end kills the process: such
runs belong in a process of their own (tests/records/test_hostile_bytes.py, `python -m tests.fuzz.records guarded 500`).
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import random
import sys
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from tests import golden
from tests.records.both_paths import through_columns, through_objects
from tests.records.building import with_right_checksums

from kwire.native.arrays import WIDE
from kwire.records import Batch
from kwire.records.columns import arrow_columns
from kwire.records.columns.arrow_columns import ArrowColumns
from kwire.records.columns.decoder import ColumnDecoder

K = TypeVar("K")
LONGEST_SEED = 4096  # bytes: longer ones spend the time in places that are all alike
NO_ACCESS = 0  # PROT_NONE
INTERESTING = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF)


def seeds() -> list[bytes]:
    """Return the record sets that Kafka wrote, and the invalid ones made from them."""
    found = [golden.unpack(line["b64"]) or b"" for line in (*golden.record_sets(), *golden.reads_of_invalid_bytes())]
    return sorted({data for data in found if 0 < len(data) <= LONGEST_SEED})


def mutated(data: bytes, others: list[bytes], source: random.Random) -> bytes:
    """Return data with one to four changes, mostly with corrected checksums so that the fields are parsed."""
    out = bytearray(data)
    for _ in range(source.randint(1, 4)):
        kind = source.randrange(7)
        at = source.randrange(len(out)) if out else 0
        if kind == 0 and out:
            out[at] ^= 1 << source.randrange(8)
        elif kind == 1 and out:
            out[at] = source.choice(INTERESTING)
        elif kind == 2 and out:
            width = source.choice((2, 4, 8))
            number = source.choice((0, 1, -1, 2 ** (8 * width - 1) - 1, -(2 ** (8 * width - 1)), len(out)))
            out[at : at + width] = number.to_bytes(width, "big", signed=True)
        elif kind == 3:
            del out[at : at + source.randint(1, 20)]
        elif kind == 4:
            out[at:at] = bytes(source.choice(INTERESTING) for _ in range(source.randint(1, 12)))
        elif kind == 5:
            other = source.choice(others)
            out[at:at] = other[source.randrange(len(other)) :]
        else:
            del out[at:]
    return with_right_checksums(bytes(out)) if source.random() < 0.85 else bytes(out)


def run(inputs: int, seed: int, guarded: bool = False) -> int:
    """Run this number of mutated inputs and return it; an AssertionError or another exception is a finding."""
    source = random.Random(seed)
    corpus = seeds()
    limits = guard_pages() if guarded else contextlib.nullcontext()
    with limits as guard:
        for _ in range(inputs):
            data = mutated(source.choice(corpus), corpus, source)
            settings: dict[str, Any] = {"max_decompressed_bytes": source.choice((100, 5000, 1 << 20))}
            try:
                parts = {"max_rows": source.choice((1, 3, 32768)), "max_bytes": source.choice((1, 200, 8 << 20))}
                given = guard.holding(data) if guard else data
                assert through_columns(given, **settings, **parts) == through_objects(given, **settings)
            except BaseException:
                print(f"seed {seed}, settings {settings}, input {data.hex()}", file=sys.stderr)
                raise
    return inputs


class GuardedMemory:
    """Memory that ends at a guard page, which can be neither read nor written."""

    def __init__(self) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.kept: list[Any] = []

    def allocate(self, n_bytes: int) -> Any:
        """Return uint8[n_bytes] followed by a guard page."""
        page = mmap.PAGESIZE
        pages = (n_bytes + page - 1) // page
        whole = np.frombuffer(mmap.mmap(-1, (pages + 1) * page), np.uint8)
        end = whole.ctypes.data + pages * page
        if self.libc.mprotect(ctypes.c_void_p(end), ctypes.c_size_t(page), NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect")
        return whole[pages * page - n_bytes : pages * page]

    def allocate_apart(self, sizes: Mapping[K, int], begins: Mapping[K, bytes]) -> dict[K, pa.Buffer]:
        """Allocate what kwire.native.buffers.allocate_together does, each part by itself."""
        parts = {}
        for each, size in sizes.items():
            memory, begin = self.allocate(size), begins.get(each, b"")
            memory[: len(begin)] = np.frombuffer(begin, np.uint8)
            parts[each] = pa.py_buffer(memory)
        return parts

    def holding(self, data: bytes) -> memoryview:
        """Return data in guarded memory."""
        memory = self.allocate(len(data))
        memory[:] = np.frombuffer(data, np.uint8)
        return memoryview(memory)


@contextlib.contextmanager
def guard_pages() -> Iterator[GuardedMemory]:
    """Place the output of kernels, and decompressed payloads, before guard pages too."""
    guard = GuardedMemory()
    originals = ArrowColumns.allocate, ArrowColumns.shrunk, ColumnDecoder.decompress
    together = arrow_columns.allocate_together
    decompress_batch = Batch.decompress

    def section(self: Batch, payload: memoryview) -> memoryview:
        return guard.holding(bytes(decompress_batch(self, payload)))

    def allocate(self: ArrowColumns, place: int, n_bytes: int) -> None:
        memory = guard.allocate(n_bytes)
        buffer = pa.py_buffer(memory)
        self.buffers[place], self.addresses[place] = buffer, buffer.address

    def shrunk(self: ArrowColumns, place: int, n_bytes: int) -> Any:
        return self.buffers[place].slice(0, n_bytes)

    def decompress(self: ColumnDecoder, *arguments: Any) -> int:
        if arguments[-1]:
            return -1  # one payload in a scratch buffer: it ends where the buffer does
        written = originals[2](self, *arguments)
        payload = bytes(self.scratch[:written])
        exact = guard.holding(payload)
        self.scratch, self.scratch_address = exact, np.frombuffer(exact, np.uint8).ctypes.data if payload else 0
        guard.kept[:] = [exact]
        return written

    ArrowColumns.allocate, ArrowColumns.shrunk, ColumnDecoder.decompress = allocate, shrunk, decompress  # type: ignore[method-assign]
    arrow_columns.allocate_together = guard.allocate_apart
    Batch.decompress = section  # type: ignore[method-assign]
    try:
        yield guard
    finally:
        ArrowColumns.allocate, ArrowColumns.shrunk, ColumnDecoder.decompress = originals  # type: ignore[method-assign]
        arrow_columns.allocate_together = together
        Batch.decompress = decompress_batch  # type: ignore[method-assign]


assert WIDE == 32  # the slack that ArrowColumns adds is part of what is guarded


if __name__ == "__main__":
    print(run(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1, guarded=sys.argv[1] == "guarded"))
