"""Texts as dates, timestamps and decimals, as JSON and CSV have them."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["shown", "typed_texts"]

DAY, CLOCK, ZONE = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?", r"Z|[+-]\d\d(?::?\d\d)?"
UTC_TIME = rf"^{DAY}[T ]{CLOCK}Z$"
TIME = rf"^(?P<day>{DAY})[T ](?P<time>{CLOCK})\d*(?P<zone>{ZONE})?$"
"""Digits after the microseconds are cut off, as by Spark."""
DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?", re.ASCII)
PLAIN_DECIMAL = r"^-?\d{1,19}(?:\.\d{1,19})?$"
"""What Arrow casts: exponents of some hundred crash pyarrow 26."""


def typed_texts(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, str]:
    """Return texts as dates, timestamps or decimals, nulls for those that are none, and what such a text is."""
    if pa.types.is_decimal(kind):
        return _decimals(texts, kind), f"not a number that fits decimal({kind.precision}, {kind.scale})"
    if pa.types.is_date(kind):
        return _dates(texts), "not a date (2026-01-31)"
    return _timestamps(texts, has_zone=kind.tz is not None), "not a timestamp (2026-01-31T12:00:00Z)"


def shown(value: Any) -> str:
    """Return a value for a message."""
    return repr(value)[:60]


def _decimals(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return decimals; digits after the scale are rounded, a half away from zero, as by Spark."""
    is_plain = pc.fill_null(pc.match_substring_regex(texts, PLAIN_DECIMAL), True)
    try:
        made = pc.if_else(is_plain, texts, None).cast(kind)
    except pa.ArrowInvalid:  # more digits than the type has
        return pa.array([_rounded(each, kind) for each in texts.to_pylist()], kind)
    others = pc.if_else(is_plain, None, texts).drop_null().to_pylist()
    if not others:
        return made
    return pc.replace_with_mask(made, pc.invert(is_plain), pa.array([_rounded(each, kind) for each in others], kind))


def _rounded(text: str | None, kind: pa.DataType) -> Decimal | None:
    if text is None or DECIMAL.fullmatch(text) is None:
        return None
    context = Context(prec=kind.precision, rounding=ROUND_HALF_UP)
    try:
        return Decimal(text).quantize(Decimal((0, (1,), -kind.scale)), context=context)
    except InvalidOperation:  # more digits
        return None


def _dates(texts: pa.Array) -> pa.Array:
    fits = pc.match_substring_regex(texts, f"^{DAY}$")
    return _cast(pc.if_else(fits, texts, None), pa.date32())


def _timestamps(texts: pa.Array, *, has_zone: bool) -> pa.Array:
    """Return timestamps of microseconds in UTC. has_zone: whether texts may have a zone; UTC without one."""
    if has_zone and pc.all(pc.match_substring_regex(texts, UTC_TIME)).as_py():
        return _cast(texts, pa.timestamp("us", "UTC"))
    parts = pc.extract_regex(texts, TIME)
    day, time, zone = (pc.struct_field(parts, name) for name in ("day", "time", "zone"))
    times = pc.binary_join_element_wise(day, time, "T")
    if not has_zone:
        return _cast(pc.if_else(pc.equal(zone, ""), times, None), pa.timestamp("us"))
    zone = pc.if_else(pc.equal(zone, ""), "Z", zone)
    return _cast(pc.binary_join_element_wise(times, zone, ""), pa.timestamp("us", "UTC"))


def _cast(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return texts of the right form as times; those that are none, such as the 30th of February, as nulls."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return pa.array([_cast_one(each, kind) for each in texts], kind)


def _cast_one(text: pa.Scalar, kind: pa.DataType) -> Any:
    try:
        return text.cast(kind).value if text.is_valid else None
    except pa.ArrowInvalid:
        return None
