"""Counts of integers give the exact size of writing each of them."""

from __future__ import annotations

import random

import pytest

from kwire.schema.encoding_costs import IntegerCounts, count_integers
from kwire.wire.integer_encoding import ENCODINGS

EDGES = sorted({sign ^ n for i in range(64) for n in (2**i - 1, 2**i, 2**i + 1) if n < 2**63 for sign in (0, -1)})


def written(name: str, values: list[int]) -> int:
    out = bytearray()
    for value in values:
        ENCODINGS[name].write(out, value)
    return len(out)


@pytest.mark.parametrize("name", ENCODINGS)
def test_counted_sizes_are_right_for_every_number(name: str) -> None:
    encoding = ENCODINGS[name]
    for value in EDGES:
        counts = count_integers([value])
        assert (counts.count, counts.smallest, counts.largest) == (1, value, value)
        assert counts.negatives == (value < 0)
        fits = encoding.smallest <= value <= encoding.largest
        assert counts.fits(encoding) == fits
        assert counts.bytes_as(encoding) == (written(name, [value]) if fits else None), value


def test_counts_of_parts_can_be_added() -> None:
    draw = random.Random(1)
    values = [draw.choice((1, -1)) * draw.getrandbits(draw.randrange(32)) for _ in range(5000)]
    whole = count_integers(values)
    assert sum((count_integers(values[i : i + 999]) for i in range(0, 5000, 999)), IntegerCounts()) == whole
    assert (whole.count, whole.smallest, whole.largest) == (5000, min(values), max(values))
    for name in ("fixed32", "packed32", "upacked32", "packed64", "upacked64"):
        assert whole.bytes_as(ENCODINGS[name]) == written(name, values)
        sizes = whole.sizes(ENCODINGS[name])
        assert sum(sizes.values()) == 5000
        assert sum(size * n for size, n in sizes.items()) == written(name, values)
    assert whole.bytes_as(ENCODINGS["packed16"]) is None
    nothing = count_integers([])
    assert (nothing, nothing.count, nothing.bytes_as(ENCODINGS["fixed16"])) == (IntegerCounts(), 0, 0)
