"""The table of an offset map: see `kwire.log.cleaner.offset_map`.

    slots    uint64[slots, 3]       FIRST, SECOND: the halves of a key's hash; NEXT_OFFSET: its newest offset + 1, 0 in
                                    a free slot
    state    int64[STATE_COUNT]     KEYS in the table; LIMIT of keys, at which the map is full; LATEST_OFFSET put; ROOM
                                    for keys in this table, at which it must grow
    secret   uint64[2]              of `key_hash`

The search starts at slot FIRST modulo the number of slots and ends at the key's or a free one.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from typing import Any

import numpy as np

from kwire.log.cleaner.key_hash import hash_key
from kwire.wire.kernels.arrays import UInt64s, UInt64Table, WritableInt64s, WritableUInt64Table
from kwire.wire.kernels.compiler import export, inlined

__all__ = ["ADDED", "FULL", "MUST_GROW", "get_offset", "move_slots", "put_key"]

(FIRST, SECOND, NEXT_OFFSET) = range(3)  # of a slot
(KEYS, LIMIT, LATEST_OFFSET, ROOM) = range(4)  # of the state
STATE_COUNT = 4
ADDED, FULL, MUST_GROW = range(3)  # results of put_key


@inlined
def find(slots, first, second):
    """Return the slot of a hash, or the free slot for it."""
    count = np.uint64(slots.shape[0])
    at: Any = np.int64(first % count)
    while slots[at, NEXT_OFFSET] != np.uint64(0) and (slots[at, FIRST] != first or slots[at, SECOND] != second):
        at += 1
        if at == slots.shape[0]:
            at = 0
    return at


@export
def put_key(
    slots: WritableUInt64Table, state: WritableInt64s, secret: UInt64s, key: int, key_bytes: int, offset: int
) -> int:
    """Put the key at an address: see put_hashed."""
    first, second = hash_key(key, key_bytes, secret[0], secret[1])
    return put_hashed(slots, state, first, second, offset)


@inlined
def put_hashed(slots, state, first, second, offset):
    """Set the newest offset of a hash; return ADDED, FULL or MUST_GROW.

    A full map accepts no record, not even of a key that it contains.
    """
    if state[KEYS] >= state[LIMIT]:
        return FULL
    if state[KEYS] >= state[ROOM]:
        return MUST_GROW
    at = find(slots, first, second)
    if slots[at, NEXT_OFFSET] == np.uint64(0):
        slots[at, FIRST] = first
        slots[at, SECOND] = second
        state[KEYS] += 1
    slots[at, NEXT_OFFSET] = np.uint64(offset + 1)
    state[LATEST_OFFSET] = offset
    return ADDED


@export
def get_offset(slots: UInt64Table, secret: UInt64s, key: int, key_bytes: int) -> int:
    """Return the newest offset of the key at an address, or -1."""
    first, second = hash_key(key, key_bytes, secret[0], secret[1])
    return get_hashed(slots, first, second)


@inlined
def get_hashed(slots, first, second):
    """Return the newest offset of a hash, or -1."""
    return np.int64(slots[find(slots, first, second), NEXT_OFFSET]) - 1


@inlined
def touch(slots, first):
    """Load the first slot of a search into the caches; return a value from it, which the caller must use."""
    return slots[np.int64(first % np.uint64(slots.shape[0])), NEXT_OFFSET]


@export
def move_slots(old: UInt64Table, new: WritableUInt64Table) -> None:
    """Copy all entries of a table into a larger, empty one."""
    for i in range(old.shape[0]):
        if old[i, NEXT_OFFSET] != np.uint64(0):
            at = find(new, old[i, FIRST], old[i, SECOND])
            new[at, FIRST], new[at, SECOND], new[at, NEXT_OFFSET] = old[i, FIRST], old[i, SECOND], old[i, NEXT_OFFSET]
