"""What a job has done, kept beside its output, so that an interrupted run is gone on with.

    JOURNAL/job.json            the settings of the job, which the next run must have too, and facts it takes over
    JOURNAL/done/<hash>.json    one work item that is complete: what it was made of, and its row of the result
    JOURNAL/attempts/<id>/      where an attempt writes; what is whole is renamed to its place

Driver and executors see the same directory. Tasks write entries, each by a rename, so the driver can count them while
the job runs. Spark may run a task twice: each attempt has a directory of its own; the first one whole has the place.
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

__all__ = ["Journal", "put_in_place", "remove"]

Row = dict[str, Any]


class Journal:
    """The journal at a local path; pickles. files: what changes it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.files = FileSystem()

    def __reduce__(self) -> tuple[type[Journal], tuple[str]]:
        return Journal, (self.path,)

    def begin(self, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
        """Make the journal, or go on with the one that is there; returns its facts: its own before those given.

        Removes what attempts of an earlier run have left. Raises OptionError where it is another job's, LogError.
        """
        wanted = json.loads(json.dumps(settings))
        path = f"{self.path}/job.json"
        found = self._read(path)
        if found is not None and found.get("settings") != wanted:
            raise OptionError(f"{self.path}: left by another job; remove it, or choose another target")
        if found is None:
            self.files.make_directory(f"{self.path}/done")
            found = {"settings": wanted, "facts": json.loads(json.dumps(facts))}
            self.files.write_atomically(path, json.dumps(found).encode())
        if self.files.exists(f"{self.path}/attempts"):
            remove(self.files, f"{self.path}/attempts")
        self.files.make_directory(f"{self.path}/attempts")
        kept: dict[str, Any] = found["facts"]
        return kept

    def done(self, name: str, fingerprint: object) -> Row | None:
        """The row of an item that is complete and made of the same input; None else."""
        found = self._read(f"{self.path}/done/{file_name(name)}")
        if (
            found is None
            or found.get("name") != name
            or found.get("fingerprint") != json.loads(json.dumps(fingerprint))
        ):
            return None
        row: Row = found["row"]
        return row

    def add(self, name: str, fingerprint: object, row: Row) -> None:
        """An item is complete and on the disk."""
        made = f"{self.path}/attempts/{uuid.uuid4().hex}.json"
        self.files.write_atomically(made, json.dumps({"name": name, "fingerprint": fingerprint, "row": row}).encode())
        self.files.rename(made, f"{self.path}/done/{file_name(name)}")

    def forget(self, names: Iterable[str]) -> None:
        """Items have to be done again."""
        for name in names:
            remove(self.files, f"{self.path}/done/{file_name(name)}")

    @contextmanager
    def attempt(self) -> Iterator[str]:
        """A directory for one attempt, removed with what is still in it."""
        directory = f"{self.path}/attempts/{uuid.uuid4().hex}"
        if not self.files.is_directory(f"{self.path}/attempts"):
            raise LogError("not here: driver and executors need a file system that all of them see", self.path)
        self.files.make_directory(directory)
        try:
            yield directory
        finally:
            remove(self.files, directory)

    def remove(self) -> None:
        """The job is complete."""
        remove(self.files, self.path)

    def _read(self, path: str) -> dict[str, Any] | None:
        try:
            found = json.loads(self.files.read_all(path)) if self.files.exists(path) else None
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


def file_name(name: str) -> str:
    """An item's file: names of items may be longer than names of files may be."""
    return f"{hashlib.sha256(name.encode()).hexdigest()}.json"


def put_in_place(files: FileSystem, made: str, place: str) -> None:
    """Give what an attempt has made its place; where another attempt was faster, that one's stays. Raises LogError."""
    if files.exists(place):
        return
    try:
        files.rename(made, place)
    except LogError:
        if not files.exists(place):
            raise
    files.sync_directory(place.rpartition("/")[0])


def remove(files: FileSystem, path: str) -> None:
    """Remove a file or a directory, if it is there."""
    from kwire.maintenance.convert.new_log import remove_tree

    if files.is_directory(path):
        remove_tree(files, path)
    elif files.exists(path):
        files.remove(path)
