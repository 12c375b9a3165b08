"""Examples of documentation pages, run on test files instead of the reader's."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.golden import extract, extract_tiered

from kwire import records

__all__ = ["BLOCK", "ON_SPARK", "PAGES", "ROOT", "blocks", "fill", "in_place", "names_of", "needs_spark"]

ROOT = Path(__file__).parents[2]
PAGES = {path.name: path for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"))}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ON_SPARK = ("capture.md", "internal.md", "spark.md")
NOW_MS = 1_760_000_000_000


def blocks(page: str, language: str) -> list[str]:
    return [source for found, source in BLOCK.findall(PAGES[page].read_text("utf-8")) if found == language]


def one_batch() -> bytes:
    return bytes(records.write_batch([a_record(0)]))


def a_record(offset: int) -> records.Record:
    kind = records.TimestampType.CREATE_TIME
    return records.Record(offset=offset, timestamp=NOW_MS, timestamp_type=kind, key=b"k", value=b"v", headers=[])


def names_of(page: str, data: Path) -> dict[str, Any]:
    """Return the names that an example assumes."""
    some = [a_record(offset) for offset in range(3)]
    table = pa.table({"offset": pa.array([0, 1], pa.int64()), "value": [b"a", b"b"]})
    appended = iter([True, False])

    class Builder(records.BatchBuilder):
        """A builder that is full after one record, so that the example's loop ends."""

        def append(self, *arguments: Any, **more: Any) -> bool:
            return super().append(*arguments, **more) and next(appended)

    own: dict[str, dict[str, Any]] = {
        "broker.md": {"pytest": pytest},
        "compaction.md": {"path": str(data), "now_ms": NOW_MS},
        "records.md": {
            "data": one_batch(),
            "chunk": one_batch(),
            "rows": some,
            "table": table.to_batches()[0],
            "key": b"k",
            "value": b"v",
            "now_ms": NOW_MS,
        },
        "writing-logs.md": {"batch": one_batch()},
        "spark.md": {"path": str(data)},
        "internal.md": {"path": str(data)},
    }
    if page == "records.md":
        own[page]["BatchBuilder"] = Builder
    return own.get(page, {})


def in_place(source: str, data: Path, folder: Path) -> str:
    """Return an example with the paths of test files."""
    places = {
        "/var/lib/kafka/data": str(data),
        "/var/lib/kwire/data": str(folder / "written"),
        "/backup/new-broker/data": str(folder / "new-broker"),
        "logs/data": str(data),
        "/captures/*.pcap": str(folder / "*.pcap"),
        "kafka.pcap": str(folder / "k391.clean.pcap"),
        "session.pcapng": str(folder / "session.pcapng"),
        "s3://bucket/tiered": str(folder / "encrypted"),
        "private.pem": str(folder / "private.pem"),
        'LogDirectory("DIR")': f'LogDirectory("{data}")',
        '"NEW"': f'"{folder / "new"}"',
        "records.BatchBuilder(": "BatchBuilder(",
        "at_offset=4711": "at_offset=200",
        'groups["billing"]': "groups[sorted(groups)[0]]",
        '.offsets["orders", 0].offset': ".offsets",
    }
    if "open_tiered" in source:
        places["orders"] = "txn"  # the topic that is in tiered storage
    for theirs, ours in places.items():
        source = source.replace(theirs, ours)
    return source


def fill(page: str, folder: Path, kafka_logs: dict[str, Path]) -> Path:
    """Write the input files of a page's examples to a folder; return the log directory, which they may change."""
    if page == "capture.md":
        for capture in extract("wire", folder).rglob("*.pcap"):
            shutil.copy(capture, folder / capture.name)
    if page == "tiered.md":
        extract_tiered(folder)
    return shutil.copytree(kafka_logs["modern"] / "data", folder / "data")


def needs_spark(source: str) -> bool:
    return re.search(r"\bspark\.(read|range|createDataFrame|sql|conf|readStream)", source) is not None
