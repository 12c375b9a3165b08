"""The bytes of one message by field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kwire.plan.notes import Note

__all__ = ["FieldBytes", "bytes_by_field"]


@dataclass(slots=True, kw_only=True)
class FieldBytes:
    """A field, or a part of the structure. path: with `[]` after arrays; empty for the structure of the message.

    type: as in `Note`: the type, an encoding, or a part such as "count" or "presence".
    times: number of occurrences; bytes: of all of them; values: those of the notes.
    """

    path: str
    type: str
    times: int = 0
    bytes: int = 0
    values: list[Any] = field(default_factory=list)


def bytes_by_field(notes: Sequence[Note]) -> list[FieldBytes]:
    """Group the notes of a message by field and type, in the order of their first occurrence."""
    found: dict[tuple[str, str], FieldBytes] = {}
    for note in notes:
        path = _unnumbered(note.path)
        kind = "tag and size" if note.type.startswith("tag ") else note.type
        each = found.setdefault((path, kind), FieldBytes(path=path, type=kind))
        each.times += 1
        each.bytes += note.end - note.start
        each.values.append(note.value)
    return list(found.values())


def _unnumbered(path: Sequence[str | int]) -> str:
    text = ""
    for step in path:
        text += "[]" if isinstance(step, int) else f".{step}" if text else step
    return text
