"""The schema ids that Confluent's serializers put before a payload. Arrow in and out.

    prefix form    byte 0, int32 id (big-endian), payload
                   byte 1, 16 bytes of GUID, payload
    Protobuf       the same, then message indexes: zigzag varint count, that many zigzag varints; a single 0 means the
                   first message
    header form    the record's header `__key_schema_id` or `__value_schema_id` has one of the two prefixes (and
                   Protobuf's indexes), and the payload is the whole key or value

If a header occurs more than once, the last one counts, as in Kafka's Headers.lastHeader.
Source: Confluent's "Wire format" of the schema registry; io.confluent.kafka.serializers.schema.id.SchemaId.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kwire import native
from kwire.plan.nested_columns import message_bounds
from kwire.plan.slices import Bytes, Int64Array, cut
from kwire.wire.varint import write_varint

__all__ = [
    "KEY_HEADER",
    "VALUE_HEADER",
    "Prefixes",
    "encode_path",
    "last_header",
    "payloads",
    "read_prefixes",
    "schema_ids",
]

BoolArray = npt.NDArray[np.bool_]

KEY_HEADER, VALUE_HEADER = "__key_schema_id", "__value_schema_id"
ID, GUID = 0, 1
PREFIX_BYTES = {ID: 5, GUID: 17}
HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
DASHES = (8, 13, 18, 23)
GUID_CHARACTERS = 36
COMMON_IDS = 64
"""More in one array are found without the kernel, which compares each value with all of them."""
MAX_VARINT_BYTES = 5
MAX_INDEXES = 100  # messages inside messages; Protobuf's own readers nest no deeper


def schema_ids(data: pa.Array, headers: pa.Array | None = None, header: str = "") -> pa.StringArray:
    """Return the schema id of each value: a decimal number or a GUID in lower case, or null.

    data: binary. headers: list of struct<key, value>; the header of that name takes precedence over data's prefix.
    """
    ids = _ids(data)
    return ids if headers is None else pc.coalesce(_ids(last_header(headers, header)), ids)


def payloads(
    data: pa.Array, headers: pa.Array | None = None, header: str = "", *, protobuf: bool = False
) -> pa.BinaryArray:
    """Return the payload after the prefix, or the whole value if the header has the schema id; null without either."""
    source, bounds = message_bounds(data)
    starts, ends = bounds[:, 0].copy(), bounds[:, 1]
    valid = _kinds(source, bounds) >= 0
    starts[valid] += np.where(source[starts[valid]] == ID, PREFIX_BYTES[ID], PREFIX_BYTES[GUID])
    if protobuf:
        _skip_indexes(source, starts, ends, valid)
    if headers is not None:
        whole = _ids(last_header(headers, header)).is_valid().to_numpy(zero_copy_only=False) & (bounds[:, 0] >= 0)
        starts[whole] = bounds[whole, 0]
        valid |= whole
    return _cut(source, starts, ends, valid)


@dataclass(slots=True, eq=False)
class Prefixes:
    """The schema ids of an array of values.

    ids: the distinct ids and GUIDs. index: of each value's id among them, -1 if it has none. skip: bytes before the
    payload. is_uniform: whether all values have an id, the same one. The rest is where Protobuf's message indexes are:
    after the prefix, in the value or in its header.
    """

    ids: list[int | str]
    index: npt.NDArray[np.int32]
    skip: Int64Array
    is_uniform: bool
    source: Bytes
    bounds: Int64Array
    header_source: Bytes | None = None
    header_bounds: Int64Array | None = None

    def message_indexes(self, rows: BoolArray) -> tuple[list[tuple[int, ...]], npt.NDArray[np.int32]]:
        """Read the message indexes of rows with Protobuf, and add them to skip.

        Returns the distinct paths and for each row the index of its own; -1 for other rows and for invalid indexes.
        """
        paths: dict[bytes, int] = {}
        numbers = np.full(len(self.index), -1, np.int32)
        in_header = rows & (self.skip == 0)
        in_value = rows & ~in_header
        starts = self.bounds[:, 0] + self.skip
        after, valid = starts.copy(), in_value.copy()
        _skip_indexes(self.source, after, self.bounds[:, 1], valid)
        _number_paths(self.source, starts, after, valid, paths, numbers)
        self.skip[valid] += (after - starts)[valid]
        if self.header_source is not None and self.header_bounds is not None and in_header.any():
            starts, ends = self.header_bounds[:, 0].copy(), self.header_bounds[:, 1]
            starts[in_header] += np.where(self.header_source[starts[in_header]] == ID, 5, 17)
            after, valid = starts.copy(), in_header.copy()
            _skip_indexes(self.header_source, after, ends, valid)
            _number_paths(self.header_source, starts, after, valid, paths, numbers)
        return [_decode_path(each) for each in paths], numbers


def read_prefixes(data: pa.Array, headers: pa.Array | None = None, header: str = "") -> Prefixes:
    """Return the schema ids of values. headers, header: as in schema_ids."""
    made = _own_prefixes(data)
    ids, index, bounds = made.ids, made.index, made.bounds
    if headers is not None and (given := _given_headers(headers, header)) is not None:
        of_headers = _own_prefixes(given)
        made.header_source, made.header_bounds = of_headers.source, of_headers.bounds
        header_ids, header_index = of_headers.ids, of_headers.index
        is_given = (header_index >= 0) & (bounds[:, 0] >= 0)
        made.skip[is_given] = 0
        both = np.where(is_given, header_index + len(ids), index)
        is_used = np.bincount(both + 1, minlength=len(ids) + len(header_ids) + 1)[1:] > 0
        used = [each if is_used[at] else None for at, each in enumerate([*ids, *header_ids])]
        made.ids, numbers = _in_order(used)
        made.index, made.is_uniform = numbers[both], False
    return made


def _given_headers(headers: pa.Array, name: str) -> pa.BinaryArray | None:
    """Return last_header; None if no row has the header, as in most topics."""
    structs = pc.list_flatten(headers)
    if not len(structs):
        return None
    return last_header(headers, name) if pc.any(pc.equal(structs.field(0), name)).as_py() else None


def _own_prefixes(values: pa.Array) -> Prefixes:
    """Return the ids that values themselves begin with."""
    source, bounds = message_bounds(values)
    if native.LEVEL is not None:
        index, skip = np.empty(len(values), np.int32), np.empty(len(values), np.int64)
        starts = np.empty(COMMON_IDS, np.int64)
        count, with_id = native.number_prefixes(source, bounds, index, skip, starts)
        if count >= 0:
            prefixes = [source[at : at + PREFIX_BYTES[source[at]]].tobytes() for at in starts[:count].tolist()]
            ids, numbers = _in_order([_id_in(each) for each in prefixes])
            if count > 1:
                index = numbers[index]
            return Prefixes(ids, index, skip, count == 1 and with_id == len(values), source, bounds)
    ids, index = _numbered_ids(values)
    sizes = np.array([PREFIX_BYTES[ID if isinstance(each, int) else GUID] for each in ids] + [0])
    return Prefixes(ids, index, sizes[index], len(ids) == 1 and bool((index == 0).all()), source, bounds)


def _numbered_ids(values: pa.Array) -> tuple[list[int | str], npt.NDArray[np.int32]]:
    """Return the distinct ids and GUIDs that values begin with, and the index of each value's, -1 without one."""
    starts = pc.binary_slice(values, 0, PREFIX_BYTES[ID])
    is_guid = pc.starts_with(starts, bytes([GUID]))
    if pc.any(is_guid).as_py():
        starts = pc.if_else(is_guid, pc.binary_slice(values, 0, PREFIX_BYTES[GUID]), starts)
    found = starts.dictionary_encode()
    ids, numbers = _in_order([_id_in(each) for each in found.dictionary.to_pylist()])
    return ids, numbers[found.indices.fill_null(-1).to_numpy(zero_copy_only=False)]


def _id_in(start: bytes | None) -> int | str | None:
    """Return the id or GUID in the first bytes of a value, None without one."""
    if not start or start[0] > GUID or len(start) < PREFIX_BYTES[start[0]]:
        return None
    return str(UUID(bytes=start[1:])) if start[0] == GUID else int.from_bytes(start[1:], "big", signed=True)


def _in_order(given: list[int | str | None]) -> tuple[list[int | str], npt.NDArray[np.int32]]:
    """Return distinct ids in order, before GUIDs, and the place there of each given one, -1 for None; -1 at the end."""
    ids = sorted({each for each in given if each is not None}, key=lambda each: (isinstance(each, str), each))
    places = {each: place for place, each in enumerate(ids)}
    return ids, np.array([*(-1 if each is None else places[each] for each in given), -1], np.int32)


def _number_paths(
    source: Bytes,
    starts: Int64Array,
    ends: Int64Array,
    valid: BoolArray,
    paths: dict[bytes, int],
    path_numbers: npt.NDArray[np.int32],
) -> None:
    """Set path_numbers to the number of the bytes between starts and ends, the same for equal bytes."""
    sizes = np.where(valid, ends - starts, 0)
    for size in np.unique(sizes[valid]).tolist():
        rows = np.flatnonzero(valid & (sizes == size))
        raw = np.ascontiguousarray(source[starts[rows][:, None] + np.arange(size)])
        texts, inverse = np.unique(raw.view(f"V{size}").reshape(-1), return_inverse=True)
        numbers = [paths.setdefault(each.tobytes(), len(paths)) for each in texts]
        path_numbers[rows] = np.array(numbers, np.int32)[inverse]


def _decode_path(data: bytes) -> tuple[int, ...]:
    """Return the message indexes in their encoded form."""
    numbers, value, shift = list[int](), 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append((value >> 1) ^ -(value & 1))
            value = shift = 0
    return tuple(numbers[1:]) or (0,)


def encode_path(path: tuple[int, ...]) -> bytes:
    """Encode message indexes; a single 0 is short for the first message."""
    if path == (0,):
        return b"\0"
    out = bytearray()
    for number in (len(path), *path):
        write_varint(out, number)
    return bytes(out)


def last_header(headers: pa.Array, name: str) -> pa.BinaryArray:
    """Return the value of the last header of that name in each row, or null."""
    structs = pc.list_flatten(headers)
    has_name = pc.equal(structs.field(0), name).fill_null(False)
    rows = pc.list_parent_indices(headers).filter(has_name).to_numpy()
    last = np.full(len(headers), -1, np.int64)
    last[rows] = np.flatnonzero(has_name.to_numpy(zero_copy_only=False))  # the last assignment to a row wins
    return structs.field(1).take(pa.array(last, mask=last < 0))


def _kinds(source: Bytes, bounds: Int64Array) -> Int64Array:
    """Return ID or GUID for each value that is long enough for it, else -1."""
    sizes = np.where(bounds[:, 0] < 0, 0, bounds[:, 1] - bounds[:, 0])
    magic = np.full(len(bounds), -1, np.int64)
    magic[sizes > 0] = source[bounds[sizes > 0, 0]]
    for kind in (ID, GUID):
        magic[(magic == kind) & (sizes < PREFIX_BYTES[kind])] = -1
    magic[magic > GUID] = -1
    return magic


def _ids(data: pa.Array) -> pa.StringArray:
    source, bounds = message_bounds(data)
    kinds = _kinds(source, bounds)
    starts = bounds[:, 0] + 1
    numbers = np.zeros(len(bounds), np.int32)
    is_id, is_guid = kinds == ID, kinds == GUID
    raw = source[starts[is_id][:, None] + np.arange(4)]
    numbers[is_id] = np.ascontiguousarray(raw).view(">i4").reshape(-1)
    ids = pa.array(numbers, mask=~is_id).cast(pa.string())
    if not is_guid.any():
        return ids
    guids = _guid_texts(source[starts[is_guid][:, None] + np.arange(16)])
    indexes = np.cumsum(is_guid) - 1
    return pc.coalesce(ids, guids.take(pa.array(indexes, mask=~is_guid)))


def _guid_texts(guids: Bytes) -> pa.StringArray:
    """Render uint8[n, 16] as GUIDs, 8-4-4-4-12 hexadecimal digits."""
    count = len(guids)
    text = np.full((count, GUID_CHARACTERS), ord("-"), np.uint8)
    digits = np.stack([HEX[guids >> 4], HEX[guids & 15]], axis=2).reshape(count, 32)
    text[:, [i for i in range(GUID_CHARACTERS) if i not in DASHES]] = digits
    offsets = np.arange(0, text.size + 1, GUID_CHARACTERS, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def _skip_indexes(source: Bytes, starts: Int64Array, ends: Int64Array, valid: BoolArray) -> None:
    """Move starts after Protobuf's message indexes; rows with truncated or invalid indexes become invalid."""
    counts = _read_varints(source, starts, ends, valid)
    valid &= (counts >= 0) & (counts <= MAX_INDEXES)
    for index in range(MAX_INDEXES):
        active = valid & (counts > index)
        if not active.any():
            break
        valid &= ~active | (_read_varints(source, starts, ends, active) >= 0)


def _read_varints(source: Bytes, starts: Int64Array, ends: Int64Array, active: BoolArray) -> Int64Array:
    """Read zigzag varints of the active rows and move starts after them; -1 for truncated ones and other rows."""
    numbers = np.zeros(len(starts), np.int64)
    going, whole = active.copy(), np.zeros(len(starts), np.bool_)
    for index in range(MAX_VARINT_BYTES):
        rows = np.flatnonzero(going & (starts < ends))
        byte = source[starts[rows]].astype(np.int64)
        starts[rows] += 1
        numbers[rows] |= (byte & 0x7F) << (7 * index)
        whole[rows] = byte < 0x80
        going[:] = False
        going[rows] = byte >= 0x80
    decoded: Int64Array = np.where(whole, (numbers >> 1) ^ -(numbers & 1), -1)
    return decoded


def _cut(source: Bytes, starts: Int64Array, ends: Int64Array, valid: BoolArray) -> pa.BinaryArray:
    """Return the bytes between starts and ends; null for invalid rows."""
    slices = np.empty((len(starts), 2), np.int64)
    slices[:, 0] = np.where(valid, starts, 0)
    slices[:, 1] = np.where(valid, ends - starts, -1)
    return cut(source, slices, "values")
