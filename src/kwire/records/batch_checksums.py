"""Checksums of many batches at once: by a kernel where the processor has a CRC-32C instruction, else one by one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kwire import native
from kwire.records import batch_table as t
from kwire.records.batch_header import ATTRIBUTES_POSITION, CRC, CRC_POSITION, write_crc
from kwire.wire.checksum import crc32c

__all__ = ["mark_wrong_crcs", "write_crcs"]


def mark_wrong_crcs(data: npt.NDArray[np.uint8], table: npt.NDArray[np.int64]) -> None:
    """Set FAULT of the batches whose checksum does not match. table: header table of batches in data."""
    is_default = table[:, t.MAGIC] == 2
    if native.HAS_CRC32C:
        native.check_default_crcs(data.ctypes.data, table, len(table))
    else:
        for row in np.flatnonzero(is_default):
            batch = data.data[table[row, t.POSITION] :][: table[row, t.SIZE]]
            if crc32c(batch[ATTRIBUTES_POSITION:]) != CRC.unpack_from(batch, CRC_POSITION)[0]:
                table[row, t.FAULT] = t.BAD_CRC
    if not is_default.all():
        native.check_legacy_crcs(data.ctypes.data, table, len(table))


def write_crcs(room: npt.NDArray[np.uint8], places: npt.NDArray[np.int64]) -> None:
    """Compute and store the checksums of new batches of magic 2. places: position in room and size of each, by row."""
    if native.HAS_CRC32C:
        native.sum_batches(room.ctypes.data, places, len(places))
    else:
        for position, size in places[:, :2].tolist():
            write_crc(room.data[position : position + size])
