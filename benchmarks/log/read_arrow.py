"""What does reading a segment file into Arrow cost, compared to decoding the same bytes in memory?

116 B records, 16 KB batches, CRC on, page cache warm. CPU time of this process; target: 75 ns per row (docs/design.md).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.data import log_directory
from kwire.log import LogDirectory
from kwire.log.reading.arrow import default_columns
from kwire.records.columns.reader import ColumnReader

ROUNDS = 5


def cpu_ns_a_row(read: Callable[[], int]) -> float:
    """Return CPU ns per row that read() returns, the best of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        start = time.process_time_ns()
        rows = read()
        best = min(best, (time.process_time_ns() - start) / rows)
    return best


def main() -> None:
    """Print the figures."""
    for codec in ("none", "zstd"):
        log = LogDirectory(log_directory(2_000_000, partitions=1, segments=1, codec=codec))["bench", 0]
        data = Path(log.segments[0].url).read_bytes()

        def from_file(log=log) -> int:
            return sum(batch.num_rows for batch in log.read_arrow())

        def from_memory(data: bytes = data) -> int:
            reader = ColumnReader(default_columns(None), topic="bench", partition=0)
            return sum(batch.num_rows for batch in reader.read(data))

        memory = cpu_ns_a_row(from_memory)
        file = cpu_ns_a_row(from_file)
        print(f"log.read_arrow.{codec} {file:.1f} ns/row {file / memory:.2f} ColumnReader-in-memory")


if __name__ == "__main__":
    main()
