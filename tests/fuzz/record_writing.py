"""Writing, converting and appending under random and hostile input.

    write     random rows: objects, columns and columns in plain Python give the same bytes, and both reading paths the
              rows
    append    mutated record sets through a broker's append path: accepted and readable, or refused with an error code
    convert   mutated record sets up and down: readable, or a kwire error

`./dev fuzz` runs run(inputs, seed) for long; a short run is part of the suite. With `guarded=True` every Arrow buffer
that the encoder reads, its room and every section that is scanned end at a page that may not be touched: such runs
belong in a process of their own (`python -m tests.fuzz.record_writing guarded 500`).
"""

from __future__ import annotations

import contextlib
import functools
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from tests.fuzz.records import GuardedMemory, mutated, seeds
from tests.records.both_paths import without_compiled_code

from kwire import native
from kwire.errors import CorruptBatch, EncodeError
from kwire.records import (
    AppendOrigin,
    Compression,
    Record,
    RejectedRecords,
    TimestampType,
    down_convert,
    read_batches,
    to_arrow,
    up_convert,
    validate_and_assign_offsets,
    write_batches,
)
from kwire.records.columns.encoder import ColumnBuffers, ColumnEncoder
from kwire.records.columns.reader import arrow_schema
from kwire.records.columns.writer import ColumnWriter
from kwire.records.format import section_scan as scans

NOW = 1_700_000_000_000
LIMIT = 1 << 20  # bytes out of one batch
corpus = functools.cache(seeds)


def random_field(source: random.Random) -> bytes | None:
    """Draw a value: null, empty, short, at the lengths where a varint grows or a copy is another one, or long."""
    kind = source.randrange(6)
    if kind == 0:
        return None
    at_borders = source.choice((63, 64, 65)), source.choice((2048, 2049, 8191, 8192))
    size = (0, source.randrange(30), at_borders[0], source.randrange(300), at_borders[1])
    return source.randbytes(size[kind - 1])


def random_rows(source: random.Random, *, headers: bool) -> list[Record]:
    """Draw records."""
    rows, offset = [], source.choice((0, 5, 2**40))
    for _ in range(source.choice((1, 2, 30, 200))):
        named = [(source.choice(("", "h", "ключ")), random_field(source)) for _ in range(source.choice((0, 0, 1, 3)))]
        rows.append(
            Record(
                offset=offset,
                timestamp=source.choice((-1, 0, NOW, NOW + source.randrange(-(10**6), 10**6), 2**53)),
                timestamp_type=TimestampType.CREATE_TIME,
                key=random_field(source),
                value=random_field(source),
                headers=named if headers else [],
            )
        )
        offset += 1
    return rows


def as_arrow(rows: list[Record], source: random.Random) -> pa.RecordBatch:
    """Return the rows as columns of an accepted type, sometimes as a slice."""
    before, after = source.choice((0, 0, 3)), source.choice((0, 0, 5))
    padded = [rows[0]] * before + rows + [rows[-1]] * after
    binary = source.choice((pa.binary(), pa.large_binary()))
    times = [row.timestamp for row in padded]
    time_column = source.choice(
        (
            lambda: pa.array(times, pa.int64()),
            lambda: pa.array([None if t == -1 else t for t in times], pa.timestamp("ms", "UTC")),
            lambda: pa.array([t * 1000 for t in times], pa.timestamp("us")),
        )
    )()
    columns = {
        "key": pa.array([row.key for row in padded], binary),
        "value": pa.array([row.value for row in padded], binary),
        "timestamp": time_column,
        "headers": pa.array(
            [[{"key": k, "value": v} for k, v in row.headers] or source.choice((None, [])) for row in padded],
            arrow_schema(["headers"]).field(0).type,
        ),
        "offset": pa.array(range(len(padded)), pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns).slice(before, len(rows))


def write_both(source: random.Random) -> None:
    """Check random rows with both writers and both readers."""
    magic = source.choice((0, 1, 2, 2, 2))
    codec = source.choice([c for c in Compression if magic == 2 or c != Compression.ZSTD])
    rows = random_rows(source, headers=magic == 2)
    settings: dict[str, Any] = {
        "magic": magic,
        "compression": codec,
        "base_offset": rows[0].offset,
        "batch_size": source.choice((1, 300, 4000, 16384)),
    }
    if magic == 2 and source.random() < 0.5:
        settings |= {"producer_id": 7, "producer_epoch": 1, "base_sequence": source.choice((0, 2**31 - 3))}
    batch = as_arrow(rows, source)
    data = b"".join(bytes(piece) for piece in ColumnWriter(**settings).write(batch))
    with without_compiled_code():
        assert data == b"".join(bytes(piece) for piece in ColumnWriter(**settings).write(batch))
    if codec == Compression.NONE:  # with a codec the batches are cut by size before and after compression
        assert data == b"".join(write_batches(rows, **settings))
    batches = list(read_batches(data))
    for one in batches:
        one.check()
    wanted = [(r.offset, r.timestamp if magic else -1, r.key, r.value, r.headers) for r in rows]
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for b in batches for r in b.records()] == wanted
    read = to_arrow(data, ["offset", "key", "value"]).to_pylist()
    assert [(row["offset"], row["key"], row["value"]) for row in read] == [(r.offset, r.key, r.value) for r in rows]


def hostile(source: random.Random) -> bytes:
    """Draw a mutated record set."""
    return mutated(source.choice(corpus()), corpus(), source)


def append_hostile(source: random.Random) -> None:
    """Append a mutated record set; accepted records must be readable. Raises RejectedRecords."""
    data, first_offset = hostile(source), source.choice((0, 1000, 2**62))
    limited = source.random() < 0.3
    result = validate_and_assign_offsets(
        data,
        first_offset,
        now_ms=NOW,
        to_magic=source.choice((0, 1, 2, 2)),
        compression_type=source.choice(("producer", "producer", "none", "gzip", "lz4")),
        message_timestamp_type=source.choice((TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME)),
        message_timestamp_before_max_ms=3_600_000 if limited else 2**63 - 1,
        compacted=source.random() < 0.3,
        origin=source.choice((AppendOrigin.CLIENT, AppendOrigin.CLIENT, AppendOrigin.COORDINATOR)),
        max_decompressed_bytes=LIMIT,
    )
    for batch in read_batches(result.data):
        batch.check()
    assert result.next_offset >= first_offset


def convert_hostile(source: random.Random) -> None:
    """Convert a mutated record set to another magic. Raises a KwireError."""
    data, magic = hostile(source), source.choice((0, 1, 2))
    if source.random() < 0.5:
        converted = up_convert(data, magic, max_decompressed_bytes=LIMIT)
        assert all(batch.magic >= magic for batch in read_batches(converted))
    else:
        offset = source.choice((0, 17, 2**40))
        converted = down_convert(data, magic, offset, max_decompressed_bytes=LIMIT)
        assert all(batch.magic <= magic for batch in read_batches(converted))


def scan_both(source: random.Random) -> None:
    """Scan mutated records with both scanners."""
    data = hostile(source)
    section = memoryview(data)[61:] if len(data) > 61 else memoryview(data)
    count, base = source.choice((1, 2, 5, len(section))), source.choice((-1, 0, NOW, 2**63 - 1, -(2**63)))
    if 0 <= count * scans.SMALLEST_RECORD_BYTES <= len(section) and count:
        plain, compiled = scans.scan_plain(section, count, base), native.scan_section(section, count, base)
        assert plain == compiled, (plain, compiled)


def run(inputs: int, seed: int, guarded: bool = False) -> int:
    """Run this number of inputs and return it; an AssertionError or another exception is a finding."""
    limits = guard_pages() if guarded else contextlib.nullcontext()
    with limits:
        for number in range(inputs):
            source = random.Random(f"{seed} {number}")
            try:
                write_both(source)
                scan_both(source)
                with contextlib.suppress(RejectedRecords):
                    append_hostile(source)
                with contextlib.suppress(CorruptBatch, RejectedRecords, EncodeError):
                    convert_hostile(source)
            except BaseException:
                print(f"seed {seed}, input {number}", file=sys.stderr)
                raise
    return inputs


@contextlib.contextmanager
def guard_pages() -> Iterator[None]:
    """Place every buffer of the encoder and the scanner before a guard page."""
    guard = GuardedMemory()
    originals = ColumnBuffers.address, ColumnEncoder.make_room, native.scan_section

    def address(self: ColumnBuffers, buffer: pa.Buffer | None) -> int:
        if buffer is None or not buffer.size:
            return originals[0](self, buffer)
        held = np.frombuffer(guard.holding(buffer.to_pybytes()), np.uint8)
        self.kept.append(held)
        return int(held.ctypes.data)

    def scan(section: memoryview, count: int, base_timestamp: int) -> tuple[int, int, bool, int, int, int, int, bool]:
        return originals[2](guard.holding(bytes(section)), count, base_timestamp)

    ColumnBuffers.address, native.scan_section = address, scan  # type: ignore[method-assign]
    ColumnEncoder.make_room = staticmethod(guard.allocate)  # type: ignore[method-assign]
    try:
        yield
    finally:
        ColumnBuffers.address, make_room, native.scan_section = originals  # type: ignore[method-assign]
        ColumnEncoder.make_room = staticmethod(make_room)  # type: ignore[method-assign]


if __name__ == "__main__":
    print(run(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1, guarded=sys.argv[1] == "guarded"))
