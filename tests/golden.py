"""Bytes that real Kafka wrote (tests/data) as Python objects; tests/data/README.md describes the files."""

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
    """Return the JSON objects of a .jsonl or .jsonl.gz file below tests/data."""
    path = DATA / name
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


@functools.cache
def cached(name: str) -> tuple[Line, ...]:
    """Return lines(name), read once per process."""
    return tuple(lines(name))


def unpack(text: str | None) -> bytes | None:
    """Decode base64; null stays null."""
    return None if text is None else base64.b64decode(text)


def extract(name: str, into: Path) -> Path:
    """Unpack tests/data/logs/NAME.tar.gz below `into` once and return the folder."""
    target = into / name
    if not target.exists():
        staging = into / f".{name}.part"
        staging.mkdir(parents=True)
        _extract(DATA / "logs" / f"{name}.tar.gz", staging)
        staging.rename(target)
    return target


def extract_tiered(into: Path) -> Path:
    """Unpack the object store's folders of tests/data/tiered into a folder and return it."""
    _extract(DATA / "tiered" / "objects.tar.gz", into)
    return into


def _extract(file: Path, into: Path) -> None:
    with tarfile.open(file) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not before Python 3.11.4
        archive.extractall(into)


def record_sets() -> tuple[Line, ...]:
    """Return records.jsonl.gz: record sets with the batches and records that Kafka reads from them."""
    return cached("records.jsonl.gz")


def reads_of_invalid_bytes() -> tuple[Line, ...]:
    """Return the `read` cases of invalid.jsonl.gz: the results of Kafka's reader for invalid bytes."""
    return tuple(line for line in cached("invalid.jsonl.gz") if line["op"] == "read")


def case_name(line: Line) -> str:
    """Return the name of a line for parametrize: five-1-gzip, v2-codec-id-5."""
    return "-".join(str(line[key]) for key in ("case", "magic", "codec") if key in line)


def record_fields(record: Line) -> tuple[Any, ...]:
    """Return a record of these files as (offset, timestamp, type, key, value, headers, sequence)."""
    return (
        record["offset"],
        record["timestamp"],
        record["timestampType"],
        unpack(record["key"]),
        unpack(record["value"]),
        [(key, unpack(value)) for key, value in record["headers"]],
        record["sequence"],
    )
