"""A log directory built from the rows of Parquet files, through the writable log.

    DIR.part    grows; renamed to DIR when everything is on the disk
    DIR         partitions, their topic ids, checkpoints, meta.properties: what a broker finds after a clean stop

Rows become batches of magic 2 in the order of their offsets; offsets stay, gaps too, or are given anew from 0 on. Rows
with LogAppendTime keep it: those of one time that follow one another share batches. Of transactions nothing is known in
a Parquet file, so everything is as if it had been committed.
"""

from __future__ import annotations

import datetime
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kwire.errors import EncodeError, LogError, OptionError
from kwire.identifiers import TopicPartition, new_uuid, render_uuid
from kwire.maintenance.convert.directory import check_target, finish_directory, name_of
from kwire.maintenance.convert.new_log import LARGEST_SEGMENT_BYTES, NewLog, remove_tree
from kwire.maintenance.export import whole_file
from kwire.maintenance.restore.ordered_rows import MAX_SORT_BYTES, rows_in_order
from kwire.maintenance.restore.parquet_input import TAKEN, open_input
from kwire.records import ColumnWriter, Compression, RejectedRecords, TimestampType
from kwire.storage.checkpoints import META_PROPERTIES, render_properties
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import SMALLEST_SHARE, need_space
from kwire.target_paths import path_inside

__all__ = ["RestoredPartition", "restore_directory"]

BATCH_BYTES = 128 << 10  # of a Kafka batch before compression
WAITING_BYTES = 4 << 20  # rows of one partition that are put together before they become batches
ALL_WAITING_BYTES = 256 << 20  # and those of all partitions
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
    """One partition, restored: its records are in [log_start_offset, log_end_offset)."""

    topic: str
    partition: int
    topic_id: uuid.UUID
    records: int
    size_bytes: int
    log_start_offset: int
    log_end_offset: int


@dataclass(slots=True, kw_only=True)
class Target:
    """A partition that is being written. ranges: (old, new, count) of offsets where they are given anew."""

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
    *,
    now_ms: int,
    topic: str | None = None,
    codec: Compression = Compression.NONE,
    level: int | None = None,
    segment_bytes: int = DEFAULT_SEGMENT_BYTES,
    new_offsets: bool = False,
    offset_table: str | None = None,
    topic_ids: Mapping[str, uuid.UUID] | None = None,
    only: Collection[TopicPartition] | None = None,
    node_id: int = 1,
    cluster_id: str | None = None,
    max_sort_bytes: int = MAX_SORT_BYTES,
    progress: Callable[[int], None] = lambda rows: None,
    file_system: FileSystem | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> list[RestoredPartition]:
    """Build a log directory from Parquet files, directories, globs or URLs.

    topic: of rows that do not name one. new_offsets: number records from 0 on although the files have offsets;
    offset_table: Parquet file to make then, with the ranges that went from old to new offsets. topic_ids: of topics
    that a cluster knows already; others get a random one. only: partitions to restore, by default all.
    node_id, cluster_id: for meta.properties.
    progress: told rows that were read.
    Raises OptionError on a target in use or columns that are missing; LogError, naming file and row group, for rows
    that no log can have, offsets that are there twice, files that cannot be read or written. DIR is then not there.
    """
    files = file_system or FileSystem()
    if not SMALLEST_SEGMENT_BYTES <= segment_bytes <= LARGEST_SEGMENT_BYTES:
        raise OptionError(f"segment_bytes {segment_bytes}: {SMALLEST_SEGMENT_BYTES} to {LARGEST_SEGMENT_BYTES}")
    check_target(directory)
    part = f"{directory}.part"
    if files.exists(part):
        raise OptionError(f"{part}: left by a run that was interrupted; remove it")
    if offset_table is not None and (not new_offsets or os.path.lexists(offset_table)):
        raise OptionError(f"{offset_table}: " + ("is there already" if new_offsets else "goes with new offsets"))
    source = open_input(inputs, topic, storage_options or {})
    if offset_table is not None and not source.has_offsets:
        raise OptionError("the files have no offsets that could be translated")
    pieces = {key: found for key, found in source.pieces().items() if only is None or key in only}
    if not pieces:
        raise OptionError("the files have no rows")
    keep = source.has_offsets and not new_offsets
    ids = {name: (topic_ids or {}).get(name) or random_topic_id() for name, _ in pieces}
    settings: dict[str, Any] = {
        "compression": codec,
        "level": level,
        "batch_size": min(BATCH_BYTES, segment_bytes // 2),
    }
    ColumnWriter(**settings)  # refuses a level that the codec has not, before anything is written
    if only is None:
        need_space(files, part, source.size_bytes // SMALLEST_SHARE)
    files.make_directory(part)
    targets: dict[TopicPartition, Target] = {}
    try:
        for key in sorted(pieces):
            first = min(piece.low for piece in pieces[key]) if keep else 0
            log = NewLog(
                files,
                path_inside(part, name_of(key)),
                *key,
                first_offset=first,
                now_ms=now_ms,
                segment_bytes=segment_bytes,
                topic_id=ids[key[0]],
            )
            targets[key] = Target(key=key, log=log, topic_id=ids[key[0]], first_offset=first)
        total = 0
        for key, batch in rows_in_order(source, pieces, max_sort_bytes=max_sort_bytes):
            if key not in targets:
                continue
            target = targets[key]
            target.waiting.append(batch)
            target.waiting_bytes += batch.nbytes
            total += batch.nbytes
            progress(batch.num_rows)
            if target.waiting_bytes >= WAITING_BYTES:
                total -= target.waiting_bytes
                flush(target, keep, source.has_offsets, settings)
            if total >= ALL_WAITING_BYTES:
                for each in targets.values():
                    flush(each, keep, source.has_offsets, settings)
                total = 0
        done = [finish(target, keep, source.has_offsets, settings) for target in targets.values()]
        if offset_table is not None:
            write_offset_table(targets.values(), offset_table, files)
        write_properties(files, part, node_id, cluster_id, now_ms)
        finish_directory(files, part, directory, done, {})
    except BaseException:  # Ctrl-C too: the same call can be made again
        for target in targets.values():
            target.log.abandon()
        remove_tree(files, part)
        raise
    return done


def write_properties(files: FileSystem, directory: str, node_id: int, cluster_id: str | None, now_ms: int) -> None:
    """Write meta.properties. cluster_id: None for a random one."""
    properties = {
        "version": "1",
        "cluster.id": cluster_id or render_uuid(new_uuid()),
        "node.id": str(node_id),
        "directory.id": render_uuid(new_uuid()),
    }
    written = datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC)
    files.write_atomically(f"{directory}/{META_PROPERTIES}", render_properties(properties, written))


def random_topic_id() -> uuid.UUID:
    """A random id; as Kafka's, its text does not begin with a dash."""
    while (value := uuid.uuid4()).bytes[0] >> 2 == 62:  # '-' in URL-safe base64
        pass
    return value


def finish(target: Target, keep: bool, has_offsets: bool, settings: Mapping[str, Any]) -> RestoredPartition:
    """Write what waits, and close."""
    flush(target, keep, has_offsets, settings)
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


def flush(target: Target, keep: bool, has_offsets: bool, settings: Mapping[str, Any]) -> None:
    """Write the rows that wait as batches."""
    if not target.waiting:
        return
    names = ["offset", *TAKEN] if has_offsets else list(TAKEN)
    batches = [batch.select([name for name in names if name in batch.schema.names]) for batch in target.waiting]
    target.waiting, target.waiting_bytes = [], 0
    schema = pa.unify_schemas([batch.schema for batch in batches])
    table = pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="default")
    assert table.schema.names == schema.names
    for batch in table.combine_chunks().to_batches():
        first = target.log.next_offset if not keep else 0
        if not keep:
            new = np.arange(first, first + batch.num_rows, dtype=np.int64)
            if has_offsets:
                note_ranges(target.ranges, batch.column("offset").cast(pa.int64()).to_numpy(), first)
                batch = batch.drop_columns(["offset"])
            batch = batch.append_column("offset", pa.array(new))
        elif batch.schema.field("offset").type != pa.int64():
            at = batch.schema.get_field_index("offset")
            batch = batch.set_column(at, "offset", batch.column("offset").cast(pa.int64()))
        write_rows(target, batch, settings)
        target.records += batch.num_rows


def note_ranges(ranges: list[list[int]], old: Any, first: int) -> None:
    """Add runs of old offsets that follow one another: [old, new, count]."""
    for run in np.split(old, np.flatnonzero(np.diff(old) != 1) + 1):
        if ranges and ranges[-1][0] + ranges[-1][2] == run[0] and ranges[-1][1] + ranges[-1][2] == first:
            ranges[-1][2] += len(run)
        else:
            ranges.append([int(run[0]), first, len(run)])
        first += len(run)


def write_rows(target: Target, batch: pa.RecordBatch, settings: Mapping[str, Any]) -> None:
    """Rows with offsets as batches of the log."""
    for rows, append_time in runs_of_time(batch):
        kind = TimestampType.CREATE_TIME if append_time is None else TimestampType.LOG_APPEND_TIME
        writer = ColumnWriter(
            **settings,
            keep_offsets=True,
            base_offset=target.log.next_offset,
            timestamp_type=kind,
            log_append_time_ms=-1 if append_time is None else append_time,
            partition_leader_epoch=LEADER_EPOCH,
        )
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
    """Rows that can share a batch, and their append time (ms), None for CreateTime."""
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


def write_offset_table(targets: Any, path: str, files: FileSystem) -> None:
    """Write the ranges of all partitions. Raises LogError."""
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
