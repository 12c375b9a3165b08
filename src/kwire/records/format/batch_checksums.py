"""Checksums of many batches at once: by a kernel where the processor has a CRC-32C instruction, else one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from kwire import native
from kwire.records.format import batch_table as t
from kwire.records.format.batch_header import (
    ATTRIBUTES_POSITION,
    CRC,
    CRC_POSITION,
    LEGACY_CRC_POSITION,
    MAGIC_POSITION,
    write_crc,
)
from kwire.records.format.checksum import crc32, crc32c

__all__ = ["mark_wrong_crcs", "write_crcs"]


def mark_wrong_crcs(data: npt.NDArray[np.uint8], table: npt.NDArray[np.int64]) -> None:
    """Set FAULT of the batches whose checksum does not match. table: header table of batches in data."""
    is_default = None
    if native.HAS_CRC32C:
        others = native.check_default_crcs(data, table)
    else:
        is_default = table[:, t.MAGIC] == 2
        mark_plain(data, table, is_default, CRC_POSITION, ATTRIBUTES_POSITION, crc32c)
        others = len(table) - int(is_default.sum())
    if not others:
        return
    if native.LEVEL is not None:
        native.check_legacy_crcs(data, table)
    elif is_default is not None:
        mark_plain(data, table, ~is_default, LEGACY_CRC_POSITION, MAGIC_POSITION, crc32)


def mark_plain(
    data: npt.NDArray[np.uint8],
    table: npt.NDArray[np.int64],
    rows: npt.NDArray[np.bool_],
    crc_position: int,
    covered_from: int,
    checksum: Callable[[memoryview], int],
) -> None:
    """Do so for the rows of one format, one by one."""
    for row in np.flatnonzero(rows):
        batch = data.data[table[row, t.POSITION] :][: table[row, t.SIZE]]
        if checksum(batch[covered_from:]) != CRC.unpack_from(batch, crc_position)[0]:
            table[row, t.FAULT] = t.BAD_CRC


def write_crcs(room: npt.NDArray[np.uint8], places: npt.NDArray[np.int64]) -> None:
    """Compute and store the checksums of new batches of magic 2. places: position in room and size of each, by row."""
    if native.HAS_CRC32C:
        native.sum_batches(room, places)
    else:
        for position, size in places[:, :2].tolist():
            write_crc(room.data[position : position + size])
