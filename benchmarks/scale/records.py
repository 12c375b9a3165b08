"""How do reading, verifying and compacting grow with the number of records (116 B, in one partition)?

A hundred million records need 40 GB of disk; sizes that do not fit are skipped.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from benchmarks.data import CACHE, log_directory
from benchmarks.processes import grow

SCALE = True
SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
DISK_BYTES = 400
"""For a record: its log, a copy of that, and the compacted copy."""
READ = """
import sys
from kwire.log import LogDirectory
log = LogDirectory(sys.argv[1])["bench", 0]
rows = sum(batch.num_rows for batch in log.read_arrow())
assert rows == log.log_end_offset
"""
OBJECTS = """
import sys
from kwire.log import LogDirectory
log = LogDirectory(sys.argv[1])["bench", 0]
assert sum(1 for record in log.read()) == log.log_end_offset
"""
VERIFY = """
import sys
from kwire.log import LogDirectory
from kwire.maintenance.verify import verify_directory
assert all(each.is_harmless for each in verify_directory(LogDirectory(sys.argv[1]), threads=1).damages)
"""
COMPACT = """
import sys, time
from kwire.maintenance.compaction import OfflineSettings, compact
list(compact(sys.argv[1], lambda topic, partition: True, OfflineSettings.parse({}), time.time_ns() // 1_000_000))
"""


def directory(records: int) -> str:
    """Return a log of one partition with segments of about a million records."""
    return str(log_directory(records, partitions=1, segments=max(2, records // 1_000_000)))


def main() -> None:
    """Print the figures."""
    reading = "import kwire.log, pyarrow"
    CACHE.mkdir(parents=True, exist_ok=True)
    sizes = [size for size in SIZES if size * DISK_BYTES <= shutil.disk_usage(CACHE).free]
    grow("read_arrow", "records", sizes, READ, directory, start=reading)
    grow("read", "records", sizes, OBJECTS, directory, start="import kwire.log")
    grow("verify", "records", sizes, VERIFY, directory, start="import kwire.maintenance.verify")
    with tempfile.TemporaryDirectory(dir=Path(directory(SIZES[0])).parent) as folder:

        def copy(records: int) -> str:
            target = Path(folder) / str(records)
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(directory(records), target)
            (target / "done").unlink()  # left by the generator
            return str(target)

        grow("compact", "records", sizes, COMPACT, copy, start="import kwire.maintenance.compaction")


if __name__ == "__main__":
    main()
