"""Kernels: checksums compared with libraries, and memory safety."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import numpy as np
import numpy.typing as npt
import pytest
from tests.compiled import needs_compiled_code

from kwire import native
from kwire.log.reading.chunk_offset_check import first_wrong
from kwire.records.attributes import CONTROL_FLAG, HIGHEST_CODEC
from kwire.records.columns import reader
from kwire.records.columns.decoder import ColumnDecoder
from kwire.records.format import batch_table as t
from kwire.records.format.batch_checksums import mark_wrong_crcs
from kwire.records.format.batch_header import (
    CRC,
    FRAME_BYTES,
    LEGACY_CRC_POSITION,
    MAGIC_POSITION,
    SIZE,
    SIZE_POSITION,
    SMALLEST_SIZE,
)

ROOT = Path(__file__).parents[2]
needs_instruction = pytest.mark.skipif(not native.HAS_CRC32C, reason="no CRC-32C instruction, or no compiled code")

# Around the borders of eight bytes, of the short and of the long runs.
LENGTHS = [*range(70), 255, 256, 767, 768, 769, 775, 1536, 2047, 6143, 6144, 6145, 6150, 12288, 12289, 20011]


@pytest.mark.parametrize("length", [length for length in LENGTHS if length >= SMALLEST_SIZE - 4])
def test_crc32_equals_zlibs(length: int) -> None:
    """The checksum covers `length` bytes of a message."""
    data = np.random.default_rng(length).integers(0, 256, MAGIC_POSITION + length, np.uint8)
    SIZE.pack_into(data.data, SIZE_POSITION, len(data) - FRAME_BYTES)
    data[MAGIC_POSITION] = length % 2
    table = np.zeros((1, t.COLUMN_COUNT), np.int64)
    table[0, [t.SIZE, t.MAGIC]] = len(data), length % 2
    for wrong in (0, 1):
        CRC.pack_into(data.data, LEGACY_CRC_POSITION, zlib.crc32(data[MAGIC_POSITION:].tobytes()) ^ wrong)
        mark_wrong_crcs(data, table)
        assert table[0, t.FAULT] == (t.BAD_CRC if wrong else 0)


@needs_instruction
@pytest.mark.parametrize("length", LENGTHS)
def test_crc32c_equals_googles(length: int) -> None:
    data = np.random.default_rng(length).integers(0, 256, length, np.uint8)
    assert native.sum_bytes(data) == google_crc32c.value(data.tobytes())


@pytest.mark.sampled
@pytest.mark.parametrize(("kernel", "inputs"), [("1", "2000"), ("0", "40")])
def test_kernels_stay_within_their_memory(kernel: str, inputs: str) -> None:
    """Mutated inputs with guard pages after every buffer; the second run, by Python, also checks array indexes."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.records", "guarded", inputs, "7"]
    environment = os.environ | {"KWIRE_KERNEL": kernel}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{inputs}\n"), done.stderr[-3000:]


def test_the_guard_page_catches_an_out_of_bounds_access() -> None:
    code = (
        "import ctypes\n"
        "from tests.fuzz.records import GuardedMemory\n"
        "memory = GuardedMemory().allocate(100)\n"
        "at = memory.ctypes.data\n"
        "ctypes.string_at(at, 100); print('inside', flush=True)\n"
        "ctypes.string_at(at, 101)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "inside\n"
    assert done.returncode == -11


def header_tables(count: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield header tables whose numbers are at and around what decides about a batch."""
    random = np.random.default_rng(11)
    for _ in range(count):
        rows = int(random.integers(1, 9))
        table = np.zeros((rows, t.COLUMN_COUNT), np.int64)
        table[:, t.BASE_OFFSET] = random.integers(-1, 12, rows)
        table[:, t.LAST_OFFSET] = table[:, t.BASE_OFFSET] + random.integers(-1, 4, rows)
        table[:, t.MAGIC] = random.integers(0, 3, rows)
        codec = random.integers(0, HIGHEST_CODEC + 2, rows) * random.integers(0, 2, rows)
        table[:, t.ATTRIBUTES] = codec | random.choice([0, CONTROL_FLAG], rows)
        table[:, t.COUNT] = random.choice([-1, 0, 1, 2, 2**31 - 1], rows)
        table[:, t.START] = 1000
        table[:, t.END] = 1000 + random.integers(0, 16, rows)
        table[:, t.FAULT] = random.choice([0, 0, 0, t.BAD_CRC], rows)
        yield table


@needs_compiled_code
def test_compiled_code_and_python_choose_the_same_batches() -> None:
    columns = ("value",)
    for number, table in enumerate(header_tables(2000)):
        decoder = ColumnDecoder(
            columns,
            reader.arrow_schema(columns),
            topic=None,
            partition=None,
            check_crc=True,
            max_decompressed_bytes=1 << 20,
            max_rows=100,
            max_bytes=1 << 20,
            include_control=number % 2 == 0,
        )
        decoder.kept_offsets = (number % 7, number % 11)
        expected = decoder.choose_plain(table.copy())
        kept, is_plain, records, n_bytes = native.choose_batches(table, *decoder.kept_offsets, number % 2 == 0)
        chosen = table[:kept]
        assert np.array_equal(chosen, expected)
        assert is_plain == (not (chosen[:, t.ATTRIBUTES] & 7).any() and not chosen[:, t.FAULT].any())
        assert (records, n_bytes) == (chosen[:, t.COUNT].sum(), (chosen[:, t.END] - chosen[:, t.START]).sum())


@needs_compiled_code
def test_compiled_code_and_python_find_the_same_wrong_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [(table, number % 5 - 2, number % 17) for number, table in enumerate(header_tables(2000))]
    found = [first_wrong(*each) for each in tables]
    monkeypatch.setattr(native, "LEVEL", None)
    assert found == [first_wrong(*each) for each in tables]
    assert {-1, 0, 1, 2} <= set(found)
