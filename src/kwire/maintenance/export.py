"""Records of logs as Parquet, Arrow IPC or JSON lines, with the columns of Spark's Kafka source.

    TARGET/orders/partition=0/records.parquet       one directory a topic, one file a partition
    TARGET (a file)                                 all partitions one after another

A directory is written as `TARGET.part`, one file as `FILE.part`; they are synced and renamed, so what has its name is
whole. `TARGET.part.json` lists the partitions that are done: an interrupted export continues there.
Memory: one row group.
JSON lines are kcat's envelope: topic, partition, offset, tstype, ts, headers (a flat list), key, payload; keys and
payloads as text, or as base64, since JSON has no bytes.
Source: spec/conventions.md 2 and 5.
"""

from __future__ import annotations

import base64
import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol

from kwire.errors import LogError, OptionError
from kwire.log.relisting import steady
from kwire.maintenance.part_journal import PartJournal, fingerprint
from kwire.records.columns import COLUMNS
from kwire.storage.driver_errors import cause
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import SMALLEST_SHARE, need_space
from kwire.storage.staged_directory import StagedDirectory
from kwire.target_paths import path_inside

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.log.partition_log import Isolation, PartitionLog

__all__ = ["Exported", "Format", "Range", "export_logs"]

Format = Literal["parquet", "arrow", "jsonl"]
SUFFIXES: Mapping[Format, str] = {"parquet": ".parquet", "arrow": ".arrow", "jsonl": ".jsonl"}
ROW_GROUP_BYTES = 64 << 20  # of Arrow memory
ROW_GROUP_ROWS = 1 << 20
TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
TIMESTAMP_TYPES = {-1: "unknown", 0: "create", 1: "logappend"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Which records: offsets in [start_offset, end_offset), times (ms) in [since_ms, until_ms); None is no bound."""

    start_offset: int = 0
    end_offset: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """One partition, exported: where to, how many records, offsets [start_offset, end_offset) that were looked at."""

    topic: str
    partition: int
    path: str
    records: int
    start_offset: int
    end_offset: int


class RecordFile(Protocol):
    """An output file: takes Arrow batches."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""

    def finish(self) -> None:
        """Write what a whole file needs at its end."""

    def abandon(self) -> None:
        """Let go without writing anything more."""


def export_logs(
    logs: Sequence[PartitionLog],
    target: str,
    *,
    shape: Format,
    one_file: bool = False,
    records: Range = Range(),
    isolation: Isolation = "read_uncommitted",
    headers: bool = False,
    as_base64: bool = False,
    progress: Callable[[int], None] = lambda size_bytes: None,
    file_system: FileSystem | None = None,
) -> list[Exported]:
    """Write the records of logs to a directory, or to one file.

    target: a directory, which must be empty or not be there; with one_file a file that is not there. headers: that
    column too. as_base64: keys, payloads and header values of JSON lines. progress: told bytes of logs that are done.
    Raises OptionError on a target that is in use, and for bytes that are no text; CorruptBatch at damage; LogError
    where files cannot be read or written. In `target`.part the partitions that are done by then stay for the next run.
    """
    columns = COLUMNS if headers else tuple(name for name in COLUMNS if name != "headers")
    files = file_system or FileSystem()
    check_target(target, one_file)
    for log in logs:
        partition_file(target, log, shape)
    if records == Range():
        need_space(files, target, sum(log.size_bytes for log in logs) // SMALLEST_SHARE)
    arguments = columns, records, isolation, progress
    if one_file:
        with whole_file(target, files) as stream, open_format(stream, shape, columns, as_base64) as output:
            return [export_partition(log, output, target, *arguments) for log in logs]
    staged = StagedDirectory(files, target)
    part = staged.part
    settings = {
        "kind": "export",
        "as": shape,
        "columns": list(columns),
        "records": dataclasses.asdict(records),
        "isolation": isolation,
        "as_base64": as_base64,
        "logs": sorted({log.store.url for log in logs}),
    }
    journal = PartJournal(files, part, settings)
    staged.create()
    kept = journal.keep({f"{log.topic}-{log.partition}": fingerprint(log) for log in logs})
    done = []
    for log in logs:
        name = f"{log.topic}-{log.partition}"
        if name in kept:
            done.append(Exported(**kept[name]))
            progress(log.size_bytes)
            continue
        path = partition_file(part, log, shape)
        files.make_directory(os.path.dirname(path))
        with whole_file(path, files) as stream, open_format(stream, shape, columns, as_base64) as output:
            exported = export_partition(log, output, path.replace(part, target, 1), *arguments)
        done.append(exported)
        journal.add(name, fingerprint(log), dataclasses.asdict(exported))
    remove_others(files, part, {each.path.replace(target, part, 1) for each in done})
    staged.publish()
    journal.remove()
    return done


def remove_others(files: FileSystem, part: str, paths: set[str]) -> None:
    """Remove what earlier runs exported of partitions that are not in `paths`."""
    for folder, _, names in os.walk(part, topdown=False):
        for name in names:
            if f"{folder}/{name}" not in paths:
                files.remove(f"{folder}/{name}")
        if folder != part and not os.listdir(folder):
            files.remove(folder)


def partition_file(target: str, log: PartitionLog, shape: Format) -> str:
    """The file of a partition below target. Raises LogError for a name that is not a topic's, UnsafePath."""
    if not TOPIC.fullmatch(log.topic):
        raise LogError(f"{log.topic[:300]!r} is not a topic name, so it cannot become a directory", log.url)
    return path_inside(target, f"{log.topic}/partition={log.partition}/records{SUFFIXES[shape]}")


def check_target(target: str, one_file: bool) -> None:
    """Raise OptionError on a target that something is in."""
    if one_file and os.path.lexists(target):
        raise OptionError(f"{target}: there is a file of that name already")
    if not one_file and os.path.lexists(target) and not (os.path.isdir(target) and not os.listdir(target)):
        raise OptionError(f"{target}: not an empty directory")


@contextmanager
def whole_file(path: str, files: FileSystem) -> Iterator[BinaryIO]:
    """A stream to a file that gets its name when it is complete and on the disk. Raises LogError."""
    part = f"{path}.part"
    try:
        with open(part, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        files.remove(part)
        raise LogError(f"cannot be written: {cause(error)}", part) from error
    except BaseException:
        files.remove(part)
        raise
    files.rename(part, path)
    files.sync_directory(os.path.dirname(path))


def export_partition(
    log: PartitionLog,
    output: RecordFile,
    path: str,
    columns: Sequence[str],
    wanted: Range,
    isolation: Isolation,
    progress: Callable[[int], None],
) -> Exported:
    """Write the records of one log that are wanted."""

    def bounds(log: PartitionLog) -> tuple[PartitionLog, int, int]:
        start, end = log.bounds(wanted.start_offset, wanted.end_offset, isolation)
        if wanted.since_ms is not None and wanted.since_ms > 0:
            first = log.offset_for_time(wanted.since_ms, isolation=isolation)
            if first is not None:
                start = max(start, first.offset)  # no record before it is that late
        return log, start, end

    log, start, end = steady(log.reopened(), bounds)
    count, told, size = 0, 0, log.size_bytes
    if start < end:
        for batch in log.read_arrow(start, end, isolation, columns):
            rows = in_time(batch, wanted)
            if rows.num_rows:
                output.write(rows)
                count += rows.num_rows
            passed = batch.column("offset")[-1].as_py() + 1 - start
            now = size * passed // (end - start)
            progress(now - told)
            told = now
    progress(size - told)
    return Exported(
        topic=log.topic,
        partition=log.partition,
        path=path,
        records=count,
        start_offset=start,
        end_offset=max(start, end),
    )


def in_time(batch: pa.RecordBatch, wanted: Range) -> pa.RecordBatch:
    """The rows whose timestamp is wanted."""
    if wanted.since_ms is None and wanted.until_ms is None:
        return batch
    import pyarrow as pa
    import pyarrow.compute as pc

    times = batch.column("timestamp").cast(pa.int64())  # microseconds
    keep = pc.is_valid(times)
    if wanted.since_ms is not None:
        keep = pc.and_(keep, pc.greater_equal(times, wanted.since_ms * 1000))
    if wanted.until_ms is not None:
        keep = pc.and_(keep, pc.less(times, wanted.until_ms * 1000))
    return batch.filter(keep)


@contextmanager
def open_format(stream: BinaryIO, shape: Format, columns: Sequence[str], as_base64: bool) -> Iterator[RecordFile]:
    """The writer of a format, finished where nothing was raised."""
    output: RecordFile = JsonLines(stream, as_base64) if shape == "jsonl" else RowGroups(stream, shape, columns)
    try:
        yield output
        output.finish()
    except BaseException:
        output.abandon()
        raise


class RowGroups:
    """Parquet or Arrow IPC: rows are collected to groups of some size."""

    def __init__(self, stream: BinaryIO, shape: Format, columns: Sequence[str]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        from kwire.records.columns import arrow_schema

        schema = arrow_schema(columns)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._writer: Any
        if shape == "parquet":
            self._writer = parquet.ParquetWriter(
                stream,
                schema,
                compression="zstd",
                use_dictionary=["topic", "partition", "timestampType", "key"],
                column_encoding={"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
                coerce_timestamps="us",
            )
        else:
            self._writer = pa.ipc.new_file(stream, schema, options=pa.ipc.IpcWriteOptions(compression="zstd"))

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= ROW_GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        import pyarrow as pa

        if self._waiting:
            table = pa.Table.from_batches(self._waiting).combine_chunks()
            self._writer.write_table(table, max(table.num_rows, 1))
        self._waiting, self._rows, self._bytes = [], 0, 0

    def finish(self) -> None:
        self._write_group()
        self._writer.close()

    def abandon(self) -> None:
        self._waiting.clear()
        self._writer.is_open = False  # or pyarrow's ParquetWriter tries to write its footer when it is collected


class JsonLines:
    """kcat's JSON envelope, a line a record."""

    def __init__(self, stream: BinaryIO, as_base64: bool) -> None:
        import msgspec

        self._stream, self._encode = stream, msgspec.json.Encoder().encode
        self._text = as_base64_text if as_base64 else as_text

    def write(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa

        place = batch.schema.get_field_index("timestamp")
        rows = batch.set_column(place, "timestamp", batch.column("timestamp").cast(pa.int64())).to_pylist()
        self._stream.write(b"".join(self._encode(self._line(row)) + b"\n" for row in rows))

    def _line(self, row: dict[str, Any]) -> dict[str, Any]:
        time_us = row["timestamp"]
        line = {
            "topic": row["topic"],
            "partition": row["partition"],
            "offset": row["offset"],
            "tstype": TIMESTAMP_TYPES[row["timestampType"]],
            "ts": None if time_us is None else time_us // 1000,
        }
        if "headers" in row:
            line["headers"] = [
                each for h in row["headers"] or () for each in (h["key"], self._text(h["value"], row, "header"))
            ]
        return line | {"key": self._text(row["key"], row, "key"), "payload": self._text(row["value"], row, "value")}

    def finish(self) -> None:
        pass

    def abandon(self) -> None:
        pass


def as_base64_text(data: bytes | None, row: dict[str, Any], what: str) -> str | None:
    """Bytes in base64; null stays null."""
    return None if data is None else base64.b64encode(data).decode()


def as_text(data: bytes | None, row: dict[str, Any], what: str) -> str | None:
    """Bytes as UTF-8; raises OptionError, naming the record, where they are none."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        where = f"{row['topic']}-{row['partition']} offset {row['offset']}"
        raise OptionError(f"{where}: the {what} is no UTF-8 text: use base64") from None
