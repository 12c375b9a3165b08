"""Coverage-guided fuzzing of every reader in C: inputs that take new steps through the code are mutated further.

Each target is a reader with values that it reads, and a check that compares compiled code with plain Python; the build
with sanitizers (`./dev fuzz --sanitize guided`) stops at the first access outside, and counts the steps.
"""

from __future__ import annotations

import ctypes
import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.fuzz import avro, json_values, messages, protobuf, records
from tests.records.building import with_right_checksums
from tests.schemas.avro.drawing import written
from tests.schemas.protobuf.drawing import Drawing, Writer

from kwire.native import _kernels
from kwire.schemas.json_schema import Decoder as JsonDecoder
from kwire.schemas.json_schema import parse as parse_json_schema
from kwire.schemas.protobuf import Decoder as ProtobufDecoder

SCHEMAS = 40
"""Drawn of each format, with some values of each."""
VALUES = 8
LONGEST = 4096
BUCKETS = np.array([0, 1, 2, 3, *[4] * 4, *[5] * 8, *[6] * 16, *[7] * 96, *[8] * 128], np.uint8)
"""By how often a step was taken: 1, 2, 3, up to 7, 15, 31, 127, more. Not every further turn of a loop is new."""


@dataclass
class Target:
    """A reader. corpus: its inputs that took new steps. check: raises for one that both read differently."""

    name: str
    corpus: list[bytes]
    check: Callable[[bytes], Any]

    def mutated(self, draw: random.Random) -> bytes:
        """Return an input made from one or two of the corpus; the newest ones are taken more often."""
        newest = self.corpus[-max(1, len(self.corpus) // 4) :]
        data = draw.choice(newest if draw.random() < 0.5 else self.corpus)
        change = messages.mutate if draw.random() < 0.5 else None
        data = change(data, draw.choice(self.corpus), draw) if change else avro.mutate(data, draw)
        return data[:LONGEST]


def targets(draw: random.Random) -> Iterator[Target]:
    """Yield the readers of messages, records, and values of drawn schemas."""
    for each in draw.sample(messages.targets(), 200):
        yield Target(f"message {each}", list(each.wires), each.check_bytes)
    yield Target("records", records.seeds(), _check_records)
    for _ in range(SCHEMAS):
        drawing, drawn, decoders = avro.decoders(draw)
        values = [written(drawn, drawing.value(drawn)) for _ in range(VALUES)]
        for decoder in decoders:
            yield Target(f"avro {json.dumps(drawn)}", list(values), _check_avro(decoder))
        given = json_values.schema(draw)
        texts = [json_values.written(draw, json_values.value(draw, given)) for _ in range(VALUES)]
        yield Target(f"json {given}", texts, _check_json(JsonDecoder(parse_json_schema(json.dumps(given)))))
        file = Drawing(draw, maps=draw.random() < 0.5)
        kind, writer = file.theirs().DESCRIPTOR, Writer(draw)
        values = [writer.message(kind) for _ in range(VALUES)]
        yield Target(f"protobuf {file.file}", values, _check_protobuf(ProtobufDecoder(file.ours())))


def _check_records(data: bytes) -> None:
    for given in (data, with_right_checksums(data)):
        settings: dict[str, Any] = {"max_decompressed_bytes": 1 << 16}
        assert records.through_columns(given, **settings) == records.through_objects(given, **settings)


def _check_avro(decoder: Any) -> Callable[[bytes], Any]:
    return lambda data: avro.compare(decoder, data)


def _check_json(decoder: JsonDecoder) -> Callable[[bytes], Any]:
    return lambda data: json_values.compare(decoder, [data])


def _check_protobuf(decoder: ProtobufDecoder) -> Callable[[bytes], Any]:
    return lambda data: protobuf.compare(decoder, [data])


class Steps:
    """The steps through the C code, by reader: what each input adds."""

    def __init__(self) -> None:
        library = ctypes.CDLL(_kernels.__file__)
        self.counts = np.ctypeslib.as_array((ctypes.c_uint8 * (1 << 16)).in_dll(library, "kwire_steps"))
        self.known = np.zeros(1 << 16, np.uint16)  # a bit for each bucket

    def is_new(self, check: Callable[[bytes], Any], data: bytes) -> bool:
        """Run a check; return whether it took a step, or took it as often, as none before."""
        self.counts[:] = 0
        check(data)
        taken = np.flatnonzero(self.counts)
        bits = np.left_shift(np.uint16(1), BUCKETS[self.counts[taken]])
        is_new = bool((bits & ~self.known[taken]).any())
        self.known[taken] |= bits
        return is_new


def run(inputs: int, seed: int) -> None:
    """Run this number of mutated inputs; an AssertionError, another exception or a sanitizer's report is a finding."""
    draw = random.Random(seed)
    steps = Steps()
    every = list(targets(draw))
    by_format: dict[str, list[Target]] = {}
    for target in every:
        by_format.setdefault(target.name.partition(" ")[0], []).append(target)
        for data in target.corpus:
            steps.is_new(target.check, data)
    first = int(np.count_nonzero(steps.known))
    kept = 0
    for _ in range(inputs):
        target = draw.choice(by_format[draw.choice(list(by_format))])
        data = target.mutated(draw)
        try:
            is_new = steps.is_new(target.check, data)
        except BaseException:
            print(f"seed {seed}, {target.name}, input {data.hex()}", file=sys.stderr)
            raise
        if is_new:
            target.corpus.append(data)
            kept += 1
    last = int(np.count_nonzero(steps.known))
    assert last > first or inputs < 100, "no input took a new step: the steps are not counted"
    print(f"guided: {inputs} inputs, {kept} kept, steps {first} -> {last}", flush=True)


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))
