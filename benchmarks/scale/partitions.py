"""How do listing, planning a Spark read and verifying grow with the number of partitions and segments?"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks.data import log_directory
from benchmarks.processes import grow

SCALE = True
PARTITIONS = (1, 10, 100, 1_000, 10_000)
SEGMENTS = (10, 100, 1_000, 10_000)
RECORDS = 768
LIST = """
import sys
from kwire.log import LogDirectory
for log in LogDirectory(sys.argv[1]).values():
    log.log_start_offset, log.log_end_offset, log.size_bytes
"""
VERIFY = """
import sys
from kwire.log import LogDirectory
from kwire.maintenance.verify import verify_directory
verify_directory(LogDirectory(sys.argv[1]), threads=1)
"""


def link_partitions(folder: Path, source: Path, count: int) -> str:
    """Return a log directory with `count` partitions of the same files."""
    target = folder / f"partitions-{count}"
    if not target.exists():
        for n in range(count):
            directory = target / f"topic-{n // 100}-{n % 100}"
            directory.mkdir(parents=True)
            for file in source.iterdir():
                os.link(file, directory / file.name)
    return str(target)


def link_segments(folder: Path, source: Path, count: int) -> str:
    """Return a log directory with a partition of `count` segments; only the last one has records."""
    target = folder / f"segments-{count}"
    if not target.exists():
        directory = target / "topic-0"
        directory.mkdir(parents=True)
        for n in range(count - 1):
            (directory / f"{n:020}.log").touch()
        for file in source.iterdir():
            os.link(file, directory / f"{count - 1:020}{file.suffix}")
    return str(target)


def main() -> None:
    """Print the figures."""
    source = Path(log_directory(RECORDS, partitions=1, segments=1)) / "bench-0"
    with tempfile.TemporaryDirectory(dir=source.parents[1]) as folder:

        def partitions(count: int) -> str:
            return link_partitions(Path(folder), source, count)

        def segments(count: int) -> str:
            return link_segments(Path(folder), source, count)

        grow("list", "partitions", PARTITIONS, LIST, partitions, start="import kwire.log")
        grow("verify", "partitions", PARTITIONS, VERIFY, partitions, start="import kwire.maintenance.verify")
        grow("list", "segments", SEGMENTS, LIST, segments, start="import kwire.log")


if __name__ == "__main__":
    main()
