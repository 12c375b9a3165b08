"""The newest offset of each key in the dirty part of a log, in memory of a fixed size.

    uint64[slots, 3]    a row: first and second half of the key's hash, offset + 1; a free slot is all zeros

A slot takes 24 bytes, as in Kafka, so that the same settings take the same number of keys: there are
log.cleaner.dedupe.buffer.size / 24 slots, of which log.cleaner.io.buffer.load.factor may be used. The table starts
small and doubles when it is half full, up to that size, to stay in the processor's caches.

The map is complete up to `latest_offset`: it has the newest offset of every key up to there. Records after it are
retained whatever their key (X-20). When the map is full, it is the offset of the last record added; so a pass may end
inside a batch.
Source: rules X-10 to X-12; org.apache.kafka.storage.internals.log.SkimpyOffsetMap, kafka.log.Cleaner.buildOffsetMap.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from kwire.errors import OptionError
from kwire.log.cleaner.key_hash import hash_key
from kwire.records.kernels import table as t

__all__ = [
    "ADDED",
    "DEFAULT_LOAD_FACTOR",
    "DEFAULT_MEMORY_BYTES",
    "FULL",
    "MUST_GROW",
    "SLOT_BYTES",
    "OffsetMap",
]

SLOT_BYTES = 24
DEFAULT_MEMORY_BYTES = 128 << 20  # log.cleaner.dedupe.buffer.size
DEFAULT_LOAD_FACTOR = 0.9  # log.cleaner.io.buffer.load.factor

(KEYS, LIMIT, LATEST_OFFSET, ROOM) = range(4)
STATE_COUNT = 4
FIRST_SLOTS = 4096
ADDED, FULL, MUST_GROW = range(3)  # results of put


class OffsetMap:
    """Maps the hash of a key to its newest offset.

    memory_bytes, load_factor: capacity. secret: 16 random bytes, new for each map.
    slots, state, secret: for kernels, which must stop when `put` returns MUST_GROW. state: int64[KEYS, LIMIT,
    LATEST_OFFSET, ROOM]; ROOM is the number of keys at which the table must grow.
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
        self.slots: npt.NDArray[np.uint64] = np.zeros((min(count, FIRST_SLOTS), 3), np.uint64)
        self.state: npt.NDArray[np.int64] = np.zeros(STATE_COUNT, np.int64)
        self.state[LIMIT] = min(int(count * load_factor), count - 1)  # a search ends at a free slot
        self.state[LATEST_OFFSET] = -1
        self._set_room()
        self._marks: npt.NDArray[np.uint64] = np.empty((1, 3), np.uint64)
        self.secret: npt.NDArray[np.uint64] = np.frombuffer(secret, "<u8").astype(np.uint64)

    def __len__(self) -> int:
        return int(self.state[KEYS])

    @property
    def latest_offset(self) -> int:
        """Offset up to which the map is complete; -1 if empty."""
        return int(self.state[LATEST_OFFSET])

    def advance(self, offset: int) -> None:
        """Mark the map complete up to offset: no record with a key is in between (X-12)."""
        self.state[LATEST_OFFSET] = offset

    @property
    def utilization(self) -> float:
        """Ratio of keys to slots, 0 to 1."""
        return len(self) / self.max_slots

    def grow(self) -> None:
        """Double the table, or grow it to its maximum size if the next doubling would exceed it.

        Both tables exist during the copy, which takes at most one and a half times the memory.
        """
        count = 2 * len(self.slots) if 4 * len(self.slots) <= self.max_slots else self.max_slots
        slots: npt.NDArray[np.uint64] = np.zeros((count, 3), np.uint64)
        move_slots(self.slots, slots)
        self.slots = slots
        self._set_room()

    def marks_for(self, table: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Return scratch space for hashes and offsets of the largest batch of a table: uint64[records, 3]."""
        records = int(table[:, t.COUNT].max(initial=0))
        if len(self._marks) < records:
            self._marks = np.empty((2 * records, 3), np.uint64)
        return self._marks

    def _set_room(self) -> None:
        is_largest = len(self.slots) == self.max_slots
        self.state[ROOM] = self.max_slots if is_largest else len(self.slots) // 2

    def put(self, key: bytes, offset: int) -> bool:
        """Set the newest offset of a key. Return False, without a change, if the map is full."""
        array = np.frombuffer(key, np.uint8)
        while (result := put(self.slots, self.state, self.secret, array.ctypes.data, len(key), offset)) == MUST_GROW:
            self.grow()
        return bool(result == ADDED)

    def get(self, key: bytes) -> int:
        """Return the newest offset of a key, -1 if it is not in the map."""
        array = np.frombuffer(key, np.uint8)
        return int(get(self.slots, self.secret, array.ctypes.data, len(key)))


@njit(inline="always")
def find(slots, first, second):
    """Return the slot of a hash, or the free slot for it."""
    count = np.uint64(slots.shape[0])
    at: Any = np.int64(first % count)
    while slots[at, 2] != np.uint64(0) and (slots[at, 0] != first or slots[at, 1] != second):
        at += 1
        if at == slots.shape[0]:
            at = 0
    return at


@njit(nogil=True, cache=True)
def put(slots, state, secret, key, key_bytes, offset):
    """Put the key at an address: see put_hashed."""
    first, second = hash_key(key, key_bytes, secret[0], secret[1])
    return put_hashed(slots, state, first, second, offset)


@njit(inline="always")
def put_hashed(slots, state, first, second, offset):
    """Set the newest offset of a hash; return ADDED, FULL or MUST_GROW.

    A full map accepts no record, not even of a key that it contains.
    """
    if state[KEYS] >= state[LIMIT]:
        return FULL
    if state[KEYS] >= state[ROOM]:
        return MUST_GROW
    at = find(slots, first, second)
    if slots[at, 2] == np.uint64(0):
        slots[at, 0] = first
        slots[at, 1] = second
        state[KEYS] += 1
    slots[at, 2] = np.uint64(offset + 1)
    state[LATEST_OFFSET] = offset
    return ADDED


@njit(nogil=True, cache=True)
def get(slots, secret, key, key_bytes):
    """Return the newest offset of the key at an address, or -1."""
    first, second = hash_key(key, key_bytes, secret[0], secret[1])
    return get_hashed(slots, first, second)


@njit(inline="always")
def get_hashed(slots, first, second):
    """Return the newest offset of a hash, or -1."""
    return np.int64(slots[find(slots, first, second), 2]) - 1


@njit(inline="always")
def touch(slots, first):
    """Load the first slot of a search into the caches; return a value from it, which the caller must use."""
    return slots[np.int64(first % np.uint64(slots.shape[0])), 2]


@njit(nogil=True, cache=True)
def move_slots(old, new):
    """Copy all entries of a table into a larger, empty one."""
    for i in range(old.shape[0]):
        if old[i, 2] != np.uint64(0):
            at = find(new, old[i, 0], old[i, 1])
            new[at] = old[i]
