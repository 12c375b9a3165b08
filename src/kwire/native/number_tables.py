"""The table with which `json_writing.c` writes numbers."""

from __future__ import annotations

__all__ = ["powers_of_ten"]

LEAST_POWER, GREATEST_POWER = -292, 324
"""Powers that scale a double to a number of 17 digits."""
POWER_BITS = 128


def powers_of_ten() -> str:
    """Return powers_of_ten.h: the upper and lower half of the first 128 bits of each power of ten, rounded up."""
    rows = []
    for power in range(LEAST_POWER, GREATEST_POWER + 1):
        number = 10 ** abs(power)
        bits = number.bit_length()
        if power < 0:
            scaled = -((-1 << POWER_BITS - 1 + bits) // number)
        else:
            scaled = number << POWER_BITS - bits if bits <= POWER_BITS else -(-number >> bits - POWER_BITS)
        assert scaled.bit_length() == POWER_BITS
        rows.append(f"    {{{scaled >> 64:#x}, {scaled & (1 << 64) - 1:#x}}},\n")
    enum = f"enum {{ LEAST_POWER = {LEAST_POWER} }};\n"
    return f"{enum}static const uint64_t POWERS_OF_TEN[{len(rows)}][2] = {{\n{''.join(rows)}}};\n"
