"""Build a log directory from the rows of Parquet files.

    DIR.part    the directory while it is written; renamed to DIR when everything is durable
    DIR         partitions, topic ids, checkpoints, meta.properties: a log directory after a clean shutdown

Rows become batches of magic 2 in offset order. Offsets are kept, with their gaps, or records are renumbered from 0.
LogAppendTime is kept: consecutive rows with the same append time share batches. Parquet files do not record
transactions, so all records count as committed.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire.errors import EncodeError, LogError, OptionError
from kwire.identifiers import TopicPartition, new_uuid
from kwire.maintenance.convert.directory import finish_directory, name_of
from kwire.maintenance.convert.new_log import LARGEST_SEGMENT_BYTES, NewLog
from kwire.maintenance.export import whole_file
from kwire.maintenance.restore.ordered_rows import MAX_SORT_BYTES, rows_in_order
from kwire.maintenance.restore.parquet_input import TAKEN, open_input
from kwire.records import ColumnWriter, Compression, RejectedRecords, TimestampType
from kwire.records.column_writer import ColumnWriterOptions
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import SMALLEST_SHARE, need_space
from kwire.storage.meta_properties import MetaProperties
from kwire.storage.staged_directory import StagedDirectory, check_target
from kwire.target_paths import path_inside

__all__ = ["RestoreOptions", "RestoredPartition", "restore_directory"]

Int64Array = npt.NDArray[np.int64]

BATCH_BYTES = 128 << 10  # of a Kafka batch before compression
WAITING_BYTES = 4 << 20  # rows of one partition buffered before they are written
ALL_WAITING_BYTES = 256 << 20  # rows of all partitions buffered before they are written
DEFAULT_SEGMENT_BYTES = 1 << 30
SMALLEST_SEGMENT_BYTES = 16 << 10
LEADER_EPOCH = 0
OFFSET_TABLE = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("old_offset", pa.int64(), nullable=False),
        pa.field("new_offset", pa.int64(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredPartition:
    """A restored partition with records in [log_start_offset, log_end_offset)."""

    topic: str
    partition: int
    records: int
    log_start_offset: int
    log_end_offset: int
    size_bytes: int
    topic_id: uuid.UUID

    @property
    def offsets(self) -> tuple[int, int]:
        """Log start and log end offset."""
        return self.log_start_offset, self.log_end_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """Options of a restore.

    topic: topic of rows without one. codec, level: compression of the batches. segment_bytes: segment size.
    new_offsets: number the records from 0 on, ignoring the offsets of the files. offset_table: Parquet file to write
    with new_offsets: the ranges of old and new offsets. topic_ids: ids of topics that the target cluster knows; others
    are random. only: partitions to restore; default: all. node_id, cluster_id: for meta.properties; cluster_id is
    random by default. max_sort_bytes: memory for sorting. storage_options: for the URLs of the files.
    """

    topic: str | None = None
    codec: Compression = Compression.NONE
    level: int | None = None
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    new_offsets: bool = False
    offset_table: str | None = None
    topic_ids: Mapping[str, uuid.UUID] = field(default_factory=dict)
    only: Collection[TopicPartition] | None = None
    node_id: int = 1
    cluster_id: str | None = None
    max_sort_bytes: int = MAX_SORT_BYTES
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not SMALLEST_SEGMENT_BYTES <= self.segment_bytes <= LARGEST_SEGMENT_BYTES:
            raise OptionError(
                f"segment_bytes {self.segment_bytes}: expected {SMALLEST_SEGMENT_BYTES} to {LARGEST_SEGMENT_BYTES}"
            )
        if self.offset_table is not None and (not self.new_offsets or os.path.lexists(self.offset_table)):
            what = "already exists" if self.new_offsets else "an offset table requires new offsets"
            raise OptionError(f"{self.offset_table}: {what}")
        ColumnWriter(**self.writer)  # refuses a level that the codec does not have

    @property
    def writer(self) -> ColumnWriterOptions:
        """Options of the batch writers."""
        return ColumnWriterOptions(
            compression=self.codec, level=self.level, batch_size=min(BATCH_BYTES, self.segment_bytes // 2)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """How rows become batches. has_offsets: whether the files have offsets; keeps_offsets: whether they are kept."""

    has_offsets: bool
    keeps_offsets: bool
    writer: ColumnWriterOptions


@dataclass(slots=True, kw_only=True)
class Target:
    """A partition being written. ranges: (old, new, count) of offsets, where records are renumbered."""

    key: TopicPartition
    log: NewLog
    topic_id: uuid.UUID
    first_offset: int
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_bytes: int = 0
    records: int = 0
    ranges: list[list[int]] = field(default_factory=list)


def restore_directory(
    inputs: Sequence[str],
    directory: str,
    options: RestoreOptions | None = None,
    *,
    now_ms: int,
    progress: Callable[[int], None] = lambda rows: None,
    file_system: FileSystem | None = None,
) -> list[RestoredPartition]:
    """Build a log directory from Parquet files, directories, globs or URLs.

    directory: missing or empty. progress: called with numbers of rows read.
    Raises OptionError for a target in use or missing columns; LogError, naming file and row group, for rows that a log
    cannot hold, duplicate offsets, and files that cannot be read or written. No directory is created on an error.
    """
    options = options or RestoreOptions()
    files = file_system or FileSystem()
    check_target(directory)
    staged = StagedDirectory(files, directory)
    if staged.exists:
        raise OptionError(f"{staged.part}: left by an interrupted run; remove it")
    source = open_input(inputs, options.topic, options.storage_options)
    if options.offset_table is not None and not source.has_offsets:
        raise OptionError(f"{options.offset_table}: an offset table requires files with offsets")
    pieces = {key: found for key, found in source.pieces().items() if options.only is None or key in options.only}
    if not pieces:
        raise OptionError("the files have no rows")
    rows = Rows(
        has_offsets=source.has_offsets,
        keeps_offsets=source.has_offsets and not options.new_offsets,
        writer=options.writer,
    )
    if options.only is None:
        need_space(files, staged.part, source.size_bytes // SMALLEST_SHARE)
    staged.create()
    targets: dict[TopicPartition, Target] = {}
    try:
        ids = {name: options.topic_ids.get(name) or new_uuid() for name, _ in pieces}
        for key in sorted(pieces):
            first = min(piece.low for piece in pieces[key]) if rows.keeps_offsets else 0
            log = NewLog(
                files,
                path_inside(staged.part, name_of(key)),
                *key,
                first_offset=first,
                now_ms=now_ms,
                segment_bytes=options.segment_bytes,
                topic_id=ids[key[0]],
            )
            targets[key] = Target(key=key, log=log, topic_id=ids[key[0]], first_offset=first)
        ordered = rows_in_order(source, pieces, max_sort_bytes=options.max_sort_bytes)
        write_all(targets, ordered, rows, progress)
        done = [finish(target, rows) for target in targets.values()]
        if options.offset_table is not None:
            write_offset_table(targets.values(), options.offset_table, files)
        MetaProperties.new(options.node_id, options.cluster_id).write(files, staged.part, now_ms)
        finish_directory(staged, {(each.topic, each.partition): each.offsets for each in done})
    except BaseException:  # Ctrl-C too: the same call can be repeated
        for target in targets.values():
            target.log.abandon()
        staged.discard()
        raise
    return done


def write_all(
    targets: Mapping[TopicPartition, Target],
    ordered: Iterable[tuple[TopicPartition, pa.RecordBatch]],
    rows: Rows,
    progress: Callable[[int], None],
) -> None:
    """Buffer the rows of each partition and write them as batches, within ALL_WAITING_BYTES."""
    total = 0
    for key, batch in ordered:
        if key not in targets:
            continue
        target = targets[key]
        target.waiting.append(batch)
        target.waiting_bytes += batch.nbytes
        total += batch.nbytes
        progress(batch.num_rows)
        if target.waiting_bytes >= WAITING_BYTES:
            total -= target.waiting_bytes
            flush(target, rows)
        if total >= ALL_WAITING_BYTES:
            for each in targets.values():
                flush(each, rows)
            total = 0


def finish(target: Target, rows: Rows) -> RestoredPartition:
    """Write the remaining rows and close the log."""
    flush(target, rows)
    size, end = target.log.size_bytes, target.log.next_offset
    target.log.finish(log_start_offset=target.first_offset, log_end_offset=end)
    return RestoredPartition(
        topic=target.key[0],
        partition=target.key[1],
        topic_id=target.topic_id,
        records=target.records,
        size_bytes=size,
        log_start_offset=target.first_offset,
        log_end_offset=end,
    )


def flush(target: Target, rows: Rows) -> None:
    """Write the collected rows as batches."""
    if not target.waiting:
        return
    names = ["offset", *TAKEN] if rows.has_offsets else list(TAKEN)
    batches = [batch.select([name for name in names if name in batch.schema.names]) for batch in target.waiting]
    target.waiting, target.waiting_bytes = [], 0
    schema = pa.unify_schemas([batch.schema for batch in batches])
    table = pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="default")
    assert table.schema.names == schema.names
    for batch in table.combine_chunks().to_batches():
        first = target.log.next_offset if not rows.keeps_offsets else 0
        if not rows.keeps_offsets:
            new = np.arange(first, first + batch.num_rows, dtype=np.int64)
            if rows.has_offsets:
                note_ranges(target.ranges, batch.column("offset").cast(pa.int64()).to_numpy(), first)
                batch = batch.drop_columns(["offset"])
            batch = batch.append_column("offset", pa.array(new))
        elif batch.schema.field("offset").type != pa.int64():
            at = batch.schema.get_field_index("offset")
            batch = batch.set_column(at, "offset", batch.column("offset").cast(pa.int64()))
        write_rows(target, batch, rows.writer)
        target.records += batch.num_rows


def note_ranges(ranges: list[list[int]], old: Int64Array, first: int) -> None:
    """Add the runs of consecutive old offsets: [old, new, count]."""
    for run in np.split(old, np.flatnonzero(np.diff(old) != 1) + 1):
        if ranges and ranges[-1][0] + ranges[-1][2] == run[0] and ranges[-1][1] + ranges[-1][2] == first:
            ranges[-1][2] += len(run)
        else:
            ranges.append([int(run[0]), first, len(run)])
        first += len(run)


def write_rows(target: Target, batch: pa.RecordBatch, options: ColumnWriterOptions) -> None:
    """Append rows with offsets to the log."""
    for rows, append_time in runs_of_time(batch):
        kind = TimestampType.CREATE_TIME if append_time is None else TimestampType.LOG_APPEND_TIME
        of_run = ColumnWriterOptions(
            keep_offsets=True,
            base_offset=target.log.next_offset,
            timestamp_type=kind,
            log_append_time_ms=-1 if append_time is None else append_time,
            partition_leader_epoch=LEADER_EPOCH,
        )
        writer = ColumnWriter(**(options | of_run))
        try:
            for data in writer.write(rows):
                target.log.append(data)
        except RejectedRecords as error:
            raise LogError(f"{target.key[0]}-{target.key[1]}: {error.what}") from error
        except EncodeError as error:
            raise LogError(
                f"{target.key[0]}-{target.key[1]}, from offset {target.log.next_offset} on: {error}"
            ) from error


def runs_of_time(batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, int | None]]:
    """Split rows into runs that can share a batch, with their append time in ms, None for CreateTime."""
    if "timestampType" not in batch.schema.names or "timestamp" not in batch.schema.names:
        yield batch, None
        return
    kinds = batch.column("timestampType").fill_null(0).cast(pa.int64()).to_numpy() == 1
    if not kinds.any():
        yield batch, None
        return
    column = batch.column("timestamp")
    times = column if pa.types.is_integer(column.type) else column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    ms = np.where(kinds, times.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False), -2)
    start = 0
    for end in [*(np.flatnonzero(np.diff(ms)) + 1).tolist(), batch.num_rows]:
        yield batch.slice(start, end - start), int(ms[start]) if kinds[start] else None
        start = end


def write_offset_table(targets: Iterable[Target], path: str, files: FileSystem) -> None:
    """Write the offset ranges of all partitions. Raises LogError."""
    from pyarrow import parquet

    rows = [(target.key, each) for target in targets for each in target.ranges]
    columns = [
        [key[0] for key, _ in rows],
        [key[1] for key, _ in rows],
        *([each[i] for _, each in rows] for i in range(3)),
    ]
    arrays = [pa.array(values, schema.type) for values, schema in zip(columns, OFFSET_TABLE, strict=True)]
    with whole_file(path, files) as stream:
        parquet.write_table(pa.Table.from_arrays(arrays, schema=OFFSET_TABLE), stream, compression="zstd")
