"""`<offset>.snapshot`: state of the producers before that offset.

    pos  bytes  field        note
      0      2  version      1
      2      4  crc          CRC-32C of everything after it
      6      4  count
     10     46  entries      producer_id int64, producer_epoch int16, last_sequence int32, last_offset int64,
                             offset_delta int32, timestamp int64, coordinator_epoch int32,
                             current_transaction_first_offset int64 (-1 none)

Source: rules F-40 to F-42; Kafka's ProducerStateManager.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from kwire.errors import Malformed
from kwire.records.format.checksum import crc32c

HEAD = struct.Struct(">hIi")
ENTRY = struct.Struct(">qhiqiqiq")
assert HEAD.size == 10
assert ENTRY.size == 46


class ProducerState(NamedTuple):
    """One producer. current_transaction_first_offset: -1 without an open transaction; last_offset: -1 without data."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int


def parse_producer_snapshot(data: bytes) -> list[ProducerState]:
    """Parse the producers of a snapshot. Raises Malformed for another version, a wrong checksum or size (F-42)."""
    if len(data) < HEAD.size:
        raise Malformed(f"producer snapshot of {len(data)} bytes, expected at least {HEAD.size}", 0)
    version, crc, count = HEAD.unpack_from(data)
    if version != 1:
        raise Malformed(f"producer snapshot version {version}, expected 1", 0)
    if crc32c(data[6:]) != crc:
        raise Malformed("producer snapshot has a wrong checksum", 2)
    if count * ENTRY.size != len(data) - HEAD.size:
        raise Malformed(f"producer snapshot of {count} entries has {len(data) - HEAD.size} bytes for them", 6)
    return [ProducerState._make(fields) for fields in ENTRY.iter_unpack(data[HEAD.size :])]


def render_producer_snapshot(states: Sequence[ProducerState]) -> bytes:
    """Render the file that parse_producer_snapshot reads."""
    body = HEAD.pack(1, 0, len(states))[6:] + b"".join(ENTRY.pack(*state) for state in states)
    return HEAD.pack(1, crc32c(body), len(states))[:6] + body
