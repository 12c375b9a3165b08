"""Shared parts of the commands for internal topics: points in time, required topics, patterns, unreadable records."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.log.selection import parse_time
from kwire.errors import OptionError, counted, did_you_mean
from kwire.pages.escaping import printable
from kwire.pages.quantities import time_text

if TYPE_CHECKING:
    from kwire.internal_topics.typed_record import Problems, TypedRecord
    from kwire.log.reading.readable_log import LogSource, ReadableLog

__all__ = [
    "Moment",
    "matching",
    "matching_records",
    "parse_moment",
    "require_topic",
    "shown_time",
    "warn_of_problem",
    "warn_of_problems",
]

MAX_WARNINGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A point of the log: --at-offset, --at-time, or neither for its end."""

    at_offset: int | None
    at_time: int | None

    @property
    def is_past(self) -> bool:
        """Whether it is not the end of the log."""
        return self.at_offset is not None or self.at_time is not None


def parse_moment(at_offset: int | None, at_time: str | None) -> Moment:
    """Parse --at-offset and --at-time. Raises OptionError for both, or for an invalid value."""
    if at_offset is not None and at_time is not None:
        raise OptionError("--at-offset and --at-time are mutually exclusive")
    if at_offset is not None and at_offset < 0:
        raise OptionError(f"--at-offset {at_offset}: expected a number from 0")
    return Moment(at_offset=at_offset, at_time=None if at_time is None else parse_time(at_time, "--at-time"))


def require_topic(directory: LogSource[ReadableLog], topic: str) -> int:
    """Return the number of partitions of an internal topic. Raises OptionError for none."""
    count = sum(name == topic for name, _ in directory)
    if not count:
        raise OptionError(f"no partition of '{topic}'; available topics: {', '.join(directory.topics)[:500]}")
    return count


def matching(names: list[str], pattern: str | None, what: str) -> list[str]:
    """Return the names that match a pattern (`*`, `?`), sorted. Raises OptionError for no match."""
    matches = sorted(name for name in names if pattern is None or fnmatch.fnmatchcase(name, pattern))
    if pattern is not None and not matches:
        available = ", ".join(sorted(names))[:500] or "none"
        raise OptionError(f"no {what} matches {pattern!r}{did_you_mean(pattern, names)}; available: {available}")
    return matches


def matching_records(
    records: Iterable[TypedRecord], pattern: str | None, name_of: Callable[[TypedRecord], str | None]
) -> Iterator[TypedRecord]:
    """Yield the records whose name matches a pattern; all without a pattern."""
    for record in records:
        if pattern is None or ((name := name_of(record)) is not None and fnmatch.fnmatchcase(name, pattern)):
            yield record


def warn_of_problems(problems: Problems) -> int:
    """Print unreadable records to standard error. Returns the exit code: FOUND if there are any."""
    for record in problems.records[:MAX_WARNINGS]:
        warn_of_problem(record)
    if problems.count > MAX_WARNINGS:
        terminal.warn(f"{counted(problems.count - MAX_WARNINGS, 'more unreadable record')}; list them with --history")
    return FOUND if problems.count else FINE


def warn_of_problem(record: TypedRecord) -> None:
    """Print an unreadable record to standard error."""
    where = f"{record.topic}-{record.partition}" if record.partition >= 0 else f"a snapshot of {record.topic}"
    terminal.warn(printable(f"{where}, offset {record.offset}, {record.error_field}: {record.error}"))


def shown_time(value: int) -> str:
    """Return a timestamp as text for tables."""
    return (time_text(value) or "-").replace("T", " ")
