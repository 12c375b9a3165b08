"""The log cleaner on mutated record sets: with and without compiled code the same keys, bytes and errors.

`./dev fuzz` runs run(inputs, seed) for long; a short run is part of the suite. With `guarded=True` the bytes of a log
end at a page that may not be touched.
"""

from __future__ import annotations

import functools
import random
import sys
from typing import Any

from tests.fuzz.records import GuardedMemory, mutated, seeds
from tests.records.both_paths import without_compiled_code

from kwire.errors import CorruptBatch, KwireError
from kwire.log.cleaner.cleaner_stats import CleanerStats
from kwire.log.cleaner.offset_map import OffsetMap
from kwire.log.cleaner.record_filter import RecordFilter
from kwire.log.cleaner.retention import CleanedTransactions
from kwire.log.cleaner.sections import Sections
from kwire.records.attributes import CODEC_MASK
from kwire.records.format import batch_table as t

LIMIT = 1 << 20  # bytes out of one batch
FILE = "00000000000000000000.log"
corpus = functools.cache(seeds)


def keys_of(data: memoryview, offset_map: OffsetMap, lowest_offset: int) -> None:
    """Put the keys of all batches into a map. Raises CorruptBatch."""
    sections = Sections(LIMIT)
    sections.load(data, 0, FILE)
    for row, entry in enumerate(sections.table):
        if entry[t.ATTRIBUTES] & CODEC_MASK and entry[t.COUNT]:
            sections.expand(row)
        if not offset_map.put_batches(sections, row, row + 1, lowest_offset):
            return


def clean(data: memoryview, slots: int, lowest_offset: int, now_ms: int, keeps_old_tombstones: bool) -> list[Any]:
    """Return what a pass over the bytes gives: errors, or the bytes retained and what was counted; the map."""
    offset_map, stats = OffsetMap(slots * 24, secret=bytes(range(16))), CleanerStats()
    found: list[Any] = []
    try:
        keys_of(data, offset_map, lowest_offset)
    except CorruptBatch as corrupt:
        found.append(str(corrupt))
    record_filter = RecordFilter(
        offset_map,
        CleanedTransactions(),
        {},
        stats,
        end_offset=1 << 50,
        now_ms=now_ms,
        delete_retention_ms=100,
        max_decompressed_bytes=LIMIT,
    )
    try:
        used, left = record_filter.clean(data, 0, FILE, keeps_old_tombstones=keeps_old_tombstones)
        found += [used, bytes(left), stats]
    except KwireError as error:
        found.append(f"{type(error).__name__}: {error}")
    return [*found, len(offset_map), offset_map.latest_offset]


def run(inputs: int, seed: int, guarded: bool = False) -> int:
    """Run this number of inputs and return it; an AssertionError or another exception is a finding."""
    for number in range(inputs):
        source = random.Random(f"{seed} {number}")
        data = mutated(source.choice(corpus()), corpus(), source)
        held = GuardedMemory().holding(data) if guarded else memoryview(data)
        asked = source.choice((3, 1000)), source.choice((0, 5, 2**40)), source.choice((0, 2**62)), source.random() < 0.5
        try:
            found = clean(held, *asked)
            with without_compiled_code():
                assert clean(held, *asked) == found, found
        except BaseException:
            print(f"seed {seed}, input {number}", file=sys.stderr)
            raise
    return inputs


if __name__ == "__main__":
    print(run(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1, guarded=sys.argv[1] == "guarded"))
