"""Untrusted text, safe for terminals and pages: no topic name, key, header or file name acts as a command.

Escaped like in Python (`\\x1b`, `\\u202e`): C0 and C1 control characters, DEL, line and paragraph separators,
characters that reorder or hide text (Unicode's Bidi_Control and Default_Ignorable ones that terminals act on), lone
surrogates, and bytes that are not UTF-8 (`\\xff`). Backslashes are not escaped: the text is for people; `--format json`
is for programs.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

__all__ = ["compact_json", "json_line", "printable"]

_UNSAFE = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: ESC and CSI among them
    "\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069"  # zero width, bidi marks, embeddings, overrides, isolates
    "\u2028\u2029\ufeff\ufff9-\ufffb"  # separators, byte order mark, interlinear annotation
    "\U000e0000-\U000e007f"  # tag characters, invisible everywhere
    "\ud800-\udfff"  # lone surrogates cannot be encoded; os.fsdecode leaves them in file names
    "]"
)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
"""json.dumps() would create one for each value."""


def printable(value: str | bytes | memoryview) -> str:
    """Return value as one line of text without control characters. Bytes are UTF-8, with `\\xff` for other bytes."""
    if not isinstance(value, str):
        value = bytes(value).decode("utf-8", "backslashreplace")
    return _UNSAFE.sub(_escaped, value)


def json_line(value: Any) -> str:
    """Return value as one line of JSON, not ASCII only, without characters that a terminal acts on."""
    # These characters occur inside strings only, where JSON's escape is equivalent.
    return _UNSAFE.sub(_json_escaped, compact_json(value))


def compact_json(value: Any) -> str:
    """Return value as JSON without spaces, like Kafka's tools. Not escaped for terminals.

    NaN and the infinities are strings: JSON has no such numbers.
    """
    try:
        return _COMPACT.encode(value)
    except ValueError:  # a number that JSON does not have
        return _COMPACT.encode(_with_strings(value))


def _with_strings(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_strings(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_strings(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _json_escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]  # \\uXXXX, as surrogate pairs above U+FFFF
