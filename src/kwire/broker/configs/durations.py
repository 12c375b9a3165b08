"""Durations as java.time.Duration writes them: PnDTnHnMn.nS. Negative ones are not accepted.

Source: java.time.Duration.parse.
"""

from __future__ import annotations

import re

__all__ = ["DURATION", "duration_ms"]

DURATION = re.compile(
    r"(?i:P(?=.*\d)(\+?\d{1,14}D)?(T(?=.)(\+?\d{1,15}H)?(\+?\d{1,15}M)?(\+?\d{1,15}([.,]\d{0,9})?S)?)?)", re.ASCII
)
UNITS_MS = (86_400_000, 3_600_000, 60_000)


def duration_ms(text: str) -> int:
    """Return a duration that DURATION matches in milliseconds, without fractions of one."""
    found = DURATION.fullmatch(text)
    assert found is not None, text
    days, _, hours, minutes, seconds, _ = found.groups()
    total = sum(int(part[:-1]) * unit for part, unit in zip((days, hours, minutes), UNITS_MS, strict=True) if part)
    if seconds:
        whole, _, fraction = seconds[:-1].replace(",", ".").partition(".")
        total += int(whole) * 1000 + int((fraction + "000")[:3])
    return total
