"""Results of Kafka's own consumer and tools for the log directories below tests/data/logs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kwire.log import PartitionLog
from kwire.records import Record
from kwire.records.columns.reader import COLUMNS
from tests import golden

TIMESTAMP_TYPES = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}
ARCHIVES = ("modern", "modern44", "legacy")
ISOLATIONS = ("read_uncommitted", "read_committed")


class Row(NamedTuple):
    """A record in a form that is comparable between readers."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def row(record: Record) -> Row:
    """Convert a Record to a Row."""
    headers = tuple((key, value) for key, value in record.headers)
    return Row(record.offset, record.timestamp, int(record.timestamp_type), record.key, record.value, headers)


def rows_of(batches: Any) -> list[Row]:
    """Convert Arrow record batches with all COLUMNS to Rows."""
    found = []
    for batch in batches:
        times = batch.column("timestamp").cast("int64").to_pylist()
        for each, time_us in zip(batch.to_pylist(), times, strict=True):
            assert time_us % 1000 == 0
            headers = tuple((h["key"], h["value"]) for h in each["headers"] or ())
            found.append(
                Row(each["offset"], time_us // 1000, each["timestampType"], each["key"], each["value"], headers)
            )
    return found


def read_objects(log: PartitionLog, **options: Any) -> list[Row]:
    """Return the records of PartitionLog.read as Rows."""
    return [row(record) for record in log.read(**options)]


def read_arrow(log: PartitionLog, **options: Any) -> list[Row]:
    """Return the records of PartitionLog.read_arrow as Rows."""
    return rows_of(log.read_arrow(columns=COLUMNS, **options))


def consumed(folder: Path, topic: str, partition: int, isolation: str) -> tuple[list[Row], list[int | None]]:
    """Return (rows, leader epochs) of a consumed/*.jsonl.gz file."""
    rows, leader_epochs = [], []
    with gzip.open(folder / "consumed" / f"{topic}-{partition}.{isolation}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            each = json.loads(line)
            assert each["partition"] == partition
            rows.append(
                Row(
                    each["offset"],
                    each["timestamp"],
                    TIMESTAMP_TYPES[each["timestampType"]],
                    golden.unpack(each["key"]),
                    golden.unpack(each["value"]),
                    tuple((key, golden.unpack(value)) for key, value in each["headers"]),
                )
            )
            leader_epochs.append(each["leaderEpoch"])
    return rows, leader_epochs


class Consumed(NamedTuple):
    """An entry of offsets.json."""

    topic: str
    partition: int
    isolation: str
    offsets: dict[str, Any]


def offsets(folder: Path) -> Iterator[Consumed]:
    """Return the entries of consumed/offsets.json that are not errors."""
    for name, entry in json.loads((folder / "consumed" / "offsets.json").read_text()).items():
        if not name.endswith(" error"):
            directory, isolation = name.split(" ")
            topic, _, partition = directory.rpartition("-")
            yield Consumed(topic, int(partition), isolation, entry)


def dumped_indexes(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Return (path, DumpLogSegments' lines) of each index or snapshot file of dump/indexes."""
    for path in sorted((folder / "dump" / "indexes").glob("*.txt.gz")):
        name, lines = "", list[str]()
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            if line.startswith("Dumping "):
                if name:
                    yield name, lines
                name, lines = line.removeprefix("Dumping "), []
            else:
                lines.append(line)
        if name:
            yield name, lines
