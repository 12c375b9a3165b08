"""Text from data made safe to show: no topic name, key, header or file name reaches the terminal as a command.

Escaped, as Python writes them (`\\x1b`, `\\u202e`): C0 and C1 control characters, DEL, line and paragraph separators,
the characters that reorder or hide text (Unicode's Bidi_Control and Default_Ignorable ones that terminals act on),
lone surrogates, and bytes that are not UTF-8 (`\\xff`). The backslash itself stays as it is: this is for reading, not
for parsing back; `--format json` is for programs.
"""

from __future__ import annotations

import json
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


def printable(value: str | bytes | memoryview) -> str:
    """value as one line of text without control characters; bytes are read as UTF-8, what is not UTF-8 as `\\xff`."""
    if not isinstance(value, str):
        value = bytes(value).decode("utf-8", "backslashreplace")
    return _UNSAFE.sub(_escaped, value)


def json_line(value: Any) -> str:
    """value as one line of JSON, readable (not ASCII only) and still without anything a terminal acts on."""
    # The characters can only stand inside strings here, where JSON's own escape means the same character.
    return _UNSAFE.sub(_json_escaped, compact_json(value))


def compact_json(value: Any) -> str:
    """value as JSON without blanks, as Kafka's tools write it; what a terminal acts on is still in it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json_escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]  # ensure_ascii: \\uXXXX, pairs of them above the first plane
