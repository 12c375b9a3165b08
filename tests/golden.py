"""The bytes that real Kafka wrote (tests/data), as Python objects. Their layout: tests/data/README.md."""

from __future__ import annotations

import base64
import functools
import gzip
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"

Line = dict[str, Any]


def lines(name: str) -> Iterator[Line]:
    """The JSON objects of one .jsonl or .jsonl.gz file below tests/data."""
    path = DATA / name
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


@functools.cache
def cached(name: str) -> tuple[Line, ...]:
    """lines(name), read once a process."""
    return tuple(lines(name))


def unpack(text: str | None) -> bytes | None:
    """base64 to bytes; null stays null."""
    return None if text is None else base64.b64decode(text)


def extract(name: str, into: Path) -> Path:
    """Unpack tests/data/logs/NAME.tar.gz below `into` (once) and return that folder."""
    target = into / name
    if not target.exists():
        staging = into / f".{name}.part"
        staging.mkdir(parents=True)
        with tarfile.open(DATA / "logs" / f"{name}.tar.gz") as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not before Python 3.11.4
            archive.extractall(staging)
        staging.rename(target)
    return target


def record_sets() -> tuple[Line, ...]:
    """records.jsonl.gz: record sets that Kafka reads, with the batches and records it sees in them."""
    return cached("records.jsonl.gz")


def reads_of_invalid_bytes() -> tuple[Line, ...]:
    """The `read` cases of invalid.jsonl.gz: what Kafka's reader makes of bytes that are off in some way."""
    return tuple(line for line in cached("invalid.jsonl.gz") if line["op"] == "read")


def case_name(line: Line) -> str:
    """A line's name for parametrize: five-1-gzip, v2-codec-id-5."""
    return "-".join(str(line[key]) for key in ("case", "magic", "codec") if key in line)


def record_fields(record: Line) -> tuple[Any, ...]:
    """A record of these files: (offset, timestamp, type's name, key, value, headers as pairs, sequence)."""
    return (
        record["offset"],
        record["timestamp"],
        record["timestampType"],
        unpack(record["key"]),
        unpack(record["value"]),
        [(key, unpack(value)) for key, value in record["headers"]],
        record["sequence"],
    )
