"""Kafka's classes read everything that kwire.records writes: every magic, codec and shape, on both paths.

One Java process reads all files. The expected output is made from the written records, not by reading our bytes.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from tools import kafka

from kwire.records import (
    Compression,
    ControlRecordType,
    Record,
    TimestampType,
    down_convert,
    from_arrow,
    up_convert,
    validate_and_assign_offsets,
    write_batch,
    write_batches,
    write_control_batch,
    write_transaction_marker,
)
from kwire.records.columns.reader import arrow_schema

JAVA = Path(__file__).parent / "java" / "CheckRecords.java"
NOW = 1_700_000_000_000


class Case(NamedTuple):
    """A file for Java. expected: its R lines. batch: its B lines after the offsets, None if not compared."""

    name: str
    data: bytes
    expected: list[str]
    batch: str | None = None


def record(
    offset: int, key: bytes | None, value: bytes | None, timestamp: int, *headers: tuple[str, bytes | None]
) -> Record:
    return Record(
        offset=offset,
        timestamp=timestamp,
        timestamp_type=TimestampType.CREATE_TIME,
        key=key,
        value=value,
        headers=list(headers),
    )


def shapes() -> dict[str, list[Record]]:
    """Return records by their special property."""
    source = random.Random(7)
    many = [
        record(i, b"key-%d" % (i % 50), b'{"id":%d,"text":"%s"}' % (i, b"ab" * source.randrange(40)), NOW + i % 97)
        for i in range(2000)
    ]
    return {
        "one": [record(0, b"k", b"v", NOW)],
        "nulls": [record(0, None, None, NOW), record(1, b"", b"", -1), record(2, b"k", None, 0)],
        "no-timestamps": [record(i, b"k", b"v", -1) for i in range(3)],
        "times": [record(0, b"k", b"v", 2**62), record(1, b"k", b"v", 0), record(2, b"k", b"v", 2**63 - 1)],
        "many": many,
        "stored": [record(i, b"k", source.randbytes(70_000), NOW) for i in range(3)],
        "wide": [record(0, b"k" * 20_000, b"v" * 300_000, NOW), record(1, None, b"w" * 65_536, NOW)],
    }


def with_headers() -> list[Record]:
    """Return records with headers, for magic 2 only."""
    return [
        record(0, b"k", b"v", NOW, ("", None), ("a", b""), ("a", b"1"), ("ключ \N{PILE OF POO}", b"\0\xff")),
        record(1, None, None, NOW),
        record(2, b"k", b"v", NOW, *[(f"h{i}", b"x" * i) for i in range(200)]),
    ]


def as_hex(field: bytes | None) -> str:
    """Render bytes like CheckRecords.hex."""
    if field is None:
        return "null"
    return field.hex() if len(field) <= 64 else f"{len(field)}:{zlib.crc32(field):x}"


def lines_of(
    records: list[Record], magic: int, base_offset: int = 0, sequence: int = -1, time: int | None = None
) -> list[str]:
    """Return the expected output of Java for records."""
    lines = []
    for i, r in enumerate(records):
        headers = ",".join(f"{name.encode().hex()}={as_hex(value)}" for name, value in r.headers)
        timestamp = -1 if magic == 0 else r.timestamp if time is None else time
        number = -1 if sequence < 0 else (sequence + i) % 2**31
        lines.append(f"R {base_offset + i} {timestamp} {as_hex(r.key)} {as_hex(r.value)} [{headers}] {number}")
    return lines


def codecs(magic: int) -> list[Compression]:
    return [codec for codec in Compression if magic == 2 or codec != Compression.ZSTD]


def as_arrow(records: list[Record]) -> pa.RecordBatch:
    schema = arrow_schema(["key", "value", "timestamp", "headers"])
    rows = [
        {
            "key": r.key,
            "value": r.value,
            "timestamp": r.timestamp,
            "headers": [{"key": k, "value": v} for k, v in r.headers] or None,
        }
        for r in records
    ]
    plain = pa.schema([field if field.name != "timestamp" else pa.field("timestamp", pa.int64()) for field in schema])
    return pa.RecordBatch.from_pylist(rows, plain)


def written_cases() -> Iterator[Case]:
    """Return cases of both paths and all magics, codecs and shapes."""
    for magic in (0, 1, 2):
        everything = shapes() | ({"headers": with_headers()} if magic == 2 else {})
        for codec in codecs(magic):
            for shape, records in everything.items():
                lines = lines_of(records, magic, 41)
                kind = "NoTimestampType" if magic == 0 else "CreateTime"
                top = -1 if magic == 0 else max(r.timestamp for r in records)
                fields = f"{magic} {codec.text} {kind} {top} -1 -1 -1 false false -1"
                name = f"{magic}-{codec.text}-{shape}"
                one = write_batch(records, magic, codec, 41)
                yield Case(f"object-{name}", one, lines, fields if codec or magic == 2 else None)
                yield Case(
                    f"stream-{name}",
                    b"".join(write_batches(records, magic=magic, compression=codec, base_offset=41)),
                    lines,
                )
                yield Case(
                    f"columns-{name}",
                    from_arrow(as_arrow(records), magic=magic, compression=codec, base_offset=41),
                    lines,
                )


def level_cases() -> Iterator[Case]:
    """Return cases of the lowest and highest level of each codec."""
    records = shapes()["many"]
    for codec, levels in {"gzip": (1, 9), "lz4": (1, 3, 9, 12, 17), "zstd": (-131072, -1, 1, 22)}.items():
        for level in levels:
            yield Case(f"level-{codec}-{level}", write_batch(records, 2, codec, level=level), lines_of(records, 2))


def feature_cases() -> Iterator[Case]:
    """Return cases of magic 2 header fields, append times, gaps and batches rewritten by brokers."""
    records = shapes()["nulls"]
    producer = {"producer_id": 77, "producer_epoch": 3, "base_sequence": 2**31 - 2}
    yield Case(
        "idempotent",
        write_batch(records, 2, "lz4", 5, **producer, partition_leader_epoch=9),
        lines_of(records, 2, 5, 2**31 - 2),
        f"2 lz4 CreateTime {NOW} 77 3 {2**31 - 2} false false 9",
    )
    yield Case(
        "transactional-columns",
        from_arrow(as_arrow(records), base_offset=5, **producer, is_transactional=True),
        lines_of(records, 2, 5, 2**31 - 2),
        f"2 none CreateTime {NOW} 77 3 {2**31 - 2} true false -1",
    )
    for magic in (1, 2):
        for codec in codecs(magic):
            time = {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time_ms": NOW + 5}
            lines = lines_of(records, magic, 0, time=NOW + 5)
            yield Case(f"append-time-{magic}-{codec.text}", write_batch(records, magic, codec, **time), lines)
            columns = from_arrow(as_arrow(records), magic=magic, compression=codec, **time)
            yield Case(f"append-time-columns-{magic}-{codec.text}", columns, lines)
    gaps = [record(offset, b"k", b"v", NOW) for offset in (100, 103, 2**31)]
    lines = [f"R {r.offset} {NOW} 6b 76 [] -1" for r in gaps]
    for codec in ("none", "lz4"):
        gap_batch = write_batch(
            gaps, 2, codec, 100, keep_offsets=True, last_offset=2**31 + 5, delete_horizon_ms=NOW + 9
        )
        yield Case(f"gaps-2-{codec}", gap_batch, lines)
    yield Case("gaps-1-lz4", write_batch(gaps, 1, "lz4", 100, keep_offsets=True), lines)
    yield Case(
        "marker",
        write_transaction_marker(
            ControlRecordType.COMMIT,
            producer_id=9,
            producer_epoch=2,
            coordinator_epoch=7,
            timestamp=NOW,
            base_offset=10,
        ),
        [f"R 10 {NOW} 00000001 000000000007 [] -1"],
        f"2 none CreateTime {NOW} 9 2 -1 true true -1",
    )
    control = write_control_batch([(ControlRecordType.LEADER_CHANGE, b"\0\0")], timestamp=NOW, partition_leader_epoch=4)
    yield Case("control", control, [f"R 0 {NOW} 00000002 0000 [] -1"], f"2 none CreateTime {NOW} -1 -1 -1 false true 4")


def converted_cases() -> Iterator[Case]:
    """Return cases of down-conversion, up-conversion and appends to every magic and codec."""
    records = shapes()["many"][:300]
    for codec in codecs(0):
        source = write_batch(records, 2, codec, 41)
        for magic in (0, 1):
            yield Case(f"down-{magic}-{codec.text}", down_convert(source, magic), lines_of(records, magic, 41))
            old = write_batch(records, magic, codec, 41)
            up = lines_of(records, magic, 41)
            yield Case(f"up-{magic}-{codec.text}", up_convert(old, 2), up)
    for source_codec in Compression:
        produced = write_batch(records, 2, source_codec)
        for magic in (0, 1, 2):
            for codec in codecs(magic):
                result = validate_and_assign_offsets(
                    produced, 41, now_ms=NOW, to_magic=magic, compression_type=codec, leader_epoch=6
                )
                name = f"appended-{source_codec.text}-{magic}-{codec.text}"
                yield Case(name, result.data, lines_of(records, magic, 41))


def read_by_java(directory: Path) -> dict[str, list[str]]:
    """Return file name -> the lines after its F line."""
    classes = kafka.compile_java(JAVA)
    found: dict[str, list[str]] = {}
    name = ""
    for line in kafka.java("CheckRecords", str(directory), classes=classes).splitlines():
        if line.startswith("F "):
            name = line[2:]
            found[name] = []
        else:
            found[name].append(line)
    return found


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.gate
@pytest.mark.requirement(
    "R-13", "R-20", "R-21", "R-22", "R-33", "R-34", "R-35", "R-40", "R-41", "R-42", "R-43", "C-01", "C-02", "C-03",
    "C-04", "C-05", "C-06", "C-07", "A-24", "U-13", "U-14", "U-20", "S31-01", "S31-08", "S31-12",
)  # fmt: skip
def test_java_reads_every_batch_we_write(tmp_path: Path) -> None:
    kafka.jars()
    kafka.need("javac", "openjdk-17-jdk-headless")
    cases = [*written_cases(), *level_cases(), *feature_cases(), *converted_cases()]
    assert len({case.name for case in cases}) == len(cases) > 250
    for case in cases:
        (tmp_path / case.name).write_bytes(case.data)
    found = read_by_java(tmp_path)
    for case in cases:
        lines = found[case.name]
        assert [line for line in lines if not line.startswith("B ")] == case.expected, case.name
        if case.batch is not None:
            batches = [line.split(" ", 3)[3] for line in lines if line.startswith("B ")]
            assert batches == [case.batch] * len(batches), case.name
