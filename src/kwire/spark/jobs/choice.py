"""Which logs a job takes: paths, patterns of topics, partitions."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition
from kwire.log import PartitionLog

__all__ = ["Logs", "choose"]

Logs = Mapping[TopicPartition, PartitionLog]


def choose(logs: Logs, topics: Sequence[str], partitions: Sequence[int]) -> dict[TopicPartition, PartitionLog]:
    """The logs whose topic is one of the patterns (*, ?) and whose number is named; empty: all.

    Raises OptionError where none is left.
    """
    if isinstance(topics, str):
        raise OptionError(f"topics: expected a list of names and patterns, got the string {topics!r}")
    found = {
        key: log
        for key, log in logs.items()
        if (not topics or any(fnmatch.fnmatchcase(key[0], each) for each in topics))
        and (not partitions or key[1] in partitions)
    }
    if not found:
        there = ", ".join(sorted({topic for topic, _ in logs}))[:500]
        raise OptionError(f"no partition here has that topic and number; topics: {there}")
    return found
