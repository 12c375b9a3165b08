"""CRC-32C with the instruction that x86-64 has for it since SSE4.2 (2008): 7 GB/s on one core.

The instruction takes three cycles and one can start every cycle, so three runs of bytes are summed side by side and put
together by tables that move a sum over a fixed number of zero bytes. Compiling this for a processor without the
instruction kills the process: ask `usable()` before calling anything else here.
Source: M. Adler's crc32c.c for the method; Intel's manual for the instruction.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils, config

from kwire.records.batch_header import ATTRIBUTES_POSITION, CRC_POSITION
from kwire.records.kernels.table import BAD_CRC, FAULT, MAGIC, POSITION, SIZE
from kwire.wire.kernels.memory import byte_swap32, intrinsic, load_uint8, load_uint32, load_uint64

__all__ = ["check_default_crcs", "crc32c", "sum_buffer", "usable"]

POLYNOMIAL = 0x82F63B78
LONG_RUN, SHORT_RUN = 2048, 256  # bytes of each of the three runs


def usable() -> bool:
    """Whether numba may compile the instruction: this processor has it, or the one that NUMBA_CPU_FEATURES names."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    settings: Any = config  # filled from the environment, so type checkers see nothing in it
    if settings.CPU_FEATURES is not None:
        return "+sse4.2" in settings.CPU_FEATURES
    if settings.CPU_NAME not in (None, "host"):
        return False  # compiling for another processor, of which nothing is known here
    return bool(llvmlite.binding.get_host_cpu_features().get("sse4.2", False))


def multiply(a: int, b: int) -> int:
    """a * b modulo the polynomial, both with the lowest power in the highest bit."""
    product, bit = 0, 1 << 31
    while bit:
        if a & bit:
            product ^= b
        bit >>= 1
        b = b >> 1 ^ POLYNOMIAL if b & 1 else b >> 1
    return product


def zero_bytes_tables(n_bytes: int) -> np.ndarray:
    """uint32[4, 256]: for each byte of a sum, what it becomes after n_bytes zero bytes."""
    power, square, bits = 1 << 31, 1 << 30, 8 * n_bytes
    while bits:
        if bits & 1:
            power = multiply(square, power)
        square = multiply(square, square)
        bits >>= 1
    return np.array([[multiply(power, byte << 8 * k) for byte in range(256)] for k in range(4)], np.uint32)


LONG_TABLES = zero_bytes_tables(LONG_RUN)
SHORT_TABLES = zero_bytes_tables(SHORT_RUN)


@intrinsic
def sum_word(typing_context, crc, word):
    """The instruction on eight bytes."""

    def generate(context, builder, signature, arguments):
        int64 = ir.IntType(64)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(int64, [int64, int64]), "llvm.x86.sse42.crc32.64.64"
        )
        return builder.call(function, arguments)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def sum_byte(typing_context, crc, byte):
    """The instruction on one byte."""

    def generate(context, builder, signature, arguments):
        int32, int8 = ir.IntType(32), ir.IntType(8)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(int32, [int32, int8]), "llvm.x86.sse42.crc32.32.8"
        )
        return builder.call(function, arguments)

    return types.uint32(types.uint32, types.uint8), generate


@njit(inline="always")
def move_over_zeros(tables, crc):
    """The sum after the run of zero bytes that tables stand for."""
    return np.uint64(
        tables[0, crc & 0xFF]
        ^ tables[1, (crc >> 8) & 0xFF]
        ^ tables[2, (crc >> 16) & 0xFF]
        ^ tables[3, (crc >> 24) & 0xFF]
    )


@njit(nogil=True, cache=True)
def crc32c(address, n):
    """CRC-32C of n bytes."""
    crc = np.uint64(0xFFFFFFFF)
    while n >= 3 * LONG_RUN:
        second, third = np.uint64(0), np.uint64(0)
        end = address + LONG_RUN
        while address < end:
            crc = sum_word(crc, load_uint64(address))
            second = sum_word(second, load_uint64(address + LONG_RUN))
            third = sum_word(third, load_uint64(address + 2 * LONG_RUN))
            address += 8
        crc = move_over_zeros(LONG_TABLES, crc) ^ second
        crc = move_over_zeros(LONG_TABLES, crc) ^ third
        address += 2 * LONG_RUN
        n -= 3 * LONG_RUN
    while n >= 3 * SHORT_RUN:
        second, third = np.uint64(0), np.uint64(0)
        end = address + SHORT_RUN
        while address < end:
            crc = sum_word(crc, load_uint64(address))
            second = sum_word(second, load_uint64(address + SHORT_RUN))
            third = sum_word(third, load_uint64(address + 2 * SHORT_RUN))
            address += 8
        crc = move_over_zeros(SHORT_TABLES, crc) ^ second
        crc = move_over_zeros(SHORT_TABLES, crc) ^ third
        address += 2 * SHORT_RUN
        n -= 3 * SHORT_RUN
    while n >= 8:
        crc = sum_word(crc, load_uint64(address))
        address += 8
        n -= 8
    rest = np.uint32(crc)
    while n > 0:
        rest = sum_byte(rest, load_uint8(address))
        address += 1
        n -= 1
    return np.int64(rest ^ np.uint32(0xFFFFFFFF))


def sum_buffer(data: memoryview) -> int:
    """CRC-32C of a buffer, which is not copied."""
    return int(sum_array(np.frombuffer(data, np.uint8)))


@njit(nogil=True, cache=True)
def sum_array(data):
    """CRC-32C of an array of bytes."""
    return crc32c(np.int64(data.ctypes.data), data.size)


@njit(nogil=True, cache=True)
def check_default_crcs(start, table, rows):
    """Set FAULT of each batch of magic 2 whose checksum does not hold."""
    for i in range(rows):
        row = table[i]
        if row[MAGIC] == 2:
            at = start + row[POSITION]
            stored = np.int64(byte_swap32(load_uint32(at + CRC_POSITION)))
            if crc32c(at + ATTRIBUTES_POSITION, row[SIZE] - ATTRIBUTES_POSITION) != stored:
                row[FAULT] = BAD_CRC
