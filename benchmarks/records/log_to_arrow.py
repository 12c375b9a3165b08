"""How many CPU nanoseconds per row does reading a log into Arrow take?

116 byte records in 16 KB batches, CRC on, read from a file (in the page cache) in 8 MB pieces into one buffer, as
kwire.log does. Figures: each codec with all columns except headers; fewer columns; without CRC; the object path; magic
1; varied records. Peers: aiokafka's compiled reader and kafka-python, which return objects, on a tenth of the file, and
Kafka's FileRecords and MemoryRecords in Java, the second on bytes that are in memory. "memory" is the least that any
reader can do: read the file, compute the checksum of each batch and copy the bytes once, to new memory as Arrow's. Best
of several runs, since the machine is shared.
Wall time with 1 and 2 threads: compressed batches are decompressed and parsed in parallel.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
from tools import kafka

from benchmarks.records.batches import CODECS, RECORDS_PER_BATCH, legacy_segment, segment, varied_segment
from kwire import native
from kwire.records import ColumnReader, read_batches
from kwire.records.format.batch_header import ATTRIBUTES_POSITION, batch_spans

SPARK_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
BATCHES = 2500  # 320,000 rows, 40 MB
BUFFER = memoryview(bytearray(8 << 20))  # reused, as in readers of many segments
RUNS = 7


def cpu_ns_a_row(work: Callable[[], int], runs: int = RUNS) -> float:
    """Return the CPU time per row of the fastest run."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time_ns()
        rows = work()
        best = min(best, (time.process_time_ns() - start) / rows)
    return best


def read_columns(path: Path, columns: tuple[str, ...], check_crc: bool = True) -> int:
    """Read the whole file; return the number of rows."""
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


def read_and_copy(path: Path) -> int:
    """Read the file, sum the bytes that checksums cover, and copy it to new memory; return the number of rows."""
    buffer, kept = BUFFER, 0
    with path.open("rb", buffering=0) as file:
        while n := file.readinto(buffer[kept:]):
            chunk = buffer[: kept + n]
            end = 0
            for start, end in batch_spans(chunk):
                native.sum_bytes(chunk[start + ATTRIBUTES_POSITION : end])
            copy = np.empty(end, np.uint8)
            copy[:] = np.frombuffer(chunk, np.uint8, end)
            kept += n - end
            buffer[:kept] = buffer[end : end + kept]
    return BATCHES * RECORDS_PER_BATCH


def wall_ns_a_row(path: Path, threads: int) -> float:
    """Return the wall time per row of the fastest run with this number of threads."""
    data, best = path.read_bytes(), float("inf")
    reader = ColumnReader(SPARK_COLUMNS, topic="bench", partition=0, threads=threads)
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        rows = sum(batch.num_rows for batch in reader.read(data))
        best = min(best, (time.perf_counter_ns() - start) / rows)
    return best


def read_objects(data: bytes) -> int:
    """Read a record set as objects; return the number of records."""
    rows = 0
    for batch in read_batches(data):
        batch.check()
        for _ in batch.records():
            rows += 1
    return rows


def read_peer(package: str, data: bytes) -> int:
    """Read with aiokafka or kafka-python, whose readers have the same interface, with CRC checks."""
    records = import_module(f"{package}.record.memory_records").MemoryRecords(data)
    rows = 0
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        for record in batch:
            _ = record.offset, record.timestamp, record.key, record.value
            rows += 1
    return rows


def java_ns_a_row(paths: list[Path]) -> dict[Path, dict[str, float]]:
    """Return CPU ns per record of Kafka's FileRecords and MemoryRecords with CRC checks, by file; {} without a JDK."""
    try:
        classes = kafka.compile_java(kafka.ROOT / "tools" / "java" / "ReadLog.java")
    except kafka.Unavailable as missing:
        print(f"# no Java: {missing}", file=sys.stderr)
        return {}
    out = kafka.java("ReadLog", "5", *map(str, paths), classes=classes).splitlines()
    lines = (line.split() for line in out if line.strip())
    return {Path(path): {"java": float(file), "java(memory)": float(memory)} for path, _, file, memory in lines}


def python_peers(data: bytes) -> dict[str, float]:
    """Return CPU ns per record of the installed Python readers that support the input."""
    found = {}
    for name, package in (("aiokafka", "aiokafka"), ("kafka-python", "kafka")):
        try:
            found[name] = cpu_ns_a_row(lambda package=package: read_peer(package, data), 3)
        except Exception as missing:  # not installed, or without the library of the codec
            print(f"# {name} skipped: {missing}", file=sys.stderr)
    return found


def main() -> None:
    """Print a line per peer: name, CPU ns per row, unit, ratio to the peer (below 1 is faster), peer."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {codec: Path(folder) / codec for codec in CODECS}
        for codec, path in paths.items():
            path.write_bytes(segment(codec, BATCHES))
        varied = {codec: Path(folder) / f"varied-{codec}" for codec in ("none", "zstd")}
        for codec, path in varied.items():
            path.write_bytes(varied_segment(codec, BATCHES))
        java = java_ns_a_row([*paths.values(), *varied.values()])
        for codec, path in paths.items():
            part = path.read_bytes()[: path.stat().st_size // 10]
            peers = python_peers(part)
            peers |= java.get(path, {})
            if codec == "none":
                peers["memory"] = cpu_ns_a_row(lambda path=path: read_and_copy(path))
            one = wall_ns_a_row(path, 1)
            report(f"log_to_arrow/{codec}/2_threads", wall_ns_a_row(path, 2), {"1_thread": one})
            report(f"log_to_arrow/{codec}", cpu_ns_a_row(lambda path=path: read_columns(path, SPARK_COLUMNS)), peers)
            if codec == "none":
                for columns in (("value",), ("offset", "timestamp"), ("partition", "offset")):
                    work = cpu_ns_a_row(lambda path=path, columns=columns: read_columns(path, columns))
                    report(f"log_to_arrow/none/{'+'.join(columns)}", work, peers)
                without = cpu_ns_a_row(lambda path=path: read_columns(path, SPARK_COLUMNS, check_crc=False))
                report("log_to_arrow/none/no_crc", without, peers)
                report("log_to_objects/none", cpu_ns_a_row(lambda part=part: read_objects(part), 2), peers)

        for codec, path in varied.items():
            peers = python_peers(path.read_bytes()[: path.stat().st_size // 10]) | java.get(path, {})
            if codec == "none":
                peers["memory"] = cpu_ns_a_row(lambda path=path: read_and_copy(path))
            work = cpu_ns_a_row(lambda path=path: read_columns(path, SPARK_COLUMNS))
            report(f"log_to_arrow/varied/{codec}", work, peers)

        for codec in ("none", "gzip", "snappy", "lz4"):
            path.write_bytes(legacy_segment(codec, 400 * RECORDS_PER_BATCH))
            peers = python_peers(path.read_bytes())
            work = cpu_ns_a_row(lambda path=path: read_columns(path, SPARK_COLUMNS))
            report(f"log_to_arrow/magic_1/{codec}", work, peers)


def report(name: str, value: float, peers: dict[str, float]) -> None:
    """Print lines: name value unit ratio peer."""
    for peer, theirs in peers.items():
        print(f"{name} {value:.1f} ns/row {value / theirs:.2g} {peer}")
    if not peers:
        print(f"{name} {value:.1f} ns/row - -")


if __name__ == "__main__":
    main()
