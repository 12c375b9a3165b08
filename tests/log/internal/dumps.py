"""Kafka's decoded dumps of the golden logs' internal topics, and small logs of internal topics."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kwire.messages.base import Message
from kwire.protocol import write_prefixed
from kwire.records import ControlRecordType, Record, TimestampType, write_batch, write_transaction_marker

BATCH = re.compile(r"baseOffset: \d+ .* producerId: (?P<producer>-?\d+) .* isTransactional: (?P<transactional>\w+)")
RECORD = re.compile(r"\| offset: (?P<offset>\d+) CreateTime: (?P<timestamp>\d+) (?P<rest>.*)$")
NOW = 1_700_000_000_000


class Dumped(NamedTuple):
    """A record of a decoded dump. key: coordinator records only. payload: None for control records and tombstones."""

    file: str
    offset: int
    timestamp: int
    key: dict[str, Any] | None
    payload: dict[str, Any] | None
    deleted: bool
    marker: str | None
    producer_id: int
    transactional: bool


def dumped(folder: Path, partition: str) -> Iterator[Dumped]:
    """Return the records of expected/dump/decoded/PARTITION.txt.gz, printed by Kafka 3.9 or later, in file order."""
    file, producer, transactional = "", -1, False
    text = gzip.decompress((folder / "expected" / "dump" / "decoded" / f"{partition}.txt.gz").read_bytes()).decode()
    for line in text.split("\n"):
        if line.startswith("Dumping "):
            file = line.rpartition("/")[2]
        elif match := BATCH.match(line):
            producer, transactional = int(match["producer"]), match["transactional"] == "true"
        elif match := RECORD.match(line):
            head, _, payload = match["rest"].partition(" payload: ")
            _, _, key = head.partition(" key: ")
            marker = re.search(r"endTxnMarker: (\w+)", head)
            yield Dumped(
                file=file,
                offset=int(match["offset"]),
                timestamp=int(match["timestamp"]),
                key=json.loads(key) if key else None,
                payload=json.loads(payload) if payload.startswith("{") else None,
                deleted=payload == "<DELETE>",
                marker=marker[1] if marker else None,
                producer_id=producer,
                transactional=transactional,
            )


def keyed(key: Message, value: Message | None, version: int = 0) -> tuple[bytes, bytes | None]:
    """Encode a coordinator record."""
    return write_prefixed(key, 0), None if value is None else write_prefixed(value, version)


def batch(records: Sequence[tuple[bytes | None, bytes | None]], offset: int, **options: Any) -> bytes:
    """Return a batch of records with timestamps one second apart."""
    return write_batch(
        [
            Record(
                offset=offset + i,
                timestamp=NOW + 1000 * (offset + i),
                timestamp_type=TimestampType.CREATE_TIME,
                key=key,
                value=value,
                headers=[],
            )
            for i, (key, value) in enumerate(records)
        ],
        base_offset=offset,
        **options,
    )


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    """Return a transaction marker."""
    return write_transaction_marker(
        ControlRecordType.COMMIT if commit else ControlRecordType.ABORT,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        base_offset=offset,
        timestamp=NOW + 1000 * offset,
    )


def log_of(data: Path, partition: str, *batches: bytes) -> Path:
    """Create a log directory with one partition of these batches."""
    folder = data / partition
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{0:020}.log").write_bytes(b"".join(batches))
    return data
