"""The journal of a resumable run: `TARGET.part.json`, beside the output `TARGET.part`.

It lists the partitions whose results are on disk. The same run later keeps those whose source has not changed, and does
the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kwire.errors import OptionError
from kwire.storage.file_system import FileSystem

__all__ = ["PartJournal"]


class PartJournal:
    """The results of a run by partition name.

    settings: JSON values that must be equal to resume a run; "kind" names the work.
    """

    def __init__(self, files: FileSystem, part: str, settings: Mapping[str, Any]) -> None:
        """Read the journal of an interrupted run at `part`. Raises OptionError if its settings differ."""
        self._files, self._path, self._settings = files, f"{part}.json", dict(settings)
        self._entries: dict[str, dict[str, Any]] = {}
        if not files.exists(part):
            return
        try:
            stored = json.loads(files.read_all(self._path)) if files.exists(self._path) else None
        except ValueError:
            stored = None
        if not isinstance(stored, dict) or stored.get("settings") != self._settings:
            raise OptionError(f"{part}: left by another {self._settings['kind']}; delete it or choose another target")
        self._entries = stored["partitions"]

    def keep(self, sources: Mapping[str, list[list[int]]]) -> dict[str, dict[str, Any]]:
        """Keep and return the results with unchanged source, by name. sources: fingerprints by name."""
        self._entries = {name: entry for name, entry in self._entries.items() if entry["source"] == sources.get(name)}
        self._write()
        return {name: entry["result"] for name, entry in self._entries.items()}

    def add(self, name: str, source: list[list[int]], result: dict[str, Any]) -> None:
        """Add a result that is complete and on disk."""
        self._entries[name] = {"source": source, "result": result}
        self._write()

    def remove(self) -> None:
        """Delete the journal of a complete run."""
        self._files.remove(self._path)

    def _write(self) -> None:
        content = {"settings": self._settings, "partitions": self._entries}
        self._files.write_atomically(self._path, json.dumps(content).encode())
