"""The codec on memory that ends at a guard page: an access past the end kills the process.

Run in a separate process: `python -m tests.fuzz.guarded_messages INPUTS SEED` (tests/fuzz/test_messages.py does).
Input, rows and jobs all end at such a page.
"""

from __future__ import annotations

import ctypes
import mmap
import random
import sys
from typing import Any

import msgspec
import numpy as np
from tests.fuzz.encodings import drawn
from tests.fuzz.messages import Refused, Target, make_invalid, mutate, refuse, targets

from kwire import native

NO_ACCESS, READ_WRITE = 0, 3  # PROT_NONE, PROT_READ | PROT_WRITE
PAGE = mmap.PAGESIZE


class Guarded:
    """Up to `size` bytes between two guard pages, at the end."""

    def __init__(self, size: int) -> None:
        self.room = -(-size // PAGE) * PAGE
        self.memory = mmap.mmap(-1, self.room + 2 * PAGE)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        libc = ctypes.CDLL(None, use_errno=True)
        for page in (self.base, self.base + PAGE + self.room):
            assert libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), NO_ACCESS) == 0

    def end(self, size: int) -> int:
        """Return the address of `size` bytes that end at the guard page."""
        assert size <= self.room
        return self.base + PAGE + self.room - size

    def holding(self, data: bytes) -> int:
        """Copy data there and return its address."""
        address = self.end(len(data))
        ctypes.memmove(address, data, len(data))
        return address


def words(numbers: Any) -> bytes:
    """Return the bytes of int64 in native order."""
    return np.array(numbers, np.int64).tobytes()


class Bench:
    """One guarded buffer of each kind."""

    def __init__(self) -> None:
        self.source, self.rows, self.pool = Guarded(1 << 20), Guarded(1 << 20), Guarded(1 << 20)

    def decode(self, target: Target, data: bytes, views: bool, partial: bool) -> Any:
        """Return the object, or None if compiled code rejects the bytes. Its views are valid until the next call."""
        decode, decode_from = native.decoders(self.job(target), refuse, target.job)
        source = (ctypes.c_char * len(data)).from_address(self.source.holding(data))
        try:
            obj = decode_from(source, 0, views)[0] if partial else decode(source, views)
        except Refused:
            return None
        return obj

    def encode(self, target: Target, obj: object) -> bytes | None:
        """Return the bytes, or None if compiled code leaves the object to the walker."""
        try:
            return native.encoder(self.job(target), refuse, target.job)(obj)
        except Refused:
            return None

    def job(self, target: Target) -> int:
        """Return the address of a guarded copy of the target's job and rows."""
        rows, *others = (ctypes.c_int64 * 2).from_address(target.job.address)
        rows = self.rows.holding(ctypes.string_at(rows, 64 * len(target.codec.plan.rows)))
        return self.pool.holding(words([rows, *others]))


def run(inputs: int, seed: int) -> None:
    """Run mutated inputs and invalid objects."""
    draw = random.Random(seed)
    bench = Bench()
    all_targets = [*targets(("3.9.1",)), *(target for _ in range(60) for target in drawn(draw))]
    pack = msgspec.msgpack.Encoder(uuid_format="bytes").encode
    for _ in range(inputs):
        target = draw.choice(all_targets)
        wire = draw.choice(target.wires)
        data = mutate(wire, draw.choice(target.wires), draw)
        partial = draw.random() < 0.3
        found, expected = bench.decode(target, data, draw.random() < 0.3, partial), target.kernel_decode(data)
        assert (found is None) == (expected is None) or partial, f"{target}: {data.hex()}"
        if expected is not None:
            assert pack(found) == pack(expected), f"{target}: {data.hex()}"
        obj = target.walker_decode(wire)
        make_invalid(obj, draw)
        assert bench.encode(target, obj) == target.kernel_encode(obj), f"{target}: {obj}"
    print(f"guarded: {inputs} inputs, nothing outside was touched")


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))
