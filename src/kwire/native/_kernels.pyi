"""The extension module that `kwire.native.build` makes.

The functions below "Kernels" take numbers and arrays: the build makes the table from which module.c converts their
arguments from these signatures. They run without the GIL, those below "Brief kernels" with it: to release it and to
wait for it again takes longer than they do.
"""

from collections.abc import Callable
from typing import Any

from kwire.native.arrays import (
    Bytes,
    Int32s,
    Int64s,
    Int64Table,
    UInt64s,
    UInt64Table,
    WritableBytes,
    WritableInt32s,
    WritableInt64s,
    WritableInt64Table,
    WritableUInt32s,
    WritableUInt64Table,
)
from kwire.records.format.record import Record

SOURCES: str
VERSION: str
LEVEL: str
HAS_CRC32C: bool

def decoders(
    job: int, walk: Callable[..., tuple[object, int]], kept: object, /
) -> tuple[Callable[..., Any], Callable[..., tuple[Any, int]]]: ...
def slots(cls: type, /) -> tuple[int, dict[str, int]]: ...
def encoder(job: int, write: Callable[[object], bytes], kept: object, /) -> Callable[[object], bytes]: ...
def record_factory(
    cls: type, timestamp_types: tuple[object, ...], decode_key: Callable[[bytes], str], /, *offsets: int
) -> object: ...
def append_record(
    state: bytearray, out: bytearray, key: object, value: object, timestamp: int, headers: object, offset: int | None, /
) -> bool: ...
def append_records(
    state: bytearray, out: bytearray, factory: object, records: list[Record], start: int, keep_offsets: bool, /
) -> int: ...
def read_records(
    factory: object, section: Bytes, leader_epoch: int | None, type: int, position: int, count: int, /, *header: int
) -> tuple[list[Record], int, int, int]: ...
def read_messages(
    factory: object, section: Bytes, leader_epoch: None, type: int, position: int, count: int, /, *header: int
) -> tuple[list[Record], int, int, int]: ...
def decode_avro(job: Int64s, /) -> int: ...
def decode_protobuf(job: Int64s, /) -> int: ...
def decode_json(job: Int64s, /) -> int: ...
def encode_avro(job: Int64s, /) -> int: ...
def encode_protobuf(job: Int64s, /) -> int: ...
def encode_json(job: Int64s, /) -> int: ...

# Kernels

def read_columns(
    source: Bytes, bounds: WritableInt64Table, plan: Int64Table, columns: Int64s, levels: WritableInt64Table, /
) -> tuple[int, bool]: ...
def gather(
    source: Bytes, slices: Int64Table, constant: Bytes, code: int, offsets: WritableInt32s, data: WritableBytes, /
) -> None: ...
def scan_batches(data: Bytes, position: int, table: WritableInt64Table, /) -> tuple[int, int, int]: ...
def check_legacy_crcs(data: Bytes, table: WritableInt64Table, /) -> None: ...
def check_default_crcs(data: Bytes, table: WritableInt64Table, /) -> int: ...
def sum_bytes(data: Bytes, /) -> int: ...
def sum_batches(room: WritableBytes, table: Int64Table, /) -> None: ...
def encode_default_batches(
    columns: Int64s,
    row: int,
    rows: int,
    base_offset: int,
    batch_size: int,
    room: int,
    room_size: int,
    table: WritableInt64Table,
    state: WritableInt64s,
    /,
) -> None: ...
def encode_messages(
    columns: Int64s,
    row: int,
    rows: int,
    base_offset: int,
    batch_size: int,
    magic: int,
    relative: int,
    append_time: int,
    room: int,
    room_size: int,
    table: WritableInt64Table,
    state: WritableInt64s,
    /,
) -> None: ...
def write_headers(
    room: int,
    table: Int64Table,
    batches: int,
    attributes: int,
    leader_epoch: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    append_time: int,
    /,
) -> int: ...
def decode_records(
    table: Int64Table,
    lowest_offset: int,
    highest_offset: int,
    check_crc: int,
    addresses: Int64s,
    state: WritableInt64s,
    /,
) -> int: ...
def skip_records(at: int, end: int, magic: int, most: int, most_bytes: int, /) -> tuple[int, int]: ...
def measure_messages(payload: Bytes, /) -> tuple[int, int, int, int]: ...
def scan_section(
    section: Bytes, count: int, base_timestamp: int, /
) -> tuple[int, int, bool, int, int, int, int, bool]: ...
def find_header(data: Bytes, position: int, left: int, floor: int, ceiling: int, /) -> int: ...
def hash_keys(ends: Int32s, data: Bytes, hashes: WritableUInt32s, /) -> int: ...
def number_prefixes(
    data: Bytes, bounds: Int64Table, numbers: WritableInt32s, sizes: WritableInt64s, starts: WritableInt64s, /
) -> tuple[int, int]: ...
def put_key(
    slots: WritableUInt64Table, state: WritableInt64s, secret: UInt64s, key: int, key_bytes: int, offset: int, /
) -> int: ...
def get_offset(slots: UInt64Table, secret: UInt64s, key: int, key_bytes: int, /) -> int: ...
def move_slots(old: UInt64Table, new: WritableUInt64Table, /) -> None: ...
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
    /,
) -> int: ...
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
    /,
) -> int: ...
def write_kept(batch: Int64s, keeps: Bytes, delete_horizon_ms: int, room: int, /) -> tuple[int, int, int]: ...
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
    /,
) -> tuple[int, int, int]: ...

# Brief kernels

def first_wrong_offsets(table: Int64Table, floor: int, ceiling: int, /) -> int: ...
def choose_batches(
    table: WritableInt64Table, lowest_offset: int, highest_offset: int, keeps_control: int, /
) -> tuple[int, bool, int, int]: ...
def wrapped_value(message: Bytes, /) -> tuple[int, int, int]: ...
