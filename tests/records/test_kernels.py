"""Kernels: checksums compared with libraries, and memory safety."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.errors import DecodeError
from kwire.records.kernels import checksums, crc32c
from kwire.records.kernels import default_records as default
from kwire.wire.kernels import memory
from kwire.wire.varint import read_varint, read_varlong

ROOT = Path(__file__).parents[2]
needs_instruction = pytest.mark.skipif(not crc32c.usable(), reason="no CRC-32C instruction that numba can use here")

# Around the borders of eight bytes, of the short and of the long runs.
LENGTHS = [*range(70), 255, 256, 767, 768, 769, 775, 1536, 2047, 6143, 6144, 6145, 6150, 12288, 12289, 20011]


@pytest.mark.parametrize("length", LENGTHS)
def test_crc32_equals_zlibs(length: int) -> None:
    data = np.random.default_rng(length).integers(0, 256, length, np.uint8)
    assert checksums.crc32(data.ctypes.data, length) == zlib.crc32(data.tobytes())


@needs_instruction
@pytest.mark.parametrize("length", LENGTHS)
def test_crc32c_equals_googles(length: int) -> None:
    data = np.random.default_rng(length).integers(0, 256, length, np.uint8)
    assert crc32c.crc32c(data.ctypes.data, length) == google_crc32c.value(data.tobytes())


def test_the_crc32_instruction_is_used_only_if_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crc32c.platform, "machine", lambda: "aarch64")
    assert not crc32c.usable()
    monkeypatch.setattr(crc32c.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(crc32c.llvmlite.binding, "get_host_cpu_features", lambda: {"sse4.2": False})
    monkeypatch.setattr(crc32c.config, "CPU_NAME", None)
    monkeypatch.setattr(crc32c.config, "CPU_FEATURES", None)
    assert not crc32c.usable()
    monkeypatch.setattr(crc32c.llvmlite.binding, "get_host_cpu_features", lambda: {"sse4.2": True})
    assert crc32c.usable()
    monkeypatch.setattr(crc32c.config, "CPU_NAME", "generic")
    assert not crc32c.usable()
    monkeypatch.setattr(crc32c.config, "CPU_FEATURES", "+sse2,+sse4.2")
    assert crc32c.usable()
    monkeypatch.setattr(crc32c.config, "CPU_FEATURES", "+sse2,-sse4.2")
    assert not crc32c.usable()


@given(st.binary(max_size=12), st.booleans())
@settings(deadline=None)
def test_varints_are_read_as_by_the_object_path(data: bytes, long: bool) -> None:
    raw = np.frombuffer(data + b"\0", np.uint8)
    start = raw.ctypes.data
    value, at = (default.read_varlong if long else default.read_varint)(start, start + len(data))
    try:
        expected = (read_varlong if long else read_varint)(data, 0)
    except DecodeError:
        assert at == 0
    else:
        assert (value, at - start) == expected


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 100, 511, 512, 513, 5000])
@pytest.mark.parametrize("left", [0, 1, 31, 32, 64])
def test_copies_write_at_most_their_slack(n: int, left: int) -> None:
    source = np.random.default_rng(n).integers(0, 256, n + left, np.uint8)
    target = np.full(n + memory.WIDE + 8, 0xEE, np.uint8)
    memory.copy_bytes(target.ctypes.data, source.ctypes.data, n, source.ctypes.data + n + left)
    assert target[:n].tobytes() == source[:n].tobytes()
    assert (target[n + memory.WIDE :] == 0xEE).all()


@pytest.mark.parametrize("bounds_check", ["0", "1"])
def test_kernels_stay_within_their_memory(bounds_check: str, tmp_path: Path) -> None:
    """Mutated inputs with guard pages after every buffer; the second run also checks array indexes."""
    environment = os.environ | {"NUMBA_BOUNDSCHECK": bounds_check}
    if bounds_check == "1":
        environment["NUMBA_CACHE_DIR"] = str(tmp_path)
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.records", "guarded", "2000", "7"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "2000\n"), done.stderr[-3000:]


def test_the_guard_page_catches_an_out_of_bounds_access() -> None:
    code = (
        "from tests.fuzz.records import GuardedMemory\n"
        "from kwire.records.kernels.checksums import crc32\n"
        "memory = GuardedMemory().allocate(100)\n"
        "crc32(memory.ctypes.data, 100); print('inside', flush=True)\n"
        "crc32(memory.ctypes.data, 101)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "inside\n"
    assert done.returncode == -11
