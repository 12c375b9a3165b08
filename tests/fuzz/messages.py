"""Kernel and walker on mutated messages: both accept the same ones, read the same objects, write the same bytes.

`./dev fuzz` calls `run(inputs, seed)`; a short run is part of the test suite. Every input starts as bytes that Kafka
wrote (tests/data), which are truncated, flipped, extended or given hostile lengths, several times. Messages that both
read are written by both; and objects get invalid values, which the kernel may accept only if the walker writes the same
bytes.
"""

from __future__ import annotations

import random
import time
from typing import Any

import msgspec
from tests import golden

from kwire import native, plan
from kwire.errors import DecodeError, EncodeError
from kwire.messages import registry
from kwire.plan.layouts import Job
from kwire.plan.reading import Reader
from kwire.plan.writing import Writer

MAX_BYTES = 600
"""Larger messages are skipped: they would find the same errors more slowly."""
HOSTILE = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x08",
    b"\x80\x80\x80\x80\x80",
    b"\x81\x80\x00",
    b"\xff\xfe",
    b"\xc3\x28",
    b"\xed\xa0\x80",
)
ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    127,
    128,
    2**15,
    2**31,
    -(2**31) - 1,
    2**63 - 1,
    2**63,
    2**64,
    -0.0,
    float("nan"),
    1.5,
    "",
    "x" * 126,
    "x" * 32768,
    "\ud800",
    b"",
    b"\x00" * 16,
    bytearray(b"ab"),
    memoryview(b"abc"),
    (),
    [],
    [None],
    [[1, b"x"]],
    [(5, b"x"), (5, b"y")],
    [(100000, b"x" * 200)],
    [(2**31, b"")],
    {1},
    {},
    object(),
)


class Refused(Exception):
    """Compiled code leaves the input or object to the walker."""


def refuse(*arguments: object) -> Any:
    """Raise Refused, in place of the walker."""
    raise Refused


class Target:
    """A version of a message in both interpreters, with bytes that Kafka wrote."""

    def __init__(self, cls: Any, version: int) -> None:
        self.name, self.version = cls.__name__, version
        self.codec = plan.codec(cls.SPEC, version, cls, kernels=True)
        self.job = Job(self.codec.plan, (cls,))
        self.decode, self.decode_from = native.decoders(self.job.address, refuse, self.job)
        self.encode = native.encoder(self.job.address, refuse, self.job)
        self.type = cls
        self.reader, self.writer = Reader(self.codec.plan), Writer(self.codec.plan)
        self.wires: list[bytes] = []

    def kernel_decode(self, data: bytes) -> Any:
        """Return the object, or None if compiled code rejects the bytes."""
        try:
            return self.decode(data)
        except Refused:
            return None

    def walker_decode(self, data: bytes) -> Any:
        """Return the object, or the error."""
        try:
            tree, _ = self.reader.read(data, 0)
        except DecodeError as error:
            found = error
        else:
            return msgspec.convert(tree, self.type)
        assert 0 <= found.position <= len(data)
        return found

    def kernel_encode(self, obj: Any) -> bytes | None:
        """Return the bytes, or None if compiled code leaves the object to the walker."""
        try:
            return self.encode(obj)
        except Refused:
            return None

    def check_bytes(self, data: bytes) -> bool:
        """Check both interpreters on one input; return whether they accepted it."""
        ours, reference = self.kernel_decode(data), self.walker_decode(data)
        if isinstance(reference, DecodeError):
            assert ours is None, f"{self}: the walker refuses {data.hex()} ({reference}), the kernel takes it"
            return False
        assert ours is not None, f"{self}: the kernel refuses {data.hex()}, the walker takes it"
        # As bytes: NaN is not equal to itself.
        again = self.writer.write(reference)
        assert self.kernel_encode(ours) == again, f"{self}: {data.hex()} is written in two ways"
        if again != data:  # over-long varints and the like; what was written is read as what it was
            assert self.writer.write(self.walker_decode(again)) == again
        return True

    def check_object(self, obj: Any) -> bool:
        """Check both interpreters on one object; return whether the kernel accepted it."""
        ours = self.kernel_encode(obj)
        try:
            reference = self.writer.write(obj)
        except EncodeError as error:
            refused = error
        else:
            refused = None
        if refused is not None:
            assert ours is None, f"{self}: the walker refuses {obj} ({refused}), the kernel takes it"
            return False
        assert ours is None or ours == reference, f"{self}: {obj} is written in two ways"
        return ours is not None

    def __repr__(self) -> str:
        return f"{self.name} version {self.version}"


def targets(kafka: tuple[str, ...] = ("4.4.0", "3.9.1")) -> list[Target]:
    """Return every message and version of the golden files."""
    found: dict[tuple[str, int, str], Target] = {}
    for release in kafka:
        for line in golden.cached(f"messages-{release}.jsonl.gz"):
            wire = golden.unpack(line["b64"])
            key = line["message"], line["version"], release
            assert wire is not None
            if len(wire) > MAX_BYTES or not wire:
                continue
            if key not in found:
                found[key] = Target(registry.get(line["message"], kafka=release), line["version"])
            found[key].wires.append(wire)
    return list(found.values())


def mutate(wire: bytes, other: bytes, draw: random.Random) -> bytes:
    """Return the bytes, changed at one to four positions."""
    data = bytearray(wire)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 4))):
        at = draw.randrange(len(data) + 1)
        how = draw.randrange(9)
        if how == 0:
            del data[at:]
        elif how == 1 and data:
            data[at % len(data)] ^= 1 << draw.randrange(8)
        elif how == 2 and data:
            data[at % len(data)] = draw.choice((0, 1, 2, 3, 127, 128, 254, 255))
        elif how == 3 and data:
            data[at % len(data)] = draw.randrange(256)
        elif how == 4:
            del data[at : at + draw.randrange(1, 5)]
        elif how == 5:
            data[at:at] = draw.randbytes(draw.randrange(1, 5))
        elif how == 6:
            hostile = draw.choice(HOSTILE)
            data[at : at + draw.choice((0, len(hostile)))] = hostile
        elif how == 7:
            start = draw.randrange(len(other) + 1)
            data[at:at] = other[start : start + draw.randrange(20)]
        else:
            data[at:] = data[at:] + data[max(0, at - 4) : at]
    return bytes(data)


def make_invalid(obj: Any, draw: random.Random) -> None:
    """Set an attribute, at any depth of the object, to a value that may be invalid."""
    while True:
        name = draw.choice(obj.__struct_fields__)
        value = getattr(obj, name)
        inner = draw.choice(value) if isinstance(value, list) and value else value
        if isinstance(inner, msgspec.Struct) and draw.random() < 0.8:
            obj = inner
            continue
        if isinstance(value, list) and value and draw.random() < 0.5:
            value[draw.randrange(len(value))] = draw.choice(ODD_VALUES)
        else:
            setattr(obj, name, draw.choice(ODD_VALUES))
        return


def run(inputs: int, seed: int) -> None:
    """Check this number of mutated inputs, nine in ten bytes, one an object. Raises AssertionError with the input."""
    draw = random.Random(seed)
    all_targets = targets()
    taken = 0
    started = time.monotonic()
    for i in range(inputs):
        target = draw.choice(all_targets)
        wire = draw.choice(target.wires)
        if i % 10:
            taken += target.check_bytes(mutate(wire, draw.choice(target.wires), draw))
        else:
            obj = target.walker_decode(wire)
            make_invalid(obj, draw)
            taken += target.check_object(obj)
        if i and i % 1_000_000 == 0:
            rate = i / (time.monotonic() - started)
            print(f"messages: {i} inputs, {taken} taken, {rate:.0f} a second", flush=True)
    print(f"messages: {inputs} inputs, {taken} taken, no difference", flush=True)
