"""Sizes, counts, times and durations as readable text with units."""

from __future__ import annotations

import datetime

__all__ = ["bytes_text", "count_text", "duration_text", "percent_text", "plural", "ratio_text", "time_text"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def bytes_text(n: int | float) -> str:
    """Return n bytes in binary units with three digits: `512 B`, `1.46 MiB`."""
    if abs(n) < 1024:
        return f"{n:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        n /= 1024
        if abs(n) < 999.5 or unit == "TiB":
            break
    return f"{_three_digits(n)} {unit}"


def count_text(n: int) -> str:
    """Return n with thin spaces between groups of three: `20 001`."""
    return f"{n:,}".replace(",", "\u202f")


def plural(number: int, what: str) -> str:
    """Return `1 field`, `2 fields`."""
    return f"{count_text(number)} {what}{'' if number == 1 else 's'}"


def percent_text(share: float) -> str:
    """Return share (0..1) as a percentage; only exact values are shown as 0 or 100 %."""
    percent = share * 100
    if 0 < percent < 0.1:
        return "<0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{percent:.1f} %" if percent % 1 else f"{percent:.0f} %"


def ratio_text(ratio: float) -> str:
    """Return a ratio as a factor: `2.4×`."""
    return f"{_three_digits(ratio)}×"


def time_text(ms: int | None) -> str | None:
    """Return milliseconds since 1970 as ISO 8601 in UTC, or None for None and -1 (no timestamp, as in magic 0).

    Values outside the calendar are returned as `N ms`.
    """
    if ms is None or ms == -1:
        return None
    try:
        moment = _EPOCH + datetime.timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def duration_text(ms: int) -> str:
    """Return a duration in its two largest units: `640 ms`, `53 min 20 s`, `12 d 4 h`."""
    if ms < 1000:
        return f"{ms} ms"
    seconds = ms // 1000
    for size, unit, smaller, name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = seconds % size // smaller
            return f"{seconds // size} {unit}" + (f" {rest} {name}" if rest else "")
    return f"{ms / 1000:.3g} s"


def _three_digits(n: float) -> str:
    digits = 2 if abs(n) < 10 else 1 if abs(n) < 100 else 0
    return f"{n:.{digits}f}"
