"""Counts of what was written to a table, as a file in Prometheus' text format.

The file is replaced after each commit. Counters go on from what the file has, so they outlive the process. A monitoring
system reads the file by node_exporter's textfile collector or the like. One writer for each file.
Source: Prometheus' exposition formats, "Text-based format".
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kwire.identifiers import TopicPartition

__all__ = ["CommitCounts", "write_gauges", "write_metrics"]

COUNTERS = {
    "rows": "Rows that were written.",
    "bytes": "Bytes of the data files that were written.",
    "files": "Data files that were written.",
    "commits": "Commits that were made.",
    "commit_retries": "Commits that were tried again, since other writers had committed first.",
    "dead_letters": "Records that went to the table of dead letters.",
}
GAUGES = {
    "last_commit_timestamp_seconds": "Time of the last commit.",
    "newest_record_timestamp_seconds": "Highest timestamp of a record that was written.",
    "end_offset": "Offset after the last one that the table has of a partition.",
    "offsets_behind_latest": "Offsets of a partition that a query has not read yet, at its last micro-batch.",
}
LINE = re.compile(r"kwire_table_(\w+)(\{.*\}) (\S+)")

Samples = dict[tuple[str, str], float]  # by name and labels

logger = logging.getLogger("kwire.lake")


@dataclass(slots=True, kw_only=True)
class CommitCounts:
    """What was committed. newest_us: highest timestamp of a record. ends: offsets after the last ones of a table."""

    rows: int = 0
    size_bytes: int = 0
    files: int = 0
    commits: int = 0
    retries: int = 0
    dead_letters: int = 0
    newest_us: int | None = None
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)

    def add(self, other: CommitCounts) -> None:
        """Add the rows, bytes, files, commits and retries of another table."""
        self.rows += other.rows
        self.size_bytes += other.size_bytes
        self.files += other.files
        self.commits += other.commits
        self.retries += other.retries


def write_metrics(path: str | os.PathLike[str], table: str, counts: CommitCounts) -> None:
    """Add counts to a file of metrics. A file that cannot be written is a warning: the rows are in the table."""
    label = _labels(table=table)
    added = {
        "rows": counts.rows,
        "bytes": counts.size_bytes,
        "files": counts.files,
        "commits": counts.commits,
        "commit_retries": counts.retries,
        "dead_letters": counts.dead_letters,
    }
    gauges: Samples = {}
    if counts.commits:
        gauges["last_commit_timestamp_seconds", label] = time.time()
    for (topic, partition), end in counts.ends.items():
        gauges["end_offset", _labels(table=table, topic=topic, partition=partition)] = end
    _update(path, {(f"{name}_total", label): value for name, value in added.items()}, gauges, counts.newest_us, label)


def write_gauges(path: str | os.PathLike[str], query: str, behind: Mapping[TopicPartition, int]) -> None:
    """Write how far a query is behind its topics."""
    gauges: Samples = {
        ("offsets_behind_latest", _labels(query=query, topic=topic, partition=partition)): count
        for (topic, partition), count in behind.items()
    }
    _update(path, {}, gauges, None, "")


def _update(
    path: str | os.PathLike[str],
    added: Mapping[tuple[str, str], int],
    gauges: Samples,
    newest_us: int | None,
    label: str,
) -> None:
    target = Path(path)
    try:
        samples = _read(target)
        for key, value in added.items():
            samples[key] = samples.get(key, 0) + value
        samples |= gauges
        if newest_us is not None:
            key = ("newest_record_timestamp_seconds", label)
            samples[key] = max(samples.get(key, 0), newest_us / 1_000_000)
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        part.write_text(_render(samples), encoding="utf-8")
        part.replace(target)
    except (OSError, ValueError) as error:
        logger.warning("metrics file %s: %s; the counts of this commit are not in it", target, error)


def _read(path: Path) -> Samples:
    """Return the samples of a file, {} if there is none. Raises OSError, ValueError for a file of something else."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    found: Samples = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"it has a line that is not of kwire, {line[:80]!r}; name a file of its own")
        found[match[1], match[2]] = float(match[3])
    return found


def _render(samples: Samples) -> str:
    lines = []
    kinds = {f"{name}_total": ("counter", text) for name, text in COUNTERS.items()}
    kinds |= {name: ("gauge", text) for name, text in GAUGES.items()}
    for name, (kind, text) in kinds.items():
        found = sorted((labels, value) for (each, labels), value in samples.items() if each == name)
        if found:
            lines += [f"# HELP kwire_table_{name} {text}", f"# TYPE kwire_table_{name} {kind}"]
            lines += [f"kwire_table_{name}{labels} {_number(value)}" for labels, value in found]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _labels(**labels: object) -> str:
    escaped = {
        name: str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for name, value in labels.items()
    }
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}"
