"""The kernels of the cleaner (native/cleaning.c) in plain Python, for platforms without compiled code.

The kernel that maps the keys of a batch is in `offset_map`.
"""

from __future__ import annotations

from ctypes import memmove, string_at

import numpy as np
import numpy.typing as npt

from kwire.log.cleaner.layout import Weights
from kwire.log.cleaner.offset_map import OffsetMap
from kwire.log.cleaner.sections import Sections, records_of
from kwire.records import Record
from kwire.records.attributes import LOG_APPEND_TIME_FLAG, NO_TIMESTAMP
from kwire.records.format import batch_table as t
from kwire.records.format.batch_header import MAGIC_POSITION, batch_spans
from kwire.records.format.default_writer import NO_ATTRIBUTES, varlong
from kwire.records.format.legacy_batch import LegacyBatch
from kwire.records.format.section_scan import scan_section
from kwire.records.format.wrapping import to_int64
from kwire.wire.varint import read_varint, read_varlong

__all__ = ["weigh_records", "write_kept"]


def weigh_records(
    sections: Sections,
    row: int,
    offset_map: OffsetMap,
    *,
    now_ms: int,
    keeps_old_tombstones: bool,
    keeps: npt.NDArray[np.uint8],
    weights: npt.NDArray[np.int64],
) -> None:
    """Decide for each record of a batch whether to retain it (X-20 to X-23). Raises CorruptBatch.

    keeps: set to 1 for retained records. weights: the row of the batch. Magic 2 is canonical only if all records are.
    """
    batch = sections.batch(row)
    keeps_tombstones = keeps_old_tombstones
    if batch.magic == 2:
        keeps_tombstones = batch.delete_horizon_ms is None or now_ms < batch.delete_horizon_ms
    weights[:] = 0
    for index, record in enumerate(records_of(batch)):
        stays = is_retained(record, offset_map, keeps_tombstones)
        keeps[index] = stays
        weights[Weights.KEPT] += stays
        if record.value is None:
            weights[Weights.TOMBSTONES if stays else Weights.DROPPED_TOMBSTONES] += 1
        weights[Weights.KEYLESS] += record.key is None and not stays
    if isinstance(batch, LegacyBatch):
        canonical = all(magic == batch.magic for magic, stays in zip(magics_of(batch), keeps, strict=False) if stays)
    else:
        entry = sections.table[row]
        canonical = scan_section(section_of(entry), int(entry[t.COUNT]), 0).is_canonical
    weights[Weights.IS_CANONICAL] = canonical


def is_retained(record: Record, offset_map: OffsetMap, keeps_tombstones: bool) -> bool:
    """Whether the record is to stay."""
    if record.offset > offset_map.latest_offset:
        return True
    if record.key is None or (record.value is None and not keeps_tombstones):
        return False
    return record.offset >= offset_map.get(record.key)


def magics_of(batch: LegacyBatch) -> list[int]:
    """Return the magic of the message, or of each inner one."""
    if not batch.compression:
        return [batch.magic]
    payload = batch.inner_payload()
    return [payload[start + MAGIC_POSITION] for start, _ in batch_spans(payload)]


def section_of(entry: npt.NDArray[np.int64]) -> memoryview:
    """Return the records of a batch, decompressed."""
    return memoryview(string_at(int(entry[t.START]), int(entry[t.END] - entry[t.START])))


def write_kept(
    entry: npt.NDArray[np.int64], keeps: npt.NDArray[np.uint8], delete_horizon_ms: int, room: int
) -> tuple[int, int, int]:
    """Write the retained records of a batch as the kernel of this name does: (bytes, base and largest timestamp)."""
    section, out, at = section_of(entry), bytearray(), 0
    is_append_time = bool(entry[t.ATTRIBUTES] & LOG_APPEND_TIME_FLAG)
    base, largest = delete_horizon_ms, NO_TIMESTAMP
    for keep in keeps.tolist():
        size, start = read_varint(section, at)
        at = start + size
        if not keep:
            continue
        delta, rest = read_varlong(section, start + len(NO_ATTRIBUTES))
        timestamp = int(entry[t.MAX_TIMESTAMP]) if is_append_time else to_int64(int(entry[t.BASE_TIMESTAMP]) + delta)
        if not out and delete_horizon_ms < 0:
            base = timestamp
        largest = max(largest, timestamp)
        body = b"".join((NO_ATTRIBUTES, varlong(to_int64(timestamp - base)), section[rest:at]))
        out += varlong(len(body)) + body
    memmove(room, bytes(out), len(out))
    return len(out), base, largest
