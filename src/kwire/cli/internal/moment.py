"""What the commands about internal topics share: a moment, topics that must be there, names, broken records."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.log.selection import parse_time
from kwire.errors import OptionError
from kwire.pages.escaping import printable
from kwire.pages.quantities import time_text

if TYPE_CHECKING:
    from kwire.log import LogDirectory
    from kwire.log.internal import Problems, TypedRecord

__all__ = ["Moment", "matching", "parse_moment", "require_topic", "shown_time", "tell_problem", "tell_problems"]

MOST_TOLD = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """--at-offset or --at-time; neither is the end of the log."""

    at_offset: int | None
    at_time: int | None

    @property
    def is_past(self) -> bool:
        """Whether it was asked for."""
        return self.at_offset is not None or self.at_time is not None


def parse_moment(at_offset: int | None, at_time: str | None) -> Moment:
    """Raises OptionError for both, or a time that is none."""
    if at_offset is not None and at_time is not None:
        raise OptionError("--at-offset or --at-time, not both")
    if at_offset is not None and at_offset < 0:
        raise OptionError(f"--at-offset {at_offset}: offsets are not negative")
    return Moment(at_offset=at_offset, at_time=None if at_time is None else parse_time(at_time, "--at-time"))


def require_topic(directory: LogDirectory, topic: str) -> int:
    """How many partitions of an internal topic are here. Raises OptionError for none."""
    count = sum(name == topic for name, _ in directory)
    if not count:
        raise OptionError(f"no partition of {topic} here; topics: {', '.join(directory.topics)[:500]}")
    return count


def matching(names: list[str], pattern: str | None, what: str) -> list[str]:
    """The names that a pattern (`*`, `?`) lets through, sorted. Raises OptionError when none is left."""
    found = sorted(name for name in names if pattern is None or fnmatch.fnmatchcase(name, pattern))
    if pattern is not None and not found:
        there = ", ".join(sorted(names))[:500] or "none"
        raise OptionError(f"no {what} {pattern} here; there are: {there}")
    return found


def tell_problems(problems: Problems) -> int:
    """Name records that could not be read on standard error. The exit code: FOUND if there is any."""
    for record in problems.records[:MOST_TOLD]:
        tell_problem(record)
    if problems.count > MOST_TOLD:
        terminal.warn(f"and {problems.count - MOST_TOLD} more; --history shows them all")
    return FOUND if problems.count else FINE


def tell_problem(record: TypedRecord) -> None:
    """One record that could not be read, on standard error."""
    where = f"{record.topic}-{record.partition}" if record.partition >= 0 else f"a snapshot of {record.topic}"
    terminal.warn(printable(f"{where}, offset {record.offset}, {record.error_field}: {record.error}"))


def shown_time(value: int) -> str:
    """A time as tables show it."""
    return (time_text(value) or "-").replace("T", " ")
