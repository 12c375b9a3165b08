"""Helpers for tests of written logs: producers' batches, and directories compared file by file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from kwire.log import FileSystem, LogConfig, PartitionWriter
from kwire.log.writing.recovery import PartitionCheckpoints
from kwire.maintenance.new_directory import NewDirectory
from kwire.records import Record, TimestampType, read_batches, write_batch

NOW = 1_760_000_000_000
SMALL = LogConfig(index_interval_bytes=1024, segment_index_bytes=65536, segment_bytes=4096)


def record(value: bytes, timestamp: int = NOW, key: bytes | None = b"k") -> Record:
    """Return a record."""
    return Record(
        offset=0,
        timestamp=timestamp,
        timestamp_type=TimestampType.CREATE_TIME,
        key=key,
        value=value,
        headers=[],
    )


def batch(*values: bytes, timestamp: int = NOW, **fields: Any) -> bytes:
    """Return a batch with these values, one millisecond apart. fields: arguments of write_batch."""
    return write_batch([record(value, timestamp + i) for i, value in enumerate(values)], **fields)


def with_times(directory: Path, times: list[int], *, topic: str = "t", **fields: Any) -> Path:
    """Write a log with a batch for each timestamp. fields: arguments of write_batch."""
    new = NewDirectory(FileSystem(), str(directory), now_ms=NOW, segment_bytes=1 << 20)
    new.create()
    log = new.open((topic, 0), 0)
    log.begin_segment(0)
    for offset, time in enumerate(times):
        log.append(batch(b"%d" % offset, timestamp=time, base_offset=offset, **fields))
    new.finish((topic, 0), len(times))
    new.publish()
    return directory


def numbered(first: int, count: int, size_bytes: int = 20) -> bytes:
    """Return a batch whose values are the expected offsets."""
    return batch(*(b"%d" % i + b"." * (size_bytes - len(b"%d" % i)) for i in range(first, first + count)))


def open_log(
    directory: Path, config: LogConfig = SMALL, *, file_system: FileSystem | None = None, **options: Any
) -> PartitionWriter:
    """Open a partition "t-0" below a directory. options: of open, or fields of PartitionCheckpoints."""
    names = [field.name for field in fields(PartitionCheckpoints)]
    checkpoints = PartitionCheckpoints(**{name: options.pop(name) for name in names if name in options})
    return PartitionWriter.open(
        file_system or FileSystem(),
        str(directory / "t-0"),
        "t",
        0,
        config,
        checkpoints=checkpoints,
        **{"now_ms": NOW, **options},
    )


def records_of(log: PartitionWriter, offset: int | None = None, up_to: int | None = None) -> dict[int, bytes | None]:
    """Return values by offset of fetches from an offset, like a consumer; checksums are verified."""
    at = log.log_start_offset if offset is None else offset
    found: dict[int, bytes | None] = {}
    while True:
        fetched = log.fetch(at, 1500, up_to=up_to)
        batches = list(read_batches(fetched.read()))
        if not batches:
            return found
        for each in batches:
            each.check()
            if not each.is_control:
                found.update((r.offset, r.value) for r in each.records() if r.offset >= at)
        assert batches[-1].next_offset <= fetched.next_offset_bound
        at = max(at, batches[-1].next_offset)


def files_of(directory: Path) -> dict[str, bytes]:
    """Return the files of a directory by name."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def differences(ours: Path, kafka: Path, ignored: Iterable[str] = ()) -> list[str]:
    """Describe the differences of two directories."""
    mine, theirs = files_of(ours), files_of(kafka)
    skip = set(ignored)
    return (
        [f"only Kafka has {name}" for name in sorted(theirs.keys() - mine.keys() - skip)]
        + [f"only we have {name}" for name in sorted(mine.keys() - theirs.keys() - skip)]
        + [
            f"{name}: {len(mine[name])} bytes, Kafka has {len(theirs[name])}"
            for name in sorted(mine.keys() & theirs.keys() - skip)
            if mine[name] != theirs[name]
        ]
    )
