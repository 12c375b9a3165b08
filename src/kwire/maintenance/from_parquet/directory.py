"""Build a log directory from the rows of Parquet files.

Rows become batches of magic 2 in offset order. Offsets are kept, with their gaps, or records are renumbered from 0.
LogAppendTime is kept: consecutive rows with the same append time share batches. Parquet files do not record
transactions, so all records count as committed.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire.errors import EncodeError, LogError, OptionError, did_you_mean
from kwire.identifiers import TopicPartition
from kwire.log.files.file_names import LARGEST_SEGMENT_BYTES, SMALLEST_SEGMENT_BYTES
from kwire.maintenance.export import whole_file
from kwire.maintenance.from_parquet.ordered_rows import rows_in_order
from kwire.maintenance.from_parquet.parquet_input import open_input
from kwire.maintenance.new_directory import NewDirectory, WrittenPartition, name_of
from kwire.maintenance.new_log import NewLog
from kwire.maintenance.offset_spans import MAX_SORT_BYTES
from kwire.maintenance.row_batches import TAKEN, batch_options, encode_rows
from kwire.records import ColumnWriter, Compression, RejectedRecords
from kwire.records.columns.writer import ColumnWriterOptions
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import SMALLEST_SHARE

__all__ = ["FromParquetOptions", "check_topic_ids", "restore_from_parquet"]

Int64Array = npt.NDArray[np.int64]

WAITING_BYTES = 4 << 20  # rows of one partition buffered before they are written
ALL_WAITING_BYTES = 256 << 20  # rows of all partitions buffered before they are written
DEFAULT_SEGMENT_BYTES = 1 << 30
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
class FromParquetOptions:
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
        return batch_options(self.codec, self.level, self.segment_bytes)


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
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_bytes: int = 0
    records: int = 0
    ranges: list[list[int]] = field(default_factory=list)


def restore_from_parquet(
    inputs: Sequence[str],
    directory: str,
    options: FromParquetOptions | None = None,
    *,
    now_ms: int,
    progress: Callable[[int], None] = lambda rows: None,
    file_system: FileSystem | None = None,
) -> list[WrittenPartition]:
    """Build a log directory from Parquet files, directories, globs or URLs.

    directory: missing or empty. progress: called with numbers of rows read.
    Raises OptionError for a target in use or missing columns; LogError, naming file and row group, for rows that a log
    cannot hold, duplicate offsets, and files that cannot be read or written. No directory is created on an error.
    """
    options = options or FromParquetOptions()
    files = file_system or FileSystem()
    new = NewDirectory(
        files, directory, now_ms=now_ms, segment_bytes=options.segment_bytes, topic_ids=options.topic_ids
    )
    source = open_input(inputs, options.topic, options.storage_options)
    if options.offset_table is not None and not source.has_offsets:
        raise OptionError(f"{options.offset_table}: an offset table requires files with offsets")
    pieces = {key: parts for key, parts in source.pieces().items() if options.only is None or key in options.only}
    if not pieces:
        raise OptionError("the files have no rows")
    if options.only is None:
        check_topic_ids(options.topic_ids, {topic for topic, _ in pieces})
    rows = Rows(
        has_offsets=source.has_offsets,
        keeps_offsets=source.has_offsets and not options.new_offsets,
        writer=options.writer,
    )
    new.create(source.size_bytes // SMALLEST_SHARE if options.only is None else 0)
    targets: dict[TopicPartition, Target] = {}
    try:
        for key in sorted(pieces):
            first = min(piece.low for piece in pieces[key]) if rows.keeps_offsets else 0
            targets[key] = Target(key=key, log=new.open(key, first))
        ordered = rows_in_order(source, pieces, max_sort_bytes=options.max_sort_bytes)
        write_all(targets, ordered, rows, progress)
        for target in targets.values():
            flush(target, rows)
            new.finish(target.key, target.records)
        if options.offset_table is not None:
            write_offset_table(targets.values(), options.offset_table, files)
        return new.publish(node_id=options.node_id, cluster_id=options.cluster_id)
    except BaseException:  # Ctrl-C too: the same call can be repeated
        new.discard()
        raise


def check_topic_ids(topic_ids: Mapping[str, uuid.UUID], topics: Collection[str]) -> None:
    """Raise OptionError for an id of a topic that the files do not have."""
    for name in topic_ids:
        if name not in topics:
            raise OptionError(
                f"topic id of '{name}': the files have no such topic{did_you_mean(name, topics)}; topics: "
                f"{', '.join(sorted(topics))[:500]}"
            )


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
    at_end = ColumnWriterOptions(keep_offsets=True, base_offset=target.log.next_offset)
    try:
        for data in encode_rows(batch, options | at_end):
            target.log.append(data)
    except RejectedRecords as error:
        raise LogError(f"{name_of(target.key)}: {error.what}") from error
    except EncodeError as error:
        raise LogError(f"{name_of(target.key)}, from offset {target.log.next_offset} on: {error}") from error


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
