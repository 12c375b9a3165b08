"""Conversion of a locked log directory in place.

Works segment by segment, like compaction. The new segment is written as `.cleaned`, synced, and renamed into place; the
next start finishes or undoes the renames (X-35, G-02 to G-04). So the log is complete at every moment, and the disk
needs room for the largest segment only. The active segment is closed first and followed by an empty one, which keeps
the log end offset.

An interrupted run leaves some segments converted. Converting again skips them and continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition
from kwire.log.files.file_names import LARGEST_SEGMENT_BYTES
from kwire.log.files.offset_checks import check_offsets
from kwire.log.files.segment import Segment
from kwire.log.files.segment_batches import segment_batches
from kwire.log.reading.log_directory import LogDirectory
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.writing.log_config import MAX_INT64, LogConfig
from kwire.log.writing.log_manager import LogManager
from kwire.log.writing.partition_writer import PartitionWriter
from kwire.log.writing.segment_writer import SegmentWriter
from kwire.maintenance.convert.batch_format import BatchConverter, TargetFormat
from kwire.maintenance.convert.directory import check_loss, convertible, examine
from kwire.maintenance.convert.partition import ConvertedPartition, ProgressCallback, advancing, converter_for
from kwire.maintenance.new_log import pieces
from kwire.records import AppendOrigin
from kwire.records.append.checks import analyze_append
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import need_space
from kwire.storage.store import LocalStore

__all__ = ["convert_in_place"]

IN_PLACE = LogConfig(segment_bytes=LARGEST_SEGMENT_BYTES, segment_ms=MAX_INT64, file_delete_delay_ms=0)


def convert_in_place(
    path: str | Path,
    target: TargetFormat,
    keys: Sequence[TopicPartition],
    *,
    accept_loss: bool = False,
    now_ms: int,
    progress: ProgressCallback = lambda size_bytes: None,
    file_system: FileSystem | None = None,
) -> list[ConvertedPartition]:
    """Convert partitions of a local log directory without a running broker.

    Raises LossRefused before anything is changed, LogError if the directory is locked or a file cannot be changed,
    CorruptBatch for damage, OptionError if zstd is not supported. Segments already converted stay converted.
    """
    directory = LogDirectory(path)
    if not isinstance(directory[next(iter(directory))].store, LocalStore):
        raise OptionError(
            f"{directory.url}: not a local directory, so it cannot be converted in place; set an output directory"
        )
    if any(log.directory == "" for log in directory.values()):
        raise OptionError(
            f"{directory.url}: a partition directory; in place, name the log directory, which has lock and checkpoints"
        )
    wanted = convertible(directory, keys)
    if not accept_loss and target.magic in (0, 1):
        check_loss(examine(directory, target, wanted))
    # the new segment is written beside the old one, one at a time
    largest = max((segment.size_bytes for key in wanted for segment in directory[key].segments), default=0)
    need_space(file_system or FileSystem(), directory.url, target.least_bytes(largest))
    manager = LogManager.open(
        path,
        now_ms=now_ms,
        file_system=file_system,
        default_config=IN_PLACE,
        only=None if wanted == convertible(directory, directory) else lambda *key: key in wanted,
    )
    try:
        opened = LogDirectory(path)  # after recovery
        done = [convert_log(manager.logs[key], opened[key], target, now_ms, progress) for key in wanted]
    except BaseException:
        manager.close(clean=False)
        raise
    manager.close()
    return done


def convert_log(
    writer: PartitionWriter, log: PartitionLog, target: TargetFormat, now_ms: int, progress: ProgressCallback
) -> ConvertedPartition:
    """Convert the segments of an open log."""
    converter = converter_for(log, target)
    for segment in log.segments:
        if has_format(segment, target):
            progress(segment.size_bytes)
            continue
        if segment.base_offset == writer.segments.active.base_offset:
            writer.roll(now_ms)
        new = write_cleaned(writer, segment, target, converter, now_ms, progress)
        writer.local.replace_segments([segment.base_offset], new, now_ms=now_ms)
        writer.local.delete_due_files(now_ms)
    if target.magic in (0, 1):
        writer.leader_epochs.clear()
        writer.producers.clear()
        writer.snapshots.remove_all()
        writer.producers.snapshot_offset, writer.producers.end_offset = 0, writer.log_end_offset
    return ConvertedPartition.of(log, converter, target_bytes=writer.size_bytes, log_end_offset=writer.log_end_offset)


def has_format(segment: Segment, target: TargetFormat) -> bool:
    """Return whether a segment is in the target format; below magic 2, control batches are not."""
    return all(target.has(batch) for batch in check_offsets(segment, segment_batches(segment)))


def write_cleaned(
    writer: PartitionWriter,
    segment: Segment,
    target: TargetFormat,
    converter: BatchConverter,
    now_ms: int,
    progress: ProgressCallback,
) -> list[int]:
    """Write the `.cleaned` segments of a segment, several only above 2 GiB. Returns their base offsets."""
    cleaned = writer.local.new_cleaned_segment(segment.base_offset, now_ms=now_ms)
    bases, next_offset = [segment.base_offset], segment.base_offset
    batches = advancing(check_offsets(segment, segment_batches(segment)), progress)
    for data in converter.convert(batches):
        view = memoryview(data)
        for start, end in pieces(view):
            if cleaned.size_bytes + end - start > LARGEST_SEGMENT_BYTES:
                finish(cleaned, segment)
                bases.append(next_offset)
                cleaned = writer.local.new_cleaned_segment(bases[-1], now_ms=now_ms)
            info = analyze_append(view[start:end], origin=AppendOrigin.REPLICATION, topic_partition=writer.name)
            cleaned.append([view[start:end]], info.last_offset, info.max_timestamp, info.offset_of_max_timestamp)
            next_offset = info.last_offset + 1
    if target.magic not in (0, 1):
        for entry in segment.transaction_index or ():
            cleaned.transaction_index.append(entry)
    finish(cleaned, segment)
    return bases


def finish(cleaned: SegmentWriter, segment: Segment) -> None:
    """Close a `.cleaned` segment, with the modification time of its source."""
    cleaned.close()
    if segment.modified_ms is not None:
        cleaned.set_modified(segment.modified_ms)
