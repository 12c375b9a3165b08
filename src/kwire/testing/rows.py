"""Differences between the rows that a test expects and those that it got.

Rows are compared by their values, as Spark's assertDataFrameEqual does: floats and decimals may differ by a hundred
thousandth, NaN equals NaN. Unlike there, one missing row is one difference, wherever it is.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal

__all__ = ["difference"]

RELATIVE, ABSOLUTE = 1e-5, 1e-8
SHOWN = 20
"""Rows that a message shows of each kind."""

Rows = Sequence[Sequence[object]]


def difference(actual: Rows, expected: Rows, *, in_order: bool = False) -> str | None:
    """Return how actual rows differ from the expected ones, None if they do not. in_order: whether the order counts."""
    missing, unexpected = unmatched(actual, expected)
    parts = [
        f"{len(rows)} {what}:\n{lines_of(rows)}"
        for what, rows in (
            ("missing, expected but not in the result", missing),
            ("unexpected, in the result but not expected", unexpected),
        )
        if rows
    ]
    if in_order and not parts:
        moved = [
            f"position {at}: expected {wanted!r}, got {row!r}"
            for at, (wanted, row) in enumerate(zip(expected, actual, strict=True))
            if not is_close(wanted, row)
        ]
        if moved:
            parts.append(f"{len(moved)} in another order:\n{lines_of(moved, str)}")
    if not parts:
        return None
    return f"the result has {counted(actual)}, {counted(expected)} expected\n" + "\n".join(parts)


def counted(rows: Rows) -> str:
    """Return the number of rows in words."""
    return f"{len(rows)} row{'' if len(rows) == 1 else 's'}"


def lines_of(rows: Sequence[object], show: type[str] | None = None) -> str:
    """Return the first rows, a line each."""
    lines = [f"    {row if show else repr(row)}" for row in rows[:SHOWN]]
    return "\n".join([*lines, f"    ({len(rows) - SHOWN} more)"] if len(rows) > SHOWN else lines)


def unmatched(actual: Rows, expected: Rows) -> tuple[list[Sequence[object]], list[Sequence[object]]]:
    """Return the rows that are missing, and those that are unexpected, each in its order."""
    keys_of_actual, keys_of_expected = ([key_of(row) for row in rows] for rows in (actual, expected))
    common = Counter(keys_of_actual) & Counter(keys_of_expected)
    missing = left_over(expected, keys_of_expected, common)
    unexpected = left_over(actual, keys_of_actual, common)
    return without_close(missing, unexpected) if missing and unexpected else (missing, unexpected)


def left_over(rows: Rows, keys: Sequence[Hashable], common: Counter[Hashable]) -> list[Sequence[object]]:
    """Return the rows without those in common."""
    remaining = Counter(common)
    unmatched_rows = []
    for row, key in zip(rows, keys, strict=True):
        if remaining[key] > 0:
            remaining[key] -= 1
        else:
            unmatched_rows.append(row)
    return unmatched_rows


def without_close(missing: Rows, unexpected: Rows) -> tuple[list[Sequence[object]], list[Sequence[object]]]:
    """Return the rows without pairs whose numbers are close; pairs have the same values otherwise."""
    groups: dict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((missing, unexpected)):
        for at, row in enumerate(rows):
            groups[key_of(row, exact=False)][side].append(at)
    matched: tuple[set[int], set[int]] = (set(), set())
    for pair in groups.values():
        wanted, extra = (
            sorted(places, key=lambda at: numbers_of(rows[at]))
            for places, rows in zip(pair, (missing, unexpected), strict=True)
        )
        i = j = 0
        while i < len(wanted) and j < len(extra):
            ours, theirs = missing[wanted[i]], unexpected[extra[j]]
            if is_close(ours, theirs):
                matched[0].add(wanted[i])
                matched[1].add(extra[j])
                i, j = i + 1, j + 1
            elif numbers_of(ours) < numbers_of(theirs):
                i += 1
            else:
                j += 1
    return (
        [row for at, row in enumerate(missing) if at not in matched[0]],
        [row for at, row in enumerate(unexpected) if at not in matched[1]],
    )


def key_of(value: object, *, exact: bool = True) -> Hashable:
    """Return what equal values have in common. exact: whether numbers with a fraction count."""
    if isinstance(value, bool):
        return ("bool", value)  # in Python, True equals 1
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, float | Decimal) and not exact:
        return "number"
    if isinstance(value, str):
        return ("str", value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Mapping):
        return ("map", frozenset((key_of(key, exact=exact), key_of(each, exact=exact)) for key, each in value.items()))
    if isinstance(value, Sequence):
        return tuple(key_of(each, exact=exact) for each in value)
    return value if isinstance(value, Hashable) else repr(value)


def numbers_of(value: object) -> list[float]:
    """Return the numbers with a fraction in a row, in their order; values of a map are ordered by key."""
    if isinstance(value, float | Decimal):
        return [] if math.isnan(value) else [float(value)]
    if isinstance(value, Mapping):
        return [
            number for _, each in sorted(value.items(), key=lambda pair: repr(pair[0])) for number in numbers_of(each)
        ]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return [number for each in value for number in numbers_of(each)]
    return []


def is_close(ours: Sequence[object], theirs: Sequence[object]) -> bool:
    """Return whether two rows are equal, but for numbers that are close."""
    if key_of(ours, exact=False) != key_of(theirs, exact=False):
        return False
    pairs = zip(numbers_of(ours), numbers_of(theirs), strict=True)
    return all(math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE) for one, other in pairs)
