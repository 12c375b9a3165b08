"""Hashes of rows that are compared."""

from __future__ import annotations

import struct

import pyarrow as pa

from kwire.lake.row_hashes import row_hashes


def test_all_values_that_are_no_number_are_alike() -> None:
    bits = (0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000)
    numbers = [*(struct.unpack(">d", struct.pack(">Q", each))[0] for each in bits), 0.0, 1.5]
    first, second, third, zero, other = row_hashes(pa.record_batch({"x": pa.array(numbers)}), ["x"])
    assert first == second == third
    assert len({first, zero, other}) == 3
