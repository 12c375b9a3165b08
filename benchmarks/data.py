"""Segments for benchmarks, in the format of a broker, but generated without one.

A record has a 16 byte key and a 100 byte JSON-like value (116 B), a batch is 16 KB, and every batch has an index entry.
All batches have the same layout, so that numpy can fill thousands in one step. They are kept in build/bench.
"""

from __future__ import annotations

import struct
from pathlib import Path

import google_crc32c
import numpy as np

from benchmarks.records.batches import varied_segment

CACHE = Path(__file__).parents[1] / "build" / "bench"

RECORDS_PER_BATCH = 128
KEY = b"key-000000000000"
VALUE_START = b'{"id":00000000,"user":"u000000","amount":000.00,"country":"DE","note":"'
VALUE = VALUE_START + (b"abcdefghijklmnopqrstuvwxyz" * 2)[: 98 - len(VALUE_START)] + b'"}'
# Columns of digits in a record: (position in the key or value, digits).
KEY_DIGITS = (4, 12)
ID_DIGITS = (VALUE.index(b"00000000"), 8)
USER_DIGITS = (VALUE.index(b"u000000") + 1, 6)
AMOUNT_DIGITS = (VALUE.index(b"000.00"), 3)

FIRST_TIMESTAMP_MS = 1_760_000_000_000
HEADER = struct.Struct(">qiibIhiqqqhii")
CRC_FROM = 21
CODECS = {"none": 0, "zstd": 4}
BATCHES_AT_ONCE = 2048


def log_directory(records: int = 4_000_000, *, partitions: int = 2, segments: int = 3, codec: str = "none") -> Path:
    """Return a log directory with the topic `bench`, generated on the first call (a second for 100 MB).

    records: total number, rounded down to complete batches, distributed evenly over partitions and segments.
    """
    root = CACHE / f"log-{codec}-{records}-{partitions}x{segments}"
    if (root / "done").exists():
        return root
    batches = records // RECORDS_PER_BATCH // partitions // segments
    random = np.random.default_rng(1)
    for partition in range(partitions):
        folder = root / f"bench-{partition}"
        folder.mkdir(parents=True, exist_ok=True)
        for segment in range(segments):
            _write_segment(folder, segment * batches * RECORDS_PER_BATCH, batches, CODECS[codec], random)
    (root / "done").touch()
    return root


def varied_log_directory(records: int = 4_000_000, *, partitions: int = 2, segments: int = 3) -> Path:
    """Return a log directory with the topic `bench`, whose records vary as in `varied_segment`, without indexes.

    records: total number at least, distributed evenly. 500 different batches are repeated with offsets that go on.
    """
    root = CACHE / f"varied-{records}-{partitions}x{segments}"
    if (root / "done").exists():
        return root
    pattern, batches = varied_segment("none", 500), []
    at = 0
    while at < len(pattern):
        length = 12 + int.from_bytes(pattern[at + 8 : at + 12], "big")
        batches.append(bytearray(pattern[at : at + length]))
        at += length
    for partition in range(partitions):
        folder, offset = root / f"bench-{partition}", 0
        folder.mkdir(parents=True, exist_ok=True)
        for segment in range(1, segments + 1):
            with (folder / f"{offset:020d}.log").open("wb") as log:
                while offset < records * segment // partitions // segments:
                    for batch in batches:
                        batch[:8] = offset.to_bytes(8, "big")  # not part of what the checksum covers
                        log.write(batch)
                        offset += int.from_bytes(batch[57:61], "big")
    (root / "done").touch()
    return root


def _varint(value: int) -> bytes:
    value, out = value << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _template() -> tuple[bytes, list[int], list[int]]:
    """Return the records of a batch with zeros as digits, and the positions of each record's key and value."""
    section, keys, values = bytearray(), [], []
    for delta in range(RECORDS_PER_BATCH):
        head = b"\0" + _varint(delta) + _varint(delta) + _varint(len(KEY))
        body = head + KEY + _varint(len(VALUE)) + VALUE + b"\0"
        start = len(section) + len(_varint(len(body)))
        keys.append(start + len(head))
        values.append(start + len(head) + len(KEY) + len(_varint(len(VALUE))))
        section += _varint(len(body)) + body
    return bytes(section), keys, values


def _put_digits(sections: np.ndarray, starts: np.ndarray, place: tuple[int, int], numbers: np.ndarray) -> None:
    """Write decimal digits of numbers[batch, record] at starts[record] + place."""
    position, digits = place
    for digit in range(digits):
        sections[:, starts + position + digits - 1 - digit] = 48 + numbers % 10
        numbers = numbers // 10


def _write_segment(folder: Path, base_offset: int, batches: int, codec: int, random: np.random.Generator) -> None:
    section, keys, values = _template()
    key_starts, value_starts = np.array(keys), np.array(values)
    index, time_index = bytearray(), bytearray()
    position, stem = 0, folder / f"{base_offset:020d}"
    with stem.with_suffix(".log").open("wb") as log:
        for first in range(0, batches, BATCHES_AT_ONCE):
            n = min(BATCHES_AT_ONCE, batches - first)
            sections = np.tile(np.frombuffer(section, np.uint8), (n, 1))
            shape = (n, RECORDS_PER_BATCH)
            ids = base_offset + first * RECORDS_PER_BATCH + np.arange(n * RECORDS_PER_BATCH).reshape(shape)
            _put_digits(sections, key_starts, KEY_DIGITS, random.integers(0, 100_000, shape))
            _put_digits(sections, value_starts, ID_DIGITS, ids)
            _put_digits(sections, value_starts, USER_DIGITS, random.integers(0, 1_000_000, shape))
            _put_digits(sections, value_starts, AMOUNT_DIGITS, random.integers(0, 1000, shape))
            for row in range(n):
                payload = sections[row].tobytes()
                if codec == CODECS["zstd"]:
                    import cramjam

                    payload = bytes(cramjam.zstd.compress(payload, level=3))
                offset = int(ids[row, 0])
                last = offset + RECORDS_PER_BATCH - 1
                batch = _batch(offset, codec, payload)
                if position:
                    index += struct.pack(">ii", last - base_offset, position)
                    time_index += struct.pack(">qi", FIRST_TIMESTAMP_MS + last, last - base_offset)
                log.write(batch)
                position += len(batch)
    stem.with_suffix(".index").write_bytes(index)
    stem.with_suffix(".timeindex").write_bytes(time_index)


def _batch(offset: int, codec: int, payload: bytes) -> bytes:
    last_delta = RECORDS_PER_BATCH - 1
    timestamp = FIRST_TIMESTAMP_MS + offset
    fields = (offset, HEADER.size - 12 + len(payload), 0, 2, 0)
    rest = (codec, last_delta, timestamp, timestamp + last_delta, -1, -1, -1, RECORDS_PER_BATCH)
    batch = bytearray(HEADER.pack(*fields, *rest) + payload)
    struct.pack_into(">I", batch, CRC_FROM - 4, google_crc32c.value(bytes(batch[CRC_FROM:])))
    return bytes(batch)
