"""The newest offset of each key in the dirty part of a log, in memory of a fixed size.

    uint64[slots, 3]    a Slot each: first and second half of the key's hash, offset + 1; a free slot is all zeros

A slot takes 24 bytes, as in Kafka, so that the same settings take the same number of keys: there are
log.cleaner.dedupe.buffer.size / 24 slots, of which log.cleaner.io.buffer.load.factor may be used. The table starts
small and doubles when it is half full, up to that size, to stay in the processor's caches.

The map is complete up to `latest_offset`: it has the newest offset of every key up to there. Records after it are
retained whatever their key (X-20). When the map is full, it is the offset of the last record added; so a pass may end
inside a batch.
Source: rules X-10 to X-12; org.apache.kafka.storage.internals.log.SkimpyOffsetMap, kafka.log.Cleaner.buildOffsetMap.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from kwire import native
from kwire.errors import OptionError
from kwire.log.cleaner.layout import MapState, Mark, Outcome, Put, Slot
from kwire.log.cleaner.sections import Sections, records_of
from kwire.records import Batch
from kwire.records.format import batch_table as t

__all__ = [
    "DEFAULT_LOAD_FACTOR",
    "DEFAULT_MEMORY_BYTES",
    "SLOT_BYTES",
    "OffsetMap",
]

SLOT_BYTES = 24
DEFAULT_MEMORY_BYTES = 128 << 20  # log.cleaner.dedupe.buffer.size
DEFAULT_LOAD_FACTOR = 0.9  # log.cleaner.io.buffer.load.factor

FIRST_SLOTS = 4096


class OffsetMap:
    """Maps the hash of a key to its newest offset.

    memory_bytes, load_factor: capacity. secret: 16 random bytes, new for each map.
    slots, state, secret: for kernels, which must stop when `put` returns MUST_GROW. Without compiled code a dict takes
    the place of the slots.
    Raises OptionError if the capacity is below two keys.
    """

    def __init__(
        self,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        load_factor: float = DEFAULT_LOAD_FACTOR,
        *,
        secret: bytes,
    ) -> None:
        count = memory_bytes // SLOT_BYTES
        if not 0 < load_factor <= 1:
            raise OptionError(
                f"log.cleaner.io.buffer.load.factor is {load_factor}, expected a number above 0 and at most 1"
            )
        if count * load_factor <= 1:
            raise OptionError(
                f"log.cleaner.dedupe.buffer.size is {memory_bytes}, too small for an offset map; increase it"
            )
        if len(secret) != 16:
            raise OptionError(f"the secret has {len(secret)} bytes, expected 16")
        self.max_slots = count
        self.slots: npt.NDArray[np.uint64] = np.zeros((min(count, FIRST_SLOTS), len(Slot)), np.uint64)
        self.state: npt.NDArray[np.int64] = np.zeros(len(MapState), np.int64)
        self.state[MapState.LIMIT] = min(int(count * load_factor), count - 1)  # a search ends at a free slot
        self.state[MapState.LATEST_OFFSET] = -1
        self._set_room()
        self._marks: npt.NDArray[np.uint64] = np.empty((1, len(Mark)), np.uint64)
        self.secret: npt.NDArray[np.uint64] = np.frombuffer(secret, "<u8").astype(np.uint64)
        self._outcome: npt.NDArray[np.int64] = np.zeros(len(Outcome), np.int64)
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return int(self.state[MapState.KEYS])

    @property
    def latest_offset(self) -> int:
        """Offset up to which the map is complete; -1 if empty."""
        return int(self.state[MapState.LATEST_OFFSET])

    def advance(self, offset: int) -> None:
        """Mark the map complete up to offset: no record with a key is in between (X-12)."""
        self.state[MapState.LATEST_OFFSET] = offset

    @property
    def utilization(self) -> float:
        """Ratio of keys to slots, 0 to 1."""
        return len(self) / self.max_slots

    def grow(self) -> None:
        """Double the table, or grow it to its maximum size if the next doubling would exceed it.

        Both tables exist during the copy, which takes at most one and a half times the memory.
        """
        count = 2 * len(self.slots) if 4 * len(self.slots) <= self.max_slots else self.max_slots
        slots: npt.NDArray[np.uint64] = np.zeros((count, len(Slot)), np.uint64)
        native.move_slots(self.slots, slots)
        self.slots = slots
        self._set_room()

    def marks_for(self, table: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Return scratch space for the largest batch of a table: a Mark for each record."""
        records = int(table[:, t.COUNT].max(initial=0))
        if len(self._marks) < records:
            self._marks = np.empty((2 * records, len(Mark)), np.uint64)
        return self._marks

    def put_batches(self, sections: Sections, first: int, last: int, lowest_offset: int) -> bool:
        """Put the keys of batches [first, last), except below lowest_offset; return False if the map is full.

        Raises CorruptBatch for a batch that does not decode, of which no key is put.
        """
        if native.LEVEL is None:
            return all(self._put_batch(sections.batch(row), lowest_offset) for row in range(first, last))
        marks = self.marks_for(sections.table[first:last])
        while True:
            first = native.map_batches(
                sections.table,
                first,
                last,
                lowest_offset,
                self.slots,
                self.state,
                self.secret,
                marks,
                self._outcome,
            )
            if first == last:
                return True
            fault, record = self._outcome.tolist()
            if fault == Put.FULL:
                return False
            if fault != Put.MUST_GROW:
                raise sections.fault(first, fault, record)
            self.grow()

    def _put_batch(self, batch: Batch, lowest_offset: int) -> bool:
        """Put the keys of a batch as the kernel does, without compiled code."""
        for record in list(records_of(batch)):
            if record.key is not None and record.offset >= lowest_offset and not self.put(record.key, record.offset):
                return False
        if batch.last_offset >= lowest_offset:
            self.advance(batch.last_offset)
        return True

    def _set_room(self) -> None:
        is_largest = len(self.slots) == self.max_slots
        self.state[MapState.ROOM] = self.max_slots if is_largest else len(self.slots) // 2

    def put(self, key: bytes, offset: int) -> bool:
        """Set the newest offset of a key. Return False, without a change, if the map is full."""
        if native.LEVEL is None:
            return self._put_plain(key, offset)
        array = np.frombuffer(key, np.uint8)
        while (
            result := native.put_key(self.slots, self.state, self.secret, array.ctypes.data, len(key), offset)
        ) == Put.MUST_GROW:
            self.grow()
        return bool(result == Put.ADDED)

    def get(self, key: bytes) -> int:
        """Return the newest offset of a key, -1 if it is not in the map."""
        if native.LEVEL is None:
            return self._offsets.get(self._hashed(key), -1)
        array = np.frombuffer(key, np.uint8)
        return int(native.get_offset(self.slots, self.secret, array.ctypes.data, len(key)))

    def _put_plain(self, key: bytes, offset: int) -> bool:
        if len(self) >= self.state[MapState.LIMIT]:
            return False
        self._offsets[self._hashed(key)] = offset
        self.state[MapState.KEYS], self.state[MapState.LATEST_OFFSET] = len(self._offsets), offset
        return True

    def _hashed(self, key: bytes) -> bytes:
        """Hash a key to 128 bits, as compiled code does, so that the memory of the map does not depend on keys."""
        return hashlib.blake2b(key, digest_size=16, key=self.secret.tobytes()).digest()
