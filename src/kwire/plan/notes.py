"""Annotations of the walker: the field of each byte range that it reads, and the bytes of each field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kwire.errors import DecodeError, Path

__all__ = ["Annotation", "FieldBytes", "Note", "Recorder", "bytes_by_field"]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes [start, end) belong to the field at path. type: of the field, or of a part of it, such as "count"."""

    start: int
    end: int
    path: Path
    type: str
    value: Any


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded message with notes. value: the object, or None if an error ended the decoding.

    The notes are in byte order, do not overlap, and have no gaps up to the end or the error.
    """

    notes: tuple[Note, ...]
    value: Any
    error: DecodeError | None


@dataclass(slots=True)
class Recorder:
    """Collects notes. path: the current path of the walker."""

    notes: list[Note] = field(default_factory=list)
    path: list[str | int] = field(default_factory=list)

    def note(self, start: int, end: int, type: str, value: object, *steps: str | int) -> None:
        """Add a note on [start, end) for the steps below the current path; none for an empty range."""
        if end > start:
            self.notes.append(Note(start=start, end=end, path=(*self.path, *steps), type=type, value=value))

    def enter(self, *steps: str | int) -> None:
        """Append steps to the current path, until `leave`."""
        self.path.extend(steps)

    def leave(self, count: int = 1) -> None:
        """Remove steps from the current path."""
        del self.path[-count:]


@dataclass(slots=True, kw_only=True)
class FieldBytes:
    """A field, or a part of the structure. path: with `[]` after arrays; empty for the structure of the message.

    type: as in `Note`: the type, an encoding, or a part such as "count" or "presence".
    times: number of occurrences; bytes: of all of them; values: what the notes say of each.
    """

    path: str
    type: str
    times: int = 0
    bytes: int = 0
    values: list[Any] = field(default_factory=list)


def bytes_by_field(notes: Sequence[Note]) -> list[FieldBytes]:
    """Group the notes of a message by field and type, in the order of their first occurrence."""
    totals: dict[tuple[str, str], FieldBytes] = {}
    for note in notes:
        path = _unnumbered(note.path)
        kind = "tag and size" if note.type.startswith("tag ") else note.type
        each = totals.setdefault((path, kind), FieldBytes(path=path, type=kind))
        each.times += 1
        each.bytes += note.end - note.start
        each.values.append(note.value)
    return list(totals.values())


def _unnumbered(path: Sequence[str | int]) -> str:
    text = ""
    for step in path:
        text += "[]" if isinstance(step, int) else f".{step}" if text else step
    return text
