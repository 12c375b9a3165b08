"""How much faster is finding offsets in a segment, and splitting it, with an `.index` file?

A segment of 16 KB batches. CPU time of this process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.data import log_directory
from kwire.log import LogDirectory, PartitionLog, plan_splits

SEEKS = 100


def cpu_us(work: Callable[[], object], times: int) -> float:
    """Return CPU microseconds per call, the best of three series."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time_ns()
        for _ in range(times):
            work()
        best = min(best, (time.process_time_ns() - start) / times / 1000)
    return best


def seek(log: PartitionLog) -> None:
    """Look up the positions of offsets across the segment."""
    segment = log.segments[0]
    with segment.open() as file:
        for i in range(SEEKS):
            segment.position_of(file, segment.base_offset + i * 19_997)


def main() -> None:
    """Print the figures."""
    indexed = LogDirectory(log_directory(2_000_000, partitions=1, segments=1))["bench", 0]
    with tempfile.TemporaryDirectory() as folder:
        without = Path(folder) / "bench-0"
        without.mkdir()
        for segment in indexed.segments:
            (without / Path(segment.url).name).symlink_to(segment.url)
        compare(indexed, LogDirectory(without)["bench", 0])


def compare(indexed: PartitionLog, bare: PartitionLog) -> None:
    """Print the figures of a log with and without indexes."""
    size_mb = indexed.size_bytes / 1e6
    by_index, by_walk = cpu_us(lambda: seek(indexed), 3) / SEEKS, cpu_us(lambda: seek(bare), 1) / SEEKS
    print(f"log.seek {by_index:.1f} us {by_index / by_walk:.4f} header-walk-{by_walk:.0f}us-in-{size_mb:.0f}MB")
    by_index = cpu_us(lambda: plan_splits(indexed, split_bytes=16 << 20), 5)
    by_walk = cpu_us(lambda: plan_splits(bare, split_bytes=16 << 20), 1)
    print(f"log.plan_splits {by_index:.0f} us {by_index / by_walk:.4f} header-walk-{by_walk:.0f}us-in-{size_mb:.0f}MB")
    last = indexed.segments[0].time_index
    assert last is not None
    middle = last.last[0] - 500_000
    by_index, by_walk = (
        cpu_us(lambda: indexed.offset_for_time(middle), 10),
        cpu_us(lambda: bare.offset_for_time(middle), 1),
    )
    print(
        f"log.offset_for_time {by_index:.0f} us {by_index / by_walk:.4f} header-walk-{by_walk:.0f}us-in-{size_mb:.0f}MB"
    )


if __name__ == "__main__":
    main()
