"""The arrays that the cleaner shares with its kernels (native/cleaning.c). One row has a number for each name here."""

from __future__ import annotations

from enum import IntEnum

from kwire.records.attributes import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
)

__all__ = ["KNOWN_FLAGS", "LONGEST_NUMBERS", "MapState", "Mark", "Outcome", "Put", "Slot", "Verdict", "Weights"]


class Slot(IntEnum):
    """uint64: a key in the table of an offset map. A search starts at slot FIRST modulo their number."""

    FIRST = 0  # half of the key's hash
    SECOND = 1
    NEXT_OFFSET = 2  # its newest offset + 1, 0 in a free slot


class Mark(IntEnum):
    """uint64: scratch, of a record whose key was hashed."""

    FIRST = 0
    SECOND = 1
    OFFSET = 2
    SLOT = 3  # where the search for the key starts


class MapState(IntEnum):
    """int64: the state of an offset map."""

    KEYS = 0
    LIMIT = 1  # of keys, at which the map is full
    LATEST_OFFSET = 2  # put
    ROOM = 3  # for keys in this table, at which it must grow


class Put(IntEnum):
    """Result of putting a record; as an outcome, why map_batches stopped. Faults are above 0."""

    ADDED = 0
    FULL = -1
    MUST_GROW = -2


class Outcome(IntEnum):
    """int64: why a kernel stopped before the last batch."""

    FAULT = 0  # a Fault, or a Put
    RECORD = 1  # the index in the batch, -1: the fault is the batch's


class Weights(IntEnum):
    """int64: what weigh_batches counted in a batch."""

    KEPT = 0
    TOMBSTONES = 1  # kept
    DROPPED_TOMBSTONES = 2
    KEYLESS = 3  # dropped, since they have no key
    IS_CANONICAL = 4  # the kept ones are encoded as by Kafka; below magic 2: they have the magic of the outer message


class Verdict(IntEnum):
    """int64: what write_batches does with a batch. LOOK: it is rebuilt by the caller."""

    DROP = 0
    COPY = 1
    REBUILD = 2
    LOOK = 3


KNOWN_FLAGS = CODEC_MASK | LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG
LONGEST_NUMBERS = 16
"""Maximum growth of a record in bytes: a longer length (5) and timestamp delta (10)."""
