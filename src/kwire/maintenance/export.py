"""Export of records to Parquet, Arrow IPC or JSON lines, with the columns of Spark's Kafka source.

    TARGET/orders/partition=0/records.parquet       one directory per topic, one file per partition
    TARGET (a file)                                 all partitions

A directory is written as `TARGET.part`, a file as `FILE.part`, then synced and renamed when complete.
`TARGET.part.json` lists the finished partitions, to resume an interrupted export. Memory: one row group.
JSON lines are kcat's envelope: topic, partition, offset, tstype, ts, headers (a flat list), key, payload; keys and
payloads as text or base64.
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
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from kwire.errors import LogError, OptionError
from kwire.extras import needing
from kwire.log.reading.relisting import retry_on_change
from kwire.maintenance.part_journal import PartJournal
from kwire.records.columns.reader import COLUMNS
from kwire.storage.driver_errors import cause
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import SMALLEST_SHARE, need_space
from kwire.storage.staged_directory import StagedDirectory, check_empty
from kwire.target_paths import path_inside

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.log.reading.readable_log import ReadableLog
    from kwire.log.reading.runs import Isolation

__all__ = ["ExportOptions", "Exported", "Format", "Range", "export_logs"]

Format = Literal["parquet", "arrow", "jsonl"]
SUFFIXES: Mapping[Format, str] = {"parquet": ".parquet", "arrow": ".arrow", "jsonl": ".jsonl"}
ROW_GROUP_BYTES = 64 << 20  # of Arrow memory
ROW_GROUP_ROWS = 1 << 20
LARGEST_US = (1 << 63) - 1
TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
TIMESTAMP_TYPES = {-1: "unknown", 0: "create", 1: "logappend"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Selected records: offsets in [start_offset, end_offset), timestamps in [since_ms, until_ms); None: unbounded."""

    start_offset: int = 0
    end_offset: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Options of an export.

    headers: include the column. as_base64: keys, payloads and header values of JSON lines in base64. threads: that
    decompress and decode a log. skip_missing: go on after offsets whose segment is missing, with a warning.
    """

    format: Format = "parquet"
    records: Range = Range()
    isolation: Isolation = "read_uncommitted"
    headers: bool = False
    as_base64: bool = False
    threads: int = 1
    skip_missing: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The exported columns."""
        return COLUMNS if self.headers else tuple(name for name in COLUMNS if name != "headers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Result of the export of a partition. start_offset, end_offset: the offsets read, [start, end)."""

    topic: str
    partition: int
    path: str
    records: int
    start_offset: int
    end_offset: int


def export_logs(
    logs: Sequence[ReadableLog],
    target: str,
    options: ExportOptions = ExportOptions(),
    *,
    one_file: bool = False,
    progress: Callable[[int], None] = lambda size_bytes: None,
    file_system: FileSystem | None = None,
) -> list[Exported]:
    """Write the records of logs to a directory, or to one file.

    target: an empty or missing directory; with one_file a missing file. progress: called with bytes of finished logs.
    Raises OptionError if the target is not empty, or for bytes that are not text; CorruptBatch for damage; LogError if
    files cannot be read or written. Finished partitions stay in `target`.part for the next run.
    """
    files = file_system or FileSystem()
    if not one_file:
        check_empty(target)
    elif os.path.lexists(target):
        raise OptionError(f"{target}: file exists")
    for log in logs:
        partition_file(target, log, options.format)
    if options.records == Range():
        need_space(files, target, sum(log.size_bytes or 0 for log in logs) // SMALLEST_SHARE)
    if one_file:
        with whole_file(target, files) as stream, open_format(stream, options) as output:
            return [export_partition(log, output, target, options, progress) for log in logs]
    staged = StagedDirectory(files, target)
    part = staged.part
    settings = {
        "kind": "export",
        "as": options.format,
        "columns": list(options.columns),
        "records": dataclasses.asdict(options.records),
        "isolation": options.isolation,
        "as_base64": options.as_base64,
        "logs": sorted({log.source_url for log in logs}),
    }
    journal = PartJournal(files, part, settings)
    staged.create()
    kept = journal.keep({f"{log.topic}-{log.partition}": log.fingerprint() for log in logs})
    done = []
    for log in logs:
        name = f"{log.topic}-{log.partition}"
        if name in kept:
            done.append(Exported(**kept[name]))
            progress(log.size_bytes or 0)
            continue
        path = partition_file(part, log, options.format)
        files.make_directory(os.path.dirname(path))
        with whole_file(path, files) as stream, open_format(stream, options) as output:
            exported = export_partition(log, output, path.replace(part, target, 1), options, progress)
        done.append(exported)
        journal.add(name, log.fingerprint(), dataclasses.asdict(exported))
    remove_others(files, part, {each.path.replace(target, part, 1) for each in done})
    staged.publish()
    journal.remove()
    return done


def remove_others(files: FileSystem, part: str, paths: set[str]) -> None:
    """Remove partitions of earlier runs that are not in `paths`."""
    for folder, _, names in os.walk(part, topdown=False):
        for name in names:
            if f"{folder}/{name}" not in paths:
                files.remove(f"{folder}/{name}")
        if folder != part and not os.listdir(folder):
            files.remove(folder)


def partition_file(target: str, log: ReadableLog, format: Format) -> str:
    """Return the file of a partition below target. Raises LogError for an invalid topic name, UnsafePath."""
    if not TOPIC.fullmatch(log.topic):
        raise LogError(f"{log.topic[:300]!r} is not a valid topic name for a directory", log.url)
    return path_inside(target, f"{log.topic}/partition={log.partition}/records{SUFFIXES[format]}")


@contextmanager
def whole_file(path: str, files: FileSystem) -> Iterator[BinaryIO]:
    """Open a stream to a file that is renamed when it is complete and on disk. Raises LogError."""
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
    log: ReadableLog,
    output: RowGroups | JsonLines,
    path: str,
    options: ExportOptions,
    progress: Callable[[int], None],
) -> Exported:
    """Write the selected records of one log."""
    wanted = options.records

    def bounds(log: ReadableLog) -> tuple[ReadableLog, int, int]:
        start, end = log.bounds(wanted.start_offset, wanted.end_offset, options.isolation)
        if wanted.since_ms is not None and wanted.since_ms > 0:
            first = log.offset_for_time(wanted.since_ms, isolation=options.isolation)
            if first is not None:
                start = max(start, first.offset)  # all earlier records are older
        return log, start, end

    log, start, end = retry_on_change(log.reopened(), bounds)
    count, reported, size = 0, 0, log.size_bytes or 0
    if start < end:
        rows_read = log.read_arrow(
            start, end, options.isolation, options.columns, threads=options.threads, skip_missing=options.skip_missing
        )
        for batch in rows_read:
            rows = in_time(batch, wanted)
            if rows.num_rows:
                output.write(rows)
                count += rows.num_rows
            passed = batch.column("offset")[-1].as_py() + 1 - start
            now = size * passed // (end - start)
            progress(now - reported)
            reported = now
    progress(size - reported)
    return Exported(
        topic=log.topic,
        partition=log.partition,
        path=path,
        records=count,
        start_offset=start,
        end_offset=max(start, end),
    )


def in_time(batch: pa.RecordBatch, wanted: Range) -> pa.RecordBatch:
    """Return the rows with selected timestamps. A null one is after all times of the column."""
    if wanted.since_ms is None and wanted.until_ms is None:
        return batch
    with needing("export of a time range"):
        import pyarrow as pa
        import pyarrow.compute as pc

    times = pc.fill_null(batch.column("timestamp").cast(pa.int64()), LARGEST_US)
    if wanted.since_ms is not None:
        keep = pc.greater_equal(times, min(wanted.since_ms * 1000, LARGEST_US))
        batch, times = batch.filter(keep), times.filter(keep)
    if wanted.until_ms is not None:
        batch = batch.filter(pc.less(times, min(wanted.until_ms * 1000, LARGEST_US)))
    return batch


@contextmanager
def open_format(stream: BinaryIO, options: ExportOptions) -> Iterator[RowGroups | JsonLines]:
    """Open the writer of a format; it is finished unless an error is raised."""
    output = JsonLines(stream, options.as_base64) if options.format == "jsonl" else RowGroups(stream, options)
    try:
        yield output
        output.finish()
    except BaseException:
        output.abandon()
        raise


class RowGroups:
    """Parquet or Arrow IPC file; rows are collected into row groups."""

    def __init__(self, stream: BinaryIO, options: ExportOptions) -> None:
        with needing(f"export as {options.format}"):
            import pyarrow as pa
            from pyarrow import parquet

            from kwire.records.columns.reader import arrow_schema

        schema = arrow_schema(options.columns)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._writer: Any
        if options.format == "parquet":
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
        """Write rows."""
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
        """Write the end of the file."""
        self._write_group()
        self._writer.close()

    def abandon(self) -> None:
        """Close without writing anything more."""
        self._waiting.clear()
        self._writer.is_open = False  # otherwise pyarrow's ParquetWriter writes its footer when it is garbage collected


class JsonLines:
    """JSON lines in kcat's envelope."""

    def __init__(self, stream: BinaryIO, as_base64: bool) -> None:
        import msgspec

        self._stream, self._encode = stream, msgspec.json.Encoder().encode
        self._text = as_base64_text if as_base64 else as_text

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
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
        """Do nothing: every line is complete."""

    def abandon(self) -> None:
        """Do nothing."""


def as_base64_text(data: bytes | None, row: dict[str, Any], what: str) -> str | None:
    """Return bytes in base64; null stays null."""
    return None if data is None else base64.b64encode(data).decode()


def as_text(data: bytes | None, row: dict[str, Any], what: str) -> str | None:
    """Return bytes as UTF-8. Raises OptionError with the record if they are not."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        where = f"{row['topic']}-{row['partition']} offset {row['offset']}"
        raise OptionError(f"{where}: {what} is not UTF-8 text; use base64") from None
