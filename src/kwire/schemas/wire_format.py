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
    payload. The rest is where Protobuf's message indexes are: after the prefix, in the value or in its header.
    """

    ids: list[int | str]
    index: npt.NDArray[np.int32]
    skip: Int64Array
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
    source, bounds = message_bounds(data)
    kinds = _kinds(source, bounds)
    numbers, guids = _raw_ids(source, bounds, kinds)
    skip = np.where(kinds < 0, 0, np.where(kinds == ID, PREFIX_BYTES[ID], PREFIX_BYTES[GUID]))
    made = Prefixes([], np.full(len(bounds), -1, np.int32), skip, source, bounds)
    if headers is not None:
        made.header_source, made.header_bounds = message_bounds(last_header(headers, header))
        header_kinds = _kinds(made.header_source, made.header_bounds)
        header_kinds[bounds[:, 0] < 0] = -1
        header_numbers, header_guids = _raw_ids(made.header_source, made.header_bounds, header_kinds)
        is_given = header_kinds >= 0
        kinds = np.where(is_given, header_kinds, kinds)
        numbers, guids = np.where(is_given, header_numbers, numbers), np.where(is_given, header_guids, guids)
        skip[is_given] = 0
    is_id, is_guid = kinds == ID, kinds == GUID
    if is_id.any():
        values, inverse = np.unique(numbers[is_id], return_inverse=True)
        made.ids += values.tolist()
        made.index[is_id] = inverse
    if is_guid.any():
        texts, inverse = np.unique(guids[is_guid], return_inverse=True)
        made.index[is_guid] = inverse + len(made.ids)
        made.ids += [str(UUID(bytes=each.tobytes())) for each in texts]
    return made


def _raw_ids(source: Bytes, bounds: Int64Array, kinds: Int64Array) -> tuple[Int64Array, npt.NDArray[np.void]]:
    """Return the numbers and the GUIDs of the values of each kind; others are 0."""
    numbers, guids = np.zeros(len(bounds), np.int64), np.zeros(len(bounds), "V16")
    starts = bounds[:, 0] + 1
    is_id, is_guid = kinds == ID, kinds == GUID
    if is_id.any():
        raw = source[starts[is_id][:, None] + np.arange(4)]
        numbers[is_id] = np.ascontiguousarray(raw).view(">i4").reshape(-1)
    if is_guid.any():
        guids[is_guid] = np.ascontiguousarray(source[starts[is_guid][:, None] + np.arange(16)]).view("V16").reshape(-1)
    return numbers, guids


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
