"""Selection of the logs of a job by topic patterns and partition numbers."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition
from kwire.log import PartitionLog
from kwire.log.reading.paths import available_topics, check_selection

if TYPE_CHECKING:
    from kwire.log.reading.readable_log import ReadableLog

__all__ = ["Logs", "as_list", "select_logs"]

Logs = Mapping[TopicPartition, PartitionLog]
L = TypeVar("L", bound="ReadableLog")


def as_list(paths: str | Sequence[str]) -> list[str]:
    """Return one path, or several, as a list."""
    return [paths] if isinstance(paths, str) else list(paths)


def select_logs(
    logs: Mapping[TopicPartition, L], topics: Sequence[str], partitions: Sequence[int]
) -> dict[TopicPartition, L]:
    """Return the logs that match a topic pattern (*, ?) and a partition number; an empty sequence matches all.

    Raises OptionError if no log matches, and for a pattern or a number that matches none.
    """
    if isinstance(topics, str):
        raise OptionError(f"topics: expected a list of names and patterns, got the string {topics!r}")
    if not isinstance(partitions, Collection) or not all(
        isinstance(each, int) for each in partitions
    ):  # 0: all of them
        raise OptionError(f"partitions: expected a list of numbers, got {partitions!r}")
    check_selection(logs, topics, list(partitions))
    selected = {
        key: log
        for key, log in logs.items()
        if (not topics or any(fnmatch.fnmatchcase(key[0], each) for each in topics))
        and (not partitions or key[1] in partitions)
    }
    if not selected:
        raise OptionError(f"no partition matches topics and partitions; {available_topics(logs)}")
    return selected
