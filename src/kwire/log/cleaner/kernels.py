"""Compiled loops of the cleaner over the header table of `kwire.records.batch_table`.

    map_batches        put the keys of batches into an offset map
    weigh_batches      decide which records of batches to retain
    write_batches      write batches unchanged or with fewer records
    write_kept         write the retained records of one batch as the payload of a new one

    table       int64[batches, COLUMN_COUNT]       START, END and COUNT of a compressed batch are those of its
                                                   decompressed records
    slots, state, secret                           as in `kwire.log.cleaner.slots`
    marks       uint64[records, 3]                 scratch: FIRST, SECOND of a key's hash; OFFSET
    keeps       uint8[records]                     1 for records to retain
    weights     int64[batches, WEIGHT_COLUMNS]     KEPT, TOMBSTONES, DROPPED_TOMBSTONES, KEYLESS (dropped), IS_CANONICAL
    verdicts    int64[batches]                     DROP, COPY, REBUILD or LOOK
    outcome     int64[OUTCOME_COUNT]               FAULT_NUMBER, FAULT_INDEX (record), TOUCHED
    places      int64[batches, len(NewBatch)]      POSITION, SIZE of rebuilt batches

Two readers parse the records: one for magic 2, one for messages of magic 0 and 1.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.log.cleaner import slots as m
from kwire.log.cleaner.key_hash import hash_key
from kwire.log.cleaner.slots import get_hashed, put_hashed, touch
from kwire.records import batch_table as t
from kwire.records.attributes import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
)
from kwire.records.batch_header import (
    ATTRIBUTES_POSITION,
    BASE_TIMESTAMP_POSITION,
    COUNT_POSITION,
    DEFAULT_HEADER_BYTES,
    FRAME_BYTES,
    LEGACY_ATTRIBUTES_POSITION,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    SIZE_POSITION,
    SMALLEST_SIZE,
)
from kwire.records.encoder_layout import NewBatch
from kwire.records.faults import Fault
from kwire.records.kernels.legacy_messages import legacy_key_position, read_field
from kwire.records.kernels.section_scan import scan_headers
from kwire.wire.kernels.arrays import (
    Bytes,
    Int64s,
    Int64Table,
    UInt64s,
    UInt64Table,
    WritableBytes,
    WritableInt64s,
    WritableInt64Table,
    WritableUInt64Table,
)
from kwire.wire.kernels.compiler import export, inlined
from kwire.wire.kernels.memory import (
    copy_bytes,
    load_big_int32,
    load_big_int64,
    load_byte,
    move_exactly,
    store_big_int16,
    store_big_int32,
    store_big_int64,
    store_byte,
)
from kwire.wire.kernels.varints import VARINT_BYTES, VARLONG_BYTES, read_varint, uvarint_bytes, write_uvarlong, zigzag

__all__ = [
    "COPY",
    "DROP",
    "DROPPED_TOMBSTONES",
    "FAULT_INDEX",
    "FAULT_NUMBER",
    "IS_CANONICAL",
    "KEPT",
    "KEYLESS",
    "KNOWN_FLAGS",
    "LONGEST_NUMBERS",
    "LOOK",
    "MAP_FULL",
    "MAP_MUST_GROW",
    "OUTCOME_COUNT",
    "REBUILD",
    "TOMBSTONES",
    "WEIGHT_COLUMNS",
    "map_batches",
    "weigh_batches",
    "write_batches",
    "write_kept",
]

MAP_FULL, MAP_MUST_GROW = -1, -2
FAULT_NUMBER, FAULT_INDEX, TOUCHED = range(3)  # of the outcome
OFFSET = 2  # of a mark, after FIRST and SECOND of slots
OUTCOME_COUNT = 3
DROPPED, STAYS, ASK_MAP, IS_TOMBSTONE, IS_ODD = 0, 1, 2, 4, 8  # states of a record in weigh_batches

# A row of weights: records kept; tombstones kept and dropped; dropped records without key; whether the kept ones
# are encoded as by Kafka (below magic 2: whether they have the magic of the outer message).
(KEPT, TOMBSTONES, DROPPED_TOMBSTONES, KEYLESS, IS_CANONICAL) = range(5)
WEIGHT_COLUMNS = 5
DROP, COPY, REBUILD, LOOK = range(4)  # verdicts; LOOK: REBUILD by the caller

NEW_POSITION, NEW_SIZE = int(NewBatch.POSITION), int(NewBatch.SIZE)
KNOWN_FLAGS = CODEC_MASK | LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG

LONGEST_NUMBERS = 16  # maximum growth of a record in bytes: a longer length (5) and timestamp delta (10)

BAD_LENGTH = int(Fault.RECORD_LENGTH)
BAD_FIELDS = int(Fault.RECORD_FIELDS)
BAD_KEY = int(Fault.KEY_LENGTH)
BAD_VALUE = int(Fault.VALUE_LENGTH)
BAD_SIZE = int(Fault.RECORD_SIZE)
BYTES_LEFT = int(Fault.BYTES_LEFT)
BAD_INNER_SIZE = int(Fault.INNER_SIZE)
COMPRESSED_AGAIN = int(Fault.INNER_COMPRESSED)
BAD_MESSAGE_FIELDS = int(Fault.MESSAGE_FIELDS)


@inlined
def read_record(at, end):
    """Read a record of magic 2: (fault or 0, address after it, offset delta, key address, key length, value length,
    whether its encoding is canonical)."""
    zero = np.int64(0)
    size, at, short = read_varint(at, end, VARINT_BYTES)
    if at == 0 or size < 0 or size > end - at:
        return BAD_LENGTH, zero, zero, zero, zero, zero, False
    record_end = at + size
    if size < 1:
        return BAD_FIELDS, zero, zero, zero, zero, zero, False
    canonical = short and load_byte(at) == 0
    _, at, short = read_varint(at + 1, record_end, VARLONG_BYTES)
    if at == 0:
        return BAD_FIELDS, zero, zero, zero, zero, zero, False
    canonical &= short
    offset_delta, at, short = read_varint(at, record_end, VARINT_BYTES)
    if at == 0:
        return BAD_FIELDS, zero, zero, zero, zero, zero, False
    canonical &= short
    key_bytes, at, short = read_varint(at, record_end, VARINT_BYTES)
    if at == 0:
        return BAD_FIELDS, zero, zero, zero, zero, zero, False
    canonical &= short and key_bytes >= -1
    key = at
    if key_bytes > 0:
        if key_bytes > record_end - at:
            return BAD_KEY, zero, zero, zero, zero, zero, False
        at += key_bytes
    value_bytes, at, short = read_varint(at, record_end, VARINT_BYTES)
    if at == 0:
        return BAD_FIELDS, zero, zero, zero, zero, zero, False
    canonical &= short and value_bytes >= -1
    if value_bytes > 0:
        if value_bytes > record_end - at:
            return BAD_VALUE, zero, zero, zero, zero, zero, False
        at += value_bytes
    if not (at + 1 == record_end and load_byte(at) == 0):
        fault, short = scan_headers(at, record_end)
        if fault != 0:
            return fault, zero, zero, zero, zero, zero, False
        canonical &= short
    return 0, record_end, offset_delta, key, key_bytes, value_bytes, canonical


@inlined
def read_message(at, end, is_inner):
    """Read a message of magic 0 or 1: (fault or 0, address after it, stored offset, key address, key length, value
    length, magic)."""
    zero = np.int64(0)
    if end - at < FRAME_BYTES + SMALLEST_SIZE:
        return BAD_INNER_SIZE, zero, zero, zero, zero, zero, zero
    size = load_big_int32(at + SIZE_POSITION)
    if size < SMALLEST_SIZE or size > end - at - FRAME_BYTES:
        return BAD_INNER_SIZE, zero, zero, zero, zero, zero, zero
    message_end = at + FRAME_BYTES + size
    offset, magic = load_big_int64(at), load_byte(at + MAGIC_POSITION)
    if is_inner and load_byte(at + LEGACY_ATTRIBUTES_POSITION) & CODEC_MASK != 0:
        return COMPRESSED_AGAIN, zero, zero, zero, zero, zero, zero
    key_bytes, key = read_field(at + legacy_key_position(magic), message_end)
    if key == 0:
        return BAD_MESSAGE_FIELDS, zero, zero, zero, zero, zero, zero
    value_bytes, value = read_field(key + max(key_bytes, 0), message_end)
    if value == 0:
        return BAD_MESSAGE_FIELDS, zero, zero, zero, zero, zero, zero
    return 0, message_end, offset, key, key_bytes, value_bytes, magic


@export
def map_batches(
    table: Int64Table,
    first: int,
    last: int,
    lowest_offset: int,
    slots: WritableUInt64Table,
    state: WritableInt64s,
    secret: UInt64s,
    marks: WritableUInt64Table,
    outcome: WritableInt64s,
) -> int:
    """Put the keys of batches [first, last) into an offset map; records below lowest_offset are skipped.

    marks: uint64[records of the largest batch, 3], scratch. Returns the index of the batch after the last one read. If
    that is below `last`, outcome[FAULT_NUMBER] is MAP_FULL, MAP_MUST_GROW (call again with that batch; repeated records
    are harmless), or the fault of the batch there.

    A large map exceeds the caches, so keys are hashed first and their slots prefetched: cache misses then overlap.
    """
    outcome[FAULT_NUMBER] = 0
    i = first
    while i < last:
        batch = table[i]
        at, end = batch[t.START], batch[t.END]
        base_offset, magic = batch[t.BASE_OFFSET], batch[t.MAGIC]
        is_inner = batch[t.ATTRIBUTES] & CODEC_MASK != 0
        keyed = 0
        for record in range(batch[t.COUNT]):
            if magic == 2:
                fault, at, offset, key, key_bytes, _, _ = read_record(at, end)
                offset += base_offset
            else:
                fault, at, offset, key, key_bytes, _, _ = read_message(at, end, is_inner)
                offset += batch[t.SHIFT]
            if fault != 0:
                outcome[FAULT_NUMBER], outcome[FAULT_INDEX] = fault, record
                return i
            if key_bytes >= 0 and offset >= lowest_offset:
                marks[keyed, m.FIRST], marks[keyed, m.SECOND] = hash_key(key, key_bytes, secret[0], secret[1])
                marks[keyed, OFFSET] = np.uint64(offset)
                keyed += 1
        if magic == 2 and at != end and batch[t.COUNT] > 0:
            outcome[FAULT_NUMBER], outcome[FAULT_INDEX] = BYTES_LEFT, -1
            return i
        touched = np.uint64(0)
        for n in range(keyed):
            touched |= touch(slots, marks[n, m.FIRST])
        outcome[TOUCHED] = np.int64(touched & np.uint64(1))
        for n in range(keyed):
            result = put_hashed(slots, state, marks[n, m.FIRST], marks[n, m.SECOND], np.int64(marks[n, OFFSET]))
            if result != m.ADDED:
                outcome[FAULT_NUMBER] = MAP_FULL if result == m.FULL else MAP_MUST_GROW
                return i
        if batch[t.LAST_OFFSET] >= lowest_offset:
            state[m.LATEST_OFFSET] = batch[t.LAST_OFFSET]
        i += 1
    return i


@export
def weigh_batches(
    table: Int64Table,
    first: int,
    last: int,
    now_ms: int,
    keeps_old_tombstones: int,
    slots: UInt64Table,
    state: Int64s,
    secret: UInt64s,
    marks: WritableUInt64Table,
    keeps: WritableBytes,
    weights: WritableInt64Table,
    outcome: WritableInt64s,
) -> int:
    """Decide for each record of batches [first, last) whether to retain it (X-20 to X-23).

    keeps_old_tombstones: for magic 0 and 1, which have no delete horizon. marks: as for map_batches. keeps:
    uint8[records of all these batches], 1 for retained records. weights: int64[batches of the table, WEIGHT_COLUMNS],
    rows first to last are filled.
    Returns as map_batches.
    """
    latest_offset = state[m.LATEST_OFFSET]
    outcome[FAULT_NUMBER] = 0
    row = 0
    i = first
    while i < last:
        batch = table[i]
        at, end = batch[t.START], batch[t.END]
        base_offset, magic = batch[t.BASE_OFFSET], batch[t.MAGIC]
        is_inner = batch[t.ATTRIBUTES] & CODEC_MASK != 0
        if magic == 2:
            keeps_tombstones = batch[t.ATTRIBUTES] & DELETE_HORIZON_FLAG == 0 or now_ms < batch[t.BASE_TIMESTAMP]
        else:
            keeps_tombstones = keeps_old_tombstones
        keyless = np.int64(0)
        for record in range(batch[t.COUNT]):
            if magic == 2:
                fault, at, offset, key, key_bytes, value_bytes, as_written = read_record(at, end)
                offset += base_offset
            else:
                fault, at, offset, key, key_bytes, value_bytes, own_magic = read_message(at, end, is_inner)
                offset += batch[t.SHIFT]
                as_written = own_magic == magic
            if fault != 0:
                outcome[FAULT_NUMBER], outcome[FAULT_INDEX] = fault, record
                return i
            known = DROPPED
            if offset > latest_offset:
                known = STAYS
            elif key_bytes < 0:
                keyless += 1
            elif value_bytes >= 0 or keeps_tombstones:
                known = ASK_MAP
                marks[record, m.FIRST], marks[record, m.SECOND] = hash_key(key, key_bytes, secret[0], secret[1])
                marks[record, OFFSET] = np.uint64(offset)
            keeps[row + record] = known | (0 if value_bytes >= 0 else IS_TOMBSTONE) | (0 if as_written else IS_ODD)
        if magic == 2 and at != end and batch[t.COUNT] > 0:
            outcome[FAULT_NUMBER], outcome[FAULT_INDEX] = BYTES_LEFT, -1
            return i
        kept = tombstones = dropped_tombstones = np.int64(0)
        canonical = True
        for record in range(batch[t.COUNT]):
            known = keeps[row + record]
            if known & ASK_MAP:
                stays = np.int64(marks[record, OFFSET]) >= get_hashed(
                    slots, marks[record, m.FIRST], marks[record, m.SECOND]
                )
            else:
                stays = known & STAYS != 0
            keeps[row + record] = stays
            if stays:
                kept += 1
                tombstones += known & IS_TOMBSTONE != 0
                canonical &= known & IS_ODD == 0
            else:
                dropped_tombstones += known & IS_TOMBSTONE != 0
        row += batch[t.COUNT]
        weights[i, KEPT], weights[i, TOMBSTONES], weights[i, KEYLESS] = kept, tombstones, keyless
        weights[i, DROPPED_TOMBSTONES] = dropped_tombstones
        weights[i, IS_CANONICAL] = canonical
        i += 1
    return i


@export
def write_kept(batch: Int64s, keeps: Bytes, delete_horizon_ms: int, room: int) -> tuple[int, int, int]:
    """Write the retained records of a batch of magic 2 to the address `room`, as the payload of a new batch.

    batch: the row of the table, whose records weigh_batches has found valid and canonical. keeps: uint8[COUNT].
    delete_horizon_ms: -1 for none. room: needs the size of the records + LONGEST_NUMBERS for each + WIDE.
    Returns (bytes written, base timestamp, largest timestamp).
    The base offset and offset deltas are unchanged; timestamp deltas are relative to the first retained record or to
    the delete horizon (X-31 to X-33).
    """
    at, end = batch[t.START], batch[t.END]
    append_time = batch[t.ATTRIBUTES] & LOG_APPEND_TIME_FLAG != 0
    base = np.int64(delete_horizon_ms)
    largest = np.int64(NO_TIMESTAMP)
    is_first = True
    out = room
    for record in range(batch[t.COUNT]):
        size, at, _ = read_varint(at, end, VARINT_BYTES)
        record_end = at + size
        timestamp_delta, rest, _ = read_varint(at + 1, record_end, VARLONG_BYTES)
        at = record_end
        if keeps[record] == 0:
            continue
        timestamp = batch[t.MAX_TIMESTAMP] if append_time else batch[t.BASE_TIMESTAMP] + timestamp_delta
        if is_first and delete_horizon_ms < 0:
            base = timestamp
        is_first = False
        if timestamp > largest:
            largest = timestamp
        delta = zigzag(timestamp - base)
        rest_bytes = record_end - rest
        out = write_uvarlong(out, zigzag(1 + uvarint_bytes(delta) + rest_bytes))
        store_byte(out, 0)
        out = write_uvarlong(out + 1, delta)
        copy_bytes(out, rest, rest_bytes, end)
        out += rest_bytes
    return out - room, base, largest


@export
def write_batches(
    source: int,
    table: Int64Table,
    verdicts: Int64s,
    first: int,
    last: int,
    starts: Int64s,
    keeps: Bytes,
    weights: Int64Table,
    new_horizon_ms: int,
    room: int,
    places: WritableInt64Table,
) -> tuple[int, int, int]:
    """Write the retained plain batches [first, last) to the address `room`, in order, up to one with verdict LOOK.

    source: address to which POSITION is relative. starts: int64[batches], index of the first keeps entry of each batch.
    weights: from weigh_batches; a batch whose retained tombstones have no delete horizon gets the new one. places:
    POSITION in the room and SIZE are set for each rebuilt batch of magic 2; the caller sets its checksum (sum_batches).
    Returns (index of the LOOK batch or last, bytes written, rows of places).
    """
    out = room
    count = 0
    i = first
    while i < last and verdicts[i] != LOOK:
        batch = table[i]
        if verdicts[i] == COPY:
            start = source + batch[t.POSITION]
            n = batch[t.SIZE]
            while i + 1 < last and verdicts[i + 1] == COPY:  # copy adjacent batches at once
                i += 1
                n += table[i, t.SIZE]
            move_exactly(out, start, n)
            out += n
        elif verdicts[i] == REBUILD:
            horizon = np.int64(-1)
            has_horizon = batch[t.ATTRIBUTES] & DELETE_HORIZON_FLAG != 0
            if has_horizon:
                horizon = batch[t.BASE_TIMESTAMP]  # once set, it stays
            elif weights[i, TOMBSTONES] > 0:
                horizon = new_horizon_ms
            kept_bytes, base, largest = write_kept(batch, keeps[starts[i] :], horizon, out + DEFAULT_HEADER_BYTES)
            size = DEFAULT_HEADER_BYTES + kept_bytes
            move_exactly(out, source + batch[t.POSITION], DEFAULT_HEADER_BYTES)
            store_big_int32(out + SIZE_POSITION, size - FRAME_BYTES)
            attributes = batch[t.ATTRIBUTES] & KNOWN_FLAGS
            if horizon >= 0:
                attributes |= DELETE_HORIZON_FLAG
            store_big_int16(out + ATTRIBUTES_POSITION, attributes)
            store_big_int64(out + BASE_TIMESTAMP_POSITION, base)
            if batch[t.ATTRIBUTES] & LOG_APPEND_TIME_FLAG == 0:
                store_big_int64(out + MAX_TIMESTAMP_POSITION, largest)
            store_big_int32(out + COUNT_POSITION, weights[i, KEPT])
            places[count, NEW_POSITION], places[count, NEW_SIZE] = out - room, size
            count += 1
            out += size
        i += 1
    return i, out - room, count
