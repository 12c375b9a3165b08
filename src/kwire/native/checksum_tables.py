"""The tables of the checksums in `checksums.c`."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["checksum_tables"]

CRC32, CRC32C = 0xEDB88320, 0x82F63B78  # polynomials; the highest bit has the lowest power
LONG_RUN, SHORT_RUN = 2048, 256  # bytes of each of the three runs of CRC-32C that are summed side by side


def checksum_tables() -> str:
    """Return checksum_tables.h.

    crc32_table[k][b]: the CRC-32 of byte b followed by k zero bytes, without the inversion of the bits.
    ..._run_table[k][b]: for byte k of a CRC-32C that is b, its contribution to the sum after a run of zero bytes.
    """
    slices = [products(0, power_of_x(8 * (k + 1), CRC32), CRC32) for k in range(16)]
    words = {"LONG_RUN_WORDS": LONG_RUN // 8, "SHORT_RUN_WORDS": SHORT_RUN // 8}
    tables = {"long_run_table": after_zeros(LONG_RUN), "short_run_table": after_zeros(SHORT_RUN)}
    return "".join(
        [
            *(f"enum {{ {name} = {value} }};\n" for name, value in words.items()),
            *(c_table(name, table) for name, table in ({"crc32_table": slices} | tables).items()),
        ]
    )


def multiply(a: int, b: int, polynomial: int) -> int:
    """Return a * b modulo the polynomial."""
    product, bit = 0, 1 << 31
    while bit:
        if a & bit:
            product ^= b
        bit >>= 1
        b = b >> 1 ^ polynomial if b & 1 else b >> 1
    return product


def products(shift: int, factor: int, polynomial: int) -> list[int]:
    """Return the products of the factor and each byte, moved to its place in a sum."""
    values = [0]
    for bit in range(shift, shift + 8):
        one = multiply(1 << bit, factor, polynomial)
        values += [each ^ one for each in values]
    return values


def power_of_x(exponent: int, polynomial: int) -> int:
    """Return x to the power of the exponent modulo the polynomial."""
    power, square = 1 << 31, 1 << 30
    while exponent:
        if exponent & 1:
            power = multiply(square, power, polynomial)
        square = multiply(square, square, polynomial)
        exponent >>= 1
    return power


def after_zeros(n_bytes: int) -> list[list[int]]:
    """Return, for each byte of a CRC-32C, its contribution to the sum after n_bytes zero bytes."""
    power = power_of_x(8 * n_bytes, CRC32C)
    return [products(8 * k, power, CRC32C) for k in range(4)]


def c_table(name: str, rows: Sequence[Sequence[int]]) -> str:
    """Return a table in C."""
    text = ",\n".join("{" + ",".join(map(hex, row)) + "}" for row in rows)
    return f"static const uint32_t {name}[{len(rows)}][{len(rows[0])}] = {{\n{text}}};\n"
