"""Results of Kafka 3.9.1's log cleaner for the golden logs: kafka_cleaned.json.

For each partition and pass the new checkpoint and, of each segment, a digest of its batches (compressed ones by what is
in them). Made by `python -m tests.log.cleaner.kafka_cleaned`, which needs a JVM.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import golden
from tests.log.cleaner.compared import log_content, transaction_content

EXPECTED = Path(__file__).with_name("kafka_cleaned.json")
NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
PASSES = [NOW_MS, NOW_MS + 2 * DAY_MS]  # both from the log's start; tombstones are due at the second
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "300000",
    "segment.index.bytes": "65536",
    "file.delete.delay.ms": "3600000",  # Kafka opens the directory again while its scheduler is alive
    "retention.ms": "-1",
}
PARTITIONS = {
    "modern": [
        "orders-0",
        "orders-1",
        "txn-0",
        "txn-1",
        "ids-0",
        "logappend-1",
        "compacted-0",
        "compacted-1",
        "compacted-txn-0",
    ],
    "modern44": ["compacted44-0", "txn44-0", "txn44-1"],
    "legacy": [
        "v0-0",
        "v0-2",
        "v0-4",
        "v1-1",
        "v1-3",
        "v2-4",
        "append-v1-0",
        "mixed-format-0",
        "compacted-v0-0",
        "compacted-v1-1",
    ],
}


def partitions() -> Iterator[tuple[str, str]]:
    """Return (archive, partition directory) of all cases."""
    for archive, names in PARTITIONS.items():
        for name in names:
            yield archive, name


def digests(directory: Path) -> dict[str, str]:
    """Return a digest of each segment and transaction index."""
    content: dict[str, Any] = {**log_content(directory), **transaction_content(directory)}
    return {name: hashlib.sha256(repr(each).encode()).hexdigest()[:24] for name, each in sorted(content.items())}


def copy_partition(archive: Path, name: str, target: Path) -> Path:
    """Create a writable copy of a partition directory, closed cleanly."""
    shutil.copytree(archive / "data" / name, target / name)
    return target / name


def main() -> None:
    """Clean all cases with Kafka and write the results."""
    from tools import kafka

    settings = ",".join(f"{name}={value}" for name, value in SETTINGS.items())
    responses: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        classes = kafka.compile_java(kafka.ROOT / "tools" / "java" / "CleanLog.java")
        found = {
            (archive, name): copy_partition(golden.extract(archive, root), name, root / f"{archive}-cleaned")
            for archive, name in partitions()
        }
        for now_ms in PASSES:
            lines = [f"clean {directory} {now_ms} {settings} 1000000 -1" for directory in found.values()]
            (root / "tasks").write_text("\n".join(lines) + "\n")
            printed = kafka.java("CleanLog", str(root / "tasks"), classes=classes).splitlines()
            ends = {line.split()[0]: int(line.split()[1]) for line in printed if line.startswith(temporary)}
            for (archive, name), directory in found.items():
                responses.setdefault(f"{archive}/{name}", []).append(
                    {"end_offset": ends[str(directory)], "files": digests(directory)}
                )
    EXPECTED.write_text(json.dumps(responses, indent=1) + "\n")


if __name__ == "__main__":
    main()
