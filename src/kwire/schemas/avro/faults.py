"""Errors of the kernel and of the walker in words."""

from __future__ import annotations

from kwire.errors import DecodeError, Malformed, Truncated
from kwire.wire.value_rows import FAULTS

__all__ = ["FAULT", "fault_error"]

FAULT = {name: index for index, name in enumerate(FAULTS)}
TEXTS = {
    "TRUNCATED": "{name}: the value ends early",
    "INT_TOO_LONG": "{name}: number above 32 bits",
    "LONG_TOO_LONG": "{name}: number above 64 bits",
    "BAD_BOOLEAN": "boolean: expected a byte of 0 or 1",
    "NEGATIVE_LENGTH": "{name}: negative length",
    "LENGTH_TOO_LARGE": "{name}: length above the remaining bytes",
    "BAD_UTF8": "{name}: not UTF-8",
    "BAD_SYMBOL": "{name}: no symbol has this index",
    "NO_SYMBOL": "{name}: the reader's schema lacks this symbol, and has no default",
    "BAD_BRANCH": "{name}: no type of the union has this index",
    "NO_BRANCH": "the writer's {name} cannot be read with the reader's schema",
    "BAD_DECIMAL": "{name}: not a number of this precision",
    "OUT_OF_RANGE": "{name}: out of range",
    "TOO_MANY_ITEMS": "{name}: more items than the remaining bytes can hold",
    "TOO_MANY_EMPTY": "{name}: too many items that take no bytes",
    "BAD_BLOCK": "{name}: the size of a block differs from its items",
    "TOO_DEEP": "{name}: nested too deep",
    "TRAILING": "bytes remaining after the value; was it written with another schema?",
}
TRUNCATED = {FAULT[name] for name in ("TRUNCATED", "LENGTH_TOO_LARGE", "TOO_MANY_ITEMS")}


def fault_error(fault: int, position: int, path: str, name: str) -> DecodeError:
    """Return the error of a fault; path, name: of the plan's row."""
    kind = Truncated if fault in TRUNCATED else Malformed
    return kind(TEXTS[FAULTS[fault]].format(name=name), position, (path,) if path else ())
