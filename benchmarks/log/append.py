"""What does it cost to append a batch of 16 KB to an open log, and to find the records of a fetch?

Batches of 140 records of 116 bytes, magic 2, uncompressed: they take the fast path (kwire.records.append.whole_batch).
For comparison, validation and offset assignment of the slow path, without the log; both also for a batch of one record.
CPU time of this process, including the copy into the page cache; without fsync.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kwire.log import FileSystem, LogConfig, PartitionWriter
from kwire.records import Record, TimestampType, validate_and_assign_offsets, write_batch
from kwire.records.append.checks import analyze_append
from kwire.records.append.whole_batch import WholeBatchConfig, take_whole_batch

NOW = 1_760_000_000_000
RECORDS = 140
APPENDS = 4000


def cpu_us(work: Callable[[int], object], times: int) -> float:
    """Return CPU microseconds per call, the best of three series."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time_ns()
        for i in range(times):
            work(i)
        best = min(best, (time.process_time_ns() - start) / times / 1000)
    return best


def batch_of(count: int) -> bytes:
    """Return a batch of this number of records."""
    return write_batch(
        [
            Record(
                offset=0,
                timestamp=NOW + i,
                timestamp_type=TimestampType.CREATE_TIME,
                key=b"key-%012d" % i,
                value=b"v" * 100,
                headers=[],
            )
            for i in range(count)
        ]
    )


def main() -> None:
    """Print the figures."""
    data, small = batch_of(RECORDS), batch_of(1)

    def check(_: int) -> None:
        analyze_append(data, leader_epoch=0, max_message_bytes=1 << 20, topic_partition="bench-0")
        validate_and_assign_offsets(
            data, 0, now_ms=NOW, leader_epoch=0, max_message_bytes=1 << 20, topic_partition="bench-0", check_crc=False
        )

    topic = WholeBatchConfig(max_message_bytes=1 << 20)
    fast = cpu_us(lambda _: take_whole_batch(small, 0, now_ms=NOW, leader_epoch=0, topic=topic), APPENDS)
    general = cpu_us(lambda _: validate_and_assign_offsets(small, 0, now_ms=NOW), APPENDS)
    print(f"log.validate_one_record.general {general:.1f} us 1.00 -")
    print(f"log.validate_one_record {fast:.1f} us {fast / general:.2f} general")
    with tempfile.TemporaryDirectory() as folder:
        log = PartitionWriter.open(FileSystem(), str(Path(folder) / "bench-0"), "bench", 0, LogConfig(), now_ms=NOW)
        checking = cpu_us(check, APPENDS)
        appending = cpu_us(lambda _: log.append(data, now_ms=NOW), APPENDS)
        print(f"log.append {appending:.1f} us {appending / checking:.2f} long-way-checks-{checking:.0f}us")
        count = log.log_end_offset // RECORDS
        fetching = cpu_us(lambda i: log.fetch(i * 7919 % count * RECORDS, 1 << 20), APPENDS)
        print(f"log.fetch {fetching:.1f} us")
        tail = cpu_us(lambda _: log.fetch(log.log_end_offset - RECORDS, 1 << 20), APPENDS)
        print(f"log.fetch_tail {tail:.1f} us")
        log.abandon()


if __name__ == "__main__":
    main()
