"""What does it cost to convert batches to another magic?

Batches of 128 records of 116 bytes (16 KB): down to magic 1, as a broker does for old consumers, and those messages up
to magic 2. Peer: the same through Record objects, which gives the same bytes. CPU time, the best of several runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.records.batches import RECORDS_PER_BATCH, segment
from kwire.records import down_convert, up_convert
from kwire.records.convert import conversion

BATCHES = 400
RUNS = 5


def cpu_ns(work: Callable[[], bytes]) -> tuple[float, bytes]:
    """Return the best CPU nanoseconds, and the result."""
    best, result = float("inf"), work()
    for _ in range(RUNS):
        start = time.process_time_ns()
        result = work()
        best = min(best, time.process_time_ns() - start)
    return best, result


def main() -> None:
    """Print the figures."""
    usual = conversion.FEW_BYTES
    for codec in ("none", "lz4", "gzip"):
        source = segment(codec, BATCHES)
        converted = bytes(down_convert(source, 1))
        for name, work in (
            ("down", lambda source=source: down_convert(source, 1)),
            ("up", lambda converted=converted: up_convert(converted, 2)),
        ):
            columns, ours = cpu_ns(work)
            conversion.FEW_BYTES = 1 << 60
            objects, theirs = cpu_ns(work)
            conversion.FEW_BYTES = usual
            assert ours == theirs
            records = BATCHES * RECORDS_PER_BATCH
            print(
                f"records.conversion.{name}.{codec} {columns / records:.0f} ns {columns / objects:.3f} objects",
                flush=True,
            )


if __name__ == "__main__":
    main()
