"""A log directory that tasks make, a partition each, and the driver finishes.

DIR.part/           partitions appear here when they are whole
DIR.part.job/       the journal
DIR                 DIR.part with its checkpoints and meta.properties, renamed when every partition is there
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition
from kwire.spark.jobs.journal import Journal, Row, remove
from kwire.spark.jobs.runner import Done
from kwire.target_paths import path_inside

__all__ = ["FinishedLog", "NewDirectory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedLog:
    """A partition that is complete: what checkpoints say of it."""

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int

    @classmethod
    def of(cls, row: Row) -> FinishedLog:
        """From a job's row."""
        return cls(
            topic=row["topic"],
            partition=row["partition"],
            log_start_offset=row["log_start_offset"],
            log_end_offset=row["log_end_offset"],
        )


class NewDirectory:
    """The directory `target` while it is made. path: absolute. journal: of the job."""

    def __init__(self, target: str) -> None:
        self.path = os.path.abspath(target)
        self.part = f"{self.path}.part"
        self.journal = Journal(f"{self.part}.job")

    def check(self) -> None:
        """Raise OptionError on a target in use, or what another run has left beside it."""
        from kwire.maintenance.convert.directory import check_target

        check_target(self.path)
        if os.path.lexists(self.part) and not os.path.lexists(self.journal.path):
            raise OptionError(f"{self.part}: left by another run; remove it, or choose another target")

    def begin(
        self, settings: Mapping[str, Any], keys: Collection[TopicPartition], facts: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Begin, or go on with what the same job has left; returns the job's facts. keys: the partitions to come.

        Raises OptionError on a target in use or another job's leavings, LogError.
        """
        from kwire.maintenance.convert.directory import name_of

        self.check()
        files = self.journal.files
        kept = self.journal.begin(settings, facts or {})
        files.make_directory(self.part)
        names = {name_of(key) for key in keys}
        for name in files.list(self.part):
            if name not in names:
                remove(files, f"{self.part}/{name}")
        return kept

    def place(self, key: TopicPartition) -> str:
        """Where a partition is to be."""
        from kwire.maintenance.convert.directory import name_of

        return path_inside(self.part, name_of(key))

    def publish(
        self, done: Done, cleaned: Mapping[TopicPartition, int], add_rest: Callable[[str], None] = lambda part: None
    ) -> None:
        """Write checkpoints and give the directory its name. add_rest: puts other files into the part."""
        from kwire.maintenance.convert.directory import finish_directory

        add_rest(self.part)
        finish_directory(self.journal.files, self.part, self.path, map(FinishedLog.of, done.rows), cleaned)
        self.journal.remove()
