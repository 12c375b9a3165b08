"""A log directory whose partitions are written by tasks and which the driver completes.

DIR.part/           complete partitions
DIR.part.job/       the journal
DIR                 DIR.part with checkpoints and meta.properties, renamed when every partition is complete
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition
from kwire.spark.jobs.journal import Journal, Row, remove
from kwire.spark.jobs.runner import Item, JobRun
from kwire.target_paths import path_inside

__all__ = ["NewDirectory"]


class NewDirectory:
    """A log directory under construction. path: absolute. hint: the remedy in errors of failed partitions."""

    def __init__(self, target: str) -> None:
        self.path = os.path.abspath(target)
        self.part = f"{self.path}.part"
        self.journal = Journal(f"{self.part}.job")
        self.hint = f"completed partitions are in {self.part}; run the job again to process the failed ones"

    def check(self) -> None:
        """Raise OptionError if the target is in use, or if another run has left files next to it."""
        from kwire.storage.staged_directory import check_target

        check_target(self.path)
        if os.path.lexists(self.part) and not os.path.lexists(self.journal.path):
            raise OptionError(f"{self.part}: left by another run; remove it, or choose another target")

    def begin(
        self,
        config: Mapping[str, object],
        keys: Collection[TopicPartition],
        values: Mapping[str, object] | None = None,
    ) -> Row:
        """Start the job, or continue it; return the values of its journal. keys: the partitions to write.

        Raises OptionError if the target is in use or has files of another job, LogError.
        """
        from kwire.maintenance.new_directory import name_of

        self.check()
        files = self.journal.files
        stored = self.journal.begin(config, values or {})
        files.make_directory(self.part)
        names = {name_of(key) for key in keys}
        for name in files.list(self.part):
            if name not in names:
                remove(files, f"{self.part}/{name}")
        return stored

    def item(self, key: TopicPartition, *, size_bytes: int, subject: object, fingerprint: object) -> Item:
        """Return the item that writes a partition."""
        from kwire.maintenance.new_directory import name_of

        name = name_of(key)
        output = path_inside(self.part, name)
        return Item(name=name, size_bytes=size_bytes, subject=subject, fingerprint=fingerprint, output=output)

    def publish(
        self, run: JobRun, cleaned: Mapping[TopicPartition, int], add_files: Callable[[str], None] = lambda part: None
    ) -> None:
        """Write checkpoints and rename the directory. add_files: adds other files first."""
        from kwire.maintenance.new_directory import finish_directory
        from kwire.storage.staged_directory import StagedDirectory

        add_files(self.part)
        staged = StagedDirectory(self.journal.files, self.path)
        ranges = {
            (row["topic"], row["partition"]): (row["log_start_offset"], row["log_end_offset"]) for row in run.rows
        }
        finish_directory(staged, ranges, cleaned)
        self.journal.remove()
