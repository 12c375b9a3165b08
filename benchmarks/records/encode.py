"""How many CPU nanoseconds per row does encoding Arrow to batches take?

116 byte records (16 byte key, 100 byte JSON-like value) in batches of 16 KB before compression, from a record batch of
64 K rows. Figures by codec: in memory, and to a file (plain_write is the operating system's part of it). Then headers
and the object path. Peers with the same rows: Kafka's MemoryRecordsBuilder (Java), aiokafka (Cython) and kafka-python.
Best of several runs, since the machine is shared.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
from tools import kafka

from benchmarks.records.batches import CODECS, segment
from kwire.records import ColumnWriter, Compression, read_batches, to_arrow, write_batches
from kwire.records.columns.encoder import ROOM_BYTES

BATCHES = 512  # 65,536 rows, 7.6 MB of keys and values
BATCH_SIZE = 16384
RUNS, REPEATS = 5, 4
JAVA = Path(__file__).parents[2] / "tools" / "java" / "WriteLog.java"


def cpu_ns_a_row(work: Callable[[], object], rows: int, runs: int = RUNS, repeats: int = REPEATS) -> float:
    """Return the CPU time per row of the fastest run."""
    work()
    best = float("inf")
    for _ in range(runs):
        start = time.process_time_ns()
        for _ in range(repeats):
            work()
        best = min(best, (time.process_time_ns() - start) / rows / repeats)
    return best


def in_memory(writer: ColumnWriter, batch: pa.RecordBatch) -> int:
    """Encode without keeping the output; return its size."""
    return sum(map(len, writer.write(batch)))


def to_file(writer: ColumnWriter, batch: pa.RecordBatch, path: Path) -> None:
    """Encode into a file."""
    with path.open("wb", buffering=0) as file:
        for piece in writer.write(batch):
            file.write(piece)


def plain_write(data: bytes, path: Path) -> None:
    """Write encoded batches, in pieces of the writer's size."""
    with path.open("wb", buffering=0) as file:
        for at in range(0, len(data), ROOM_BYTES):
            file.write(data[at : at + ROOM_BYTES])


def with_peer(builder: Any, rows: Sequence[tuple[int, bytes, bytes]], codec: Compression) -> int:
    """Encode with aiokafka or kafka-python, which have the same interface; return the size."""
    size, i = 0, 0
    while i < len(rows):
        batch = builder(
            magic=2,
            compression_type=int(codec),
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=BATCH_SIZE,
        )
        offset = 0
        while i < len(rows) and batch.append(offset, *rows[i], []) is not None:
            offset += 1
            i += 1
        size += len(batch.build())
    return size


def python_peers() -> dict[str, Any]:
    """Return the batch builders of the installed Python clients."""
    found: dict[str, Any] = {}
    try:
        from aiokafka.record.default_records import DefaultRecordBatchBuilder as Aiokafka

        found["aiokafka"] = Aiokafka
    except ImportError:
        print("# aiokafka is not installed: ./dev bench installs it")
    try:
        from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPython

        found["kafka-python" if find_spec("crc32c") else "kafka-python-without-crc32c"] = KafkaPython
    except ImportError:
        print("# kafka-python is not installed: ./dev bench installs it")
    return found


def java_figures(data: bytes, folder: Path) -> dict[str, tuple[float, float]]:
    """Return (in memory, to a file) of Kafka's classes by codec; empty without a JDK."""
    try:
        kafka.jars()
        classes = kafka.compile_java(JAVA)
    except kafka.Unavailable as missing:
        print(f"# no Java figures: {missing}")
        return {}
    source, target = folder / "source.log", folder / "java.log"
    source.write_bytes(data)
    lines = kafka.java("WriteLog", "5", str(source), str(target), *CODECS, classes=classes).splitlines()
    target.unlink()
    figures = (line.split() for line in lines)
    return {codec: (float(memory), float(file)) for codec, _, _, memory, file in figures}


def report(name: str, value: float, peers: dict[str, float]) -> None:
    """Print a line per peer: name value unit ratio peer, with kwire's figure by the peer's."""
    if not peers:
        print(f"{name} {value:.1f} ns/row - -", flush=True)
    for peer, theirs in peers.items():
        print(f"{name} {value:.1f} ns/row {value / theirs:.3g} {peer}", flush=True)


def main() -> None:
    """Print all figures."""
    data = segment("none", BATCHES)
    batch = to_arrow(data, ["key", "value", "timestamp"])
    rows = batch.num_rows
    objects = [record for one in read_batches(data) for record in one.records()][: rows // 8]
    tuples = [(record.timestamp, record.key, record.value) for record in objects]
    builders = python_peers()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        java = java_figures(data, folder)
        report("plain_write", cpu_ns_a_row(lambda: plain_write(data, folder / "plain.log"), rows), {})
        for text in CODECS:
            codec = Compression[text.upper()]
            peers = {}
            for peer, builder in builders.items():
                try:
                    with_peer(builder, tuples[:1], codec)
                except Exception as error:  # kafka-python does not install the libraries of most codecs
                    print(f"# {peer} {text}: {error}")
                    continue
                peers[f"{peer}(memory)"] = cpu_ns_a_row(
                    lambda builder=builder, codec=codec: with_peer(builder, tuples, codec), len(tuples), 2, 1
                )
            writer, path = ColumnWriter(compression=text, batch_size=BATCH_SIZE), folder / "ours.log"
            memory, file = java.get(text, (0.0, 0.0))
            java_memory = {"java(memory)": memory} if memory else {}
            ours = cpu_ns_a_row(lambda writer=writer: in_memory(writer, batch), rows)
            report(f"arrow_to_batches/{text}", ours, java_memory | peers)
            ours = cpu_ns_a_row(lambda writer=writer, path=path: to_file(writer, batch, path), rows)
            report(f"arrow_to_file/{text}", ours, ({"java(file)": file} if file else {}) | java_memory)
        headers = pa.array(
            [[{"key": "trace", "value": b"0123456789abcdef"}]] * rows, to_arrow(data, ["headers"])[0].type
        )
        batch_with = pa.RecordBatch.from_arrays([*batch.columns, headers], [*batch.schema.names, "headers"])
        writer = ColumnWriter(batch_size=BATCH_SIZE)
        report("arrow_to_batches/none/one_header", cpu_ns_a_row(lambda: in_memory(writer, batch_with), rows), {})
    objects_ns = cpu_ns_a_row(lambda: sum(map(len, write_batches(objects))), len(objects), 2, 1)
    report("objects_to_batches/none", objects_ns, {})


if __name__ == "__main__":
    main()
