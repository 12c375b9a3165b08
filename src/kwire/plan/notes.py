"""Annotations of the walker: the field of each byte range that it reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kwire.errors import DecodeError, Path

__all__ = ["Annotation", "Note", "Recorder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The bytes [start, end) belong to the field at path. type: of the field, or of a part of it, such as "count"."""

    start: int
    end: int
    path: Path
    type: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
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
