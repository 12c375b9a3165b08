"""How many CPU nanoseconds per record does reading and writing records as Python objects take?

Data: 116 byte records (16 byte key, 100 byte JSON-like value) without headers; small JSON values with two headers;
varied records (keys, values and headers of different lengths, some null). Batches of 16 KB. Every field of each record
is read, headers included. Figures, with each codec:

    objects/read      read_batches over bytes in memory, checksums verified
    objects/log       PartitionLog.read over a file in the page cache, checksums verified
    objects/write     write_batches from a list of records
    objects/append    BatchBuilder.append, a record per call, into batches of the same size

Peers, in alternating runs on the same bytes or records: the compiled reader and builder of aiokafka, those of
kafka-python. Best of several runs, since the machine is shared.
"""

from __future__ import annotations

import random
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.records.batches import CODECS, RECORDS_PER_BATCH, batch, encode_record, segment, varied_segment
from kwire.log import LogDirectory
from kwire.records import BatchBuilder, Record, read_batches, write_batches

BATCHES = 250  # 32,000 records
BATCH_SIZE = 16384
RUNS = 9
CODECS_SHOWN = ("none", "lz4", "zstd")
PEERS = {"aiokafka": "aiokafka", "kafka-python": "kafka"}


def events_with_headers(codec: str, batches: int) -> bytes:
    """Encode batches of small JSON values without keys, each with two headers."""
    source = random.Random(2)
    out = bytearray()
    for number in range(batches):
        base = number * RECORDS_PER_BATCH
        section = bytearray()
        for delta in range(RECORDS_PER_BATCH):
            value = b'{"id":%d,"ok":%s}' % (base + delta, source.choice((b"true", b"false")))
            trace = b"%016x" % source.getrandbits(64)
            section += encode_record(delta, None, value, [(b"trace", trace), (b"content-type", b"application/json")])
        out += batch(base, codec, bytes(section), RECORDS_PER_BATCH)
    return bytes(out)


SHAPES = {"116_bytes": segment, "json_and_headers": events_with_headers, "varied": varied_segment}


def best_ns(works: dict[str, Callable[[], int]], runs: int = RUNS) -> dict[str, float]:
    """Return the CPU time per record of the fastest run of each, in alternating runs after one that warms up."""
    best = dict.fromkeys(works, float("inf"))
    for run in range(runs + 1):
        for name, work in works.items():
            start = time.process_time_ns()
            records = work()
            if run:
                best[name] = min(best[name], (time.process_time_ns() - start) / records)
    return best


def read_objects(data: bytes, *, check: bool = True) -> int:
    """Read a record set; return the number of records."""
    count = 0
    for each in read_batches(data):
        if check:
            each.check()
        for record in each.records():
            _ = record.offset, record.timestamp, record.key, record.value, record.headers
            count += 1
    return count


def read_log(path: Path) -> int:
    """Read a partition of a log directory; return the number of records."""
    count = 0
    for record in LogDirectory(path)["bench", 0].read():
        _ = record.offset, record.timestamp, record.key, record.value, record.headers
        count += 1
    return count


def read_peer(package: str, data: bytes, *, check: bool = True) -> int:
    """Read with aiokafka or kafka-python, whose readers have the same interface."""
    records = import_module(f"{package}.record.memory_records").MemoryRecords(data)
    count = 0
    while (each := records.next_batch()) is not None:
        if check:
            assert each.validate_crc()
        for record in each:
            _ = record.offset, record.timestamp, record.key, record.value, record.headers
            count += 1
    return count


def write_objects(records: Sequence[Record], codec: str) -> int:
    """Write a list of records; return their number."""
    assert sum(map(len, write_batches(records, compression=codec, batch_size=BATCH_SIZE)))
    return len(records)


Fields = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def append_each(rows: Sequence[Fields], codec: str) -> int:
    """Write records with a call for each, as a producer does; return their number."""
    builder, size = BatchBuilder(compression=codec, max_bytes=BATCH_SIZE), 0
    for timestamp, key, value, headers in rows:
        if not builder.append(key, value, timestamp=timestamp, headers=headers):
            size += len(builder.build())
            builder = BatchBuilder(compression=codec, max_bytes=BATCH_SIZE)
            builder.append(key, value, timestamp=timestamp, headers=headers)
    assert size + len(builder.build())
    return len(rows)


def write_peer(package: str, rows: Sequence[Fields], codec: str) -> int:
    """Write with the builder of aiokafka or kafka-python; return the number of records."""
    kind: Any = import_module(f"{package}.record.default_records").DefaultRecordBatchBuilder
    number, size, i = CODECS.index(codec), 0, 0
    while i < len(rows):
        builder = kind(
            magic=2,
            compression_type=number,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=BATCH_SIZE,
        )
        offset = 0
        while i < len(rows) and builder.append(offset, *rows[i]) is not None:
            offset += 1
            i += 1
        size += len(builder.build())
    return len(rows)


def usable(works: dict[str, Callable[[], int]]) -> dict[str, Callable[[], int]]:
    """Return the works that run: a peer may lack the library of a codec."""
    found = {}
    for name, work in works.items():
        try:
            work()
        except Exception as missing:
            print(f"# {name} skipped: {missing}", file=sys.stderr)
        else:
            found[name] = work
    return found


def compare(name: str, ours: Callable[[], int], peers: dict[str, Callable[[], int]]) -> None:
    """Print a line per peer: name value unit ratio peer; a ratio below 1 is faster than the peer."""
    best = best_ns({"kwire": ours} | usable(peers))
    value = best.pop("kwire")
    for peer, theirs in best.items():
        print(f"{name} {value:.0f} ns/record {value / theirs:.2f} {peer}={theirs:.0f}", flush=True)
    if not best:
        print(f"{name} {value:.0f} ns/record - -", flush=True)


def log_directory(folder: Path, name: str, data: bytes) -> Path:
    """Write a log directory with one partition of one segment and its offset index."""
    partition = folder / name / "bench-0"
    partition.mkdir(parents=True)
    stem = partition / f"{0:020d}"
    stem.with_suffix(".log").write_bytes(data)
    entries = ((each.last_offset, each.position) for each in read_batches(data) if each.position)
    stem.with_suffix(".index").write_bytes(b"".join(struct.pack(">ii", *entry) for entry in entries))
    return partition.parent


def main() -> None:
    """Print all figures."""
    with tempfile.TemporaryDirectory() as name:
        for shape, make in (
            ("116_bytes", segment),
            ("json_and_headers", events_with_headers),
            ("varied", varied_segment),
        ):
            for codec in CODECS_SHOWN:
                data = make(codec, BATCHES)
                path = log_directory(Path(name), f"{shape}-{codec}", data)
                peers = {peer: lambda p=package, d=data: read_peer(p, d) for peer, package in PEERS.items()}
                compare(f"objects/read/{shape}/{codec}", lambda d=data: read_objects(d), peers)
                compare(f"objects/log/{shape}/{codec}", lambda p=path: read_log(p), peers)
                if codec == "none":
                    bare = {p: lambda k=k, d=data: read_peer(k, d, check=False) for p, k in PEERS.items()}
                    compare(f"objects/read_no_crc/{shape}/none", lambda d=data: read_objects(d, check=False), bare)
            records = [record for each in read_batches(make("none", BATCHES)) for record in each.records()]
            rows = [(r.timestamp, r.key, r.value, r.headers) for r in records]
            for codec in CODECS_SHOWN:
                peers = {peer: lambda p=p, c=codec, r=rows: write_peer(p, r, c) for peer, p in PEERS.items()}
                compare(f"objects/write/{shape}/{codec}", lambda r=records, c=codec: write_objects(r, c), peers)
                compare(f"objects/append/{shape}/{codec}", lambda r=rows, c=codec: append_each(r, c), peers)


if __name__ == "__main__":
    main()
