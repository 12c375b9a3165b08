"""Notes of the walker: the field of each byte range that it reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kwire.errors import DecodeError, Path

__all__ = ["Annotation", "Note", "Recorder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The bytes [start, end) are part of the field at path. type: of the definition, or of the structure: "count"."""

    start: int
    end: int
    path: Path
    type: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A message read with notes. value: the object, or None with the error that ended the reading.

    The notes are in byte order, do not overlap, and have no gaps up to the end or the error.
    """

    notes: tuple[Note, ...]
    value: Any
    error: DecodeError | None


@dataclass(slots=True)
class Recorder:
    """Collects notes; keeps the path that the walker is on."""

    notes: list[Note] = field(default_factory=list)
    path: list[str | int] = field(default_factory=list)

    def note(self, start: int, end: int, type: str, value: object, *steps: str | int) -> None:
        """The bytes [start, end) at the current path and the steps below it; nothing for no bytes."""
        if end > start:
            self.notes.append(Note(start=start, end=end, path=(*self.path, *steps), type=type, value=value))

    def enter(self, *steps: str | int) -> None:
        """Go down: until `leave`, notes are about what lies below these steps."""
        self.path.extend(steps)

    def leave(self, count: int = 1) -> None:
        """Come back up."""
        del self.path[-count:]
