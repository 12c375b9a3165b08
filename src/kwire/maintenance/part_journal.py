"""What an interrupted run has finished: `TARGET.part.json`, beside the `TARGET.part` that it was writing.

A run that writes one result for each partition notes every result that is on the disk. The same command run again keeps
those whose source has not changed since, and does the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kwire.errors import OptionError
from kwire.log.partition_log import PartitionLog
from kwire.storage.file_system import FileSystem

__all__ = ["PartJournal", "fingerprint"]


def fingerprint(log: PartitionLog) -> list[list[int]]:
    """What changes when a log does."""
    return [[segment.base_offset, segment.size_bytes] for segment in log.segments] + [[log.log_start_offset]]


class PartJournal:
    """The results of a run, by the name of their partition.

    settings: JSON values that must be the same for an interrupted run to be continued; "kind" says what the work is.
    """

    def __init__(self, files: FileSystem, part: str, settings: Mapping[str, Any]) -> None:
        """Read what an interrupted run has left at `part`. Raises OptionError where it was run with other settings."""
        self._files, self._path, self._settings = files, f"{part}.json", dict(settings)
        self._entries: dict[str, dict[str, Any]] = {}
        if not files.exists(part):
            return
        try:
            found = json.loads(files.read_all(self._path)) if files.exists(self._path) else None
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("settings") != self._settings:
            raise OptionError(f"{part}: left by another {self._settings['kind']}; delete it, or choose another target")
        self._entries = found["partitions"]

    def keep(self, sources: Mapping[str, list[list[int]]]) -> dict[str, dict[str, Any]]:
        """The results whose source is unchanged, by name; all others are forgotten. sources: fingerprints by name."""
        self._entries = {name: entry for name, entry in self._entries.items() if entry["source"] == sources.get(name)}
        self._write()
        return {name: entry["result"] for name, entry in self._entries.items()}

    def add(self, name: str, source: list[list[int]], result: dict[str, Any]) -> None:
        """Note a result that is complete and on the disk."""
        self._entries[name] = {"source": source, "result": result}
        self._write()

    def remove(self) -> None:
        """Delete the file: the run is complete."""
        self._files.remove(self._path)

    def _write(self) -> None:
        content = {"settings": self._settings, "partitions": self._entries}
        self._files.write_atomically(self._path, json.dumps(content).encode())
