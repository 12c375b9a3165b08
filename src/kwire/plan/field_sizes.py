"""Bytes of one message by field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kwire.plan.notes import Note

__all__ = ["FieldBytes", "bytes_by_field"]


@dataclass(slots=True, kw_only=True)
class FieldBytes:
    """One field, or one part of the structure around fields. path: `[]` behind arrays; empty for the message's own.

    type: as in `Note`: of the definition, an encoding's name, or "count", "presence" and the like.
    times: number of occurrences; bytes: of all of them; values: those of the notes.
    """

    path: str
    type: str
    times: int = 0
    bytes: int = 0
    values: list[Any] = field(default_factory=list)


def bytes_by_field(notes: Sequence[Note]) -> list[FieldBytes]:
    """The notes of a whole message, those of one field and type together, in the order in which they first come."""
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
