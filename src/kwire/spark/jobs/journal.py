"""The journal of a job: which items are complete, stored next to the output, so that an interrupted job can continue.

    JOURNAL/job.json            the job's configuration, which a later run must have too, and values that it reuses
    JOURNAL/done/<hash>.json    a complete item: the fingerprint of its input, and its row of the result
    JOURNAL/attempts/<id>/      output of an attempt, which is renamed when it is complete

Driver and executors share the directory. Tasks write entries, each with a rename, so the driver can count them while
the job runs. Spark may run a task twice: each attempt has its own directory, and the first complete one is kept.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kwire.errors import LogError, OptionError
from kwire.storage.file_system import FileSystem
from kwire.storage.staged_directory import remove_tree

__all__ = ["Journal", "Row", "entry_name", "publish", "remove"]

Row = dict[str, Any]
"""A row of a result, or another object, in JSON's types."""


class Journal:
    """The journal in a local directory; pickles."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.files = FileSystem()

    def __reduce__(self) -> tuple[type[Journal], tuple[str]]:
        return Journal, (self.path,)

    def begin(self, config: Mapping[str, object], values: Mapping[str, object]) -> Row:
        """Create the journal, or continue an existing one; return its values, or else the given ones.

        Removes the attempts of an earlier run. Raises OptionError for the journal of another job, LogError.
        """
        expected = json.loads(json.dumps(config))
        path = f"{self.path}/job.json"
        stored_job = self._read(path)
        if stored_job is not None and stored_job.get("settings") != expected:
            raise OptionError(f"{self.path}: left by another job; remove it, or choose another target")
        if stored_job is None:
            self.files.make_directory(f"{self.path}/done")
            stored_job = {"settings": expected, "facts": json.loads(json.dumps(values))}
            self.files.write_atomically(path, json.dumps(stored_job).encode())
        if self.files.exists(f"{self.path}/attempts"):
            remove(self.files, f"{self.path}/attempts")
        self.files.make_directory(f"{self.path}/attempts")
        stored: Row = stored_job["facts"]
        return stored

    def row(self, name: str, fingerprint: object) -> Row | None:
        """Return the row of a complete item, or None if it is missing or its input has changed."""
        entry = self._read(f"{self.path}/done/{entry_name(name)}")
        if (
            entry is None
            or entry.get("name") != name
            or entry.get("fingerprint") != json.loads(json.dumps(fingerprint))
        ):
            return None
        row: Row = entry["row"]
        return row

    def add(self, name: str, fingerprint: object, row: Row) -> None:
        """Record an item whose output is on disk."""
        written = f"{self.path}/attempts/{uuid.uuid4().hex}.json"
        entry = {"name": name, "fingerprint": fingerprint, "row": row}
        self.files.write_atomically(written, json.dumps(entry).encode())
        self.files.rename(written, f"{self.path}/done/{entry_name(name)}")

    def forget(self, names: Iterable[str]) -> None:
        """Remove the entries of items."""
        for name in names:
            remove(self.files, f"{self.path}/done/{entry_name(name)}")

    @contextmanager
    def attempt(self) -> Iterator[str]:
        """Create a directory for one attempt, and remove it with its remaining files."""
        directory = f"{self.path}/attempts/{uuid.uuid4().hex}"
        if not self.files.is_directory(f"{self.path}/attempts"):
            raise LogError("missing: driver and executors must share a file system", self.path)
        self.files.make_directory(directory)
        try:
            yield directory
        finally:
            remove(self.files, directory)

    def remove(self) -> None:
        """Remove the journal of a complete job."""
        remove(self.files, self.path)

    def _read(self, path: str) -> Row | None:
        try:
            entry = json.loads(self.files.read_all(path)) if self.files.exists(path) else None
        except ValueError:
            return None
        return entry if isinstance(entry, dict) else None


def entry_name(item: str) -> str:
    """Return the file name of an item's entry: item names can be longer than file names."""
    return f"{hashlib.sha256(item.encode()).hexdigest()}.json"


def publish(files: FileSystem, output: str, destination: str) -> None:
    """Rename the output of an attempt, unless another attempt was faster. Raises LogError."""
    if files.exists(destination):
        return
    try:
        files.rename(output, destination)
    except LogError:
        if not files.exists(destination):
            raise
    files.sync_directory(destination.rpartition("/")[0])


def remove(files: FileSystem, path: str) -> None:
    """Remove a file or a directory, if it exists."""
    if files.is_directory(path):
        remove_tree(files, path)
    elif files.exists(path):
        files.remove(path)
