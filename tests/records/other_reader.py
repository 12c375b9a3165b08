"""Record sets as aiokafka reads them: a reader that is not ours, for bytes that kwire wrote."""

from __future__ import annotations

from typing import Any

from aiokafka.record.memory_records import MemoryRecords

__all__ = ["aiokafka_rows"]

Row = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def aiokafka_rows(data: bytes) -> list[Row]:
    """Return (offset, timestamp, key, value, headers) of each record; every checksum is checked.

    The timestamp is -1 where there is none.
    """
    found, reader = [], MemoryRecords(bytes(data))  # an exact bytes, no subclass
    while reader.has_next():
        batch: Any = reader.next_batch()
        assert batch.validate_crc()
        found += [
            (r.offset, -1 if r.timestamp is None else r.timestamp, r.key, r.value, list(r.headers)) for r in batch
        ]
    return found
