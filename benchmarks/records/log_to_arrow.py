"""How many CPU nanoseconds does a row of a log cost on its way into Arrow?

116 byte records in 16 KB batches, CRC on, read from a file (in the page cache) in 8 MB pieces into one buffer, as
kwire.log does. Lines: each codec with all columns but headers; fewer columns; without CRC; the object path; magic 1.
The peer is aiokafka's compiled reader, which gives one object a record. Best of several runs, since other processes
share the machine.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.records.batches import CODECS, RECORDS_PER_BATCH, legacy_segment, segment
from kwire.records import ColumnReader, read_batches

SPARK_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
BATCHES = 2500  # 320,000 rows, 40 MB
BUFFER = memoryview(bytearray(8 << 20))  # made once: readers of many segments keep theirs
RUNS = 7


def cpu_ns_a_row(work: Callable[[], int], runs: int = RUNS) -> float:
    """CPU time of the fastest run over the rows it gives."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time_ns()
        rows = work()
        best = min(best, (time.process_time_ns() - start) / rows)
    return best


def read_columns(path: Path, columns: tuple[str, ...], check_crc: bool = True) -> int:
    """Read the whole file; returns the rows."""
    reader = ColumnReader(columns, topic="bench", partition=0, check_crc=check_crc)
    buffer, rows, kept = BUFFER, 0, 0
    with path.open("rb", buffering=0) as file:
        while n := file.readinto(buffer[kept:]):
            for batch in reader.read(buffer[: kept + n]):
                rows += batch.num_rows
            rest = kept + n - reader.consumed
            buffer[:rest] = buffer[reader.consumed : kept + n]
            kept = rest
    return rows


def read_objects(data: bytes) -> int:
    """Read a record set as objects; returns the records."""
    rows = 0
    for batch in read_batches(data):
        batch.check()
        for _ in batch.records():
            rows += 1
    return rows


def read_aiokafka(data: bytes) -> int:
    """The same with aiokafka's compiled reader, CRC checked."""
    from aiokafka.record.memory_records import MemoryRecords

    rows, records = 0, MemoryRecords(data)
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        for record in batch:
            _ = record.offset, record.timestamp, record.key, record.value
            rows += 1
    return rows


def main() -> None:
    """Print name, CPU ns a row, ratio to aiokafka (below 1 is faster)."""
    try:
        import aiokafka  # noqa: F401
    except ImportError:
        has_peer = False
    else:
        has_peer = True
    with tempfile.TemporaryDirectory() as folder:
        for codec in CODECS:
            path = Path(folder) / codec
            path.write_bytes(segment(codec, BATCHES))
            part = path.read_bytes()[: path.stat().st_size // 10]
            peer = cpu_ns_a_row(lambda part=part: read_aiokafka(part), 3) if has_peer else None
            report(f"log_to_arrow/{codec}", cpu_ns_a_row(lambda path=path: read_columns(path, SPARK_COLUMNS)), peer)
            if codec == "none":
                for columns in (("value",), ("offset", "timestamp"), ("partition", "offset")):
                    work = cpu_ns_a_row(lambda path=path, columns=columns: read_columns(path, columns))
                    report(f"log_to_arrow/none/{'+'.join(columns)}", work, peer)
                without = cpu_ns_a_row(lambda path=path: read_columns(path, SPARK_COLUMNS, check_crc=False))
                report("log_to_arrow/none/no_crc", without, peer)
                report("log_to_objects/none", cpu_ns_a_row(lambda part=part: read_objects(part), 2), peer)

        for codec in ("none", "gzip", "snappy", "lz4"):
            path.write_bytes(legacy_segment(codec, 400 * RECORDS_PER_BATCH))
            part = path.read_bytes()
            peer = cpu_ns_a_row(lambda part=part: read_aiokafka(part), 3) if has_peer else None
            report(
                f"log_to_arrow/magic_1/{codec}", cpu_ns_a_row(lambda path=path: read_columns(path, SPARK_COLUMNS)), peer
            )


def report(name: str, value: float, peer: float | None) -> None:
    """One line: name value unit ratio peer."""
    ratio = f"{value / peer:.2f} aiokafka" if peer else "- -"
    print(f"{name} {value:.1f} ns/row {ratio}")


if __name__ == "__main__":
    main()
