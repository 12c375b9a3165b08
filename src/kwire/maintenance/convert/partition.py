"""Conversion of one partition into a new directory, or its preview.

Segments keep their base offsets and modification times, which retention uses. The log keeps its start and end: if the
last batches are dropped, an empty segment has the log end offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from kwire.log.files.offset_checks import check_offsets
from kwire.log.files.segment import Segment
from kwire.log.files.segment_batches import segment_batches
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.reading.runs import AbortedBatches
from kwire.maintenance.convert.batch_format import BatchConverter, Loss, TargetFormat
from kwire.maintenance.new_log import NewLog
from kwire.records import Batch
from kwire.storage.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from kwire.storage.file_system import FileSystem

__all__ = ["ConvertedPartition", "convert_partition", "converted_segments"]

ProgressCallback = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedPartition:
    """Result of the conversion of a partition.

    source_bytes, target_bytes: of `.log` files. largest_batch_bytes: of the result. log_start_offset, log_end_offset:
    unchanged. loss: what the format cannot hold.
    """

    topic: str
    partition: int
    segments: int
    batches: int
    records: int
    source_bytes: int
    target_bytes: int
    largest_batch_bytes: int
    log_start_offset: int
    log_end_offset: int
    loss: Loss

    @classmethod
    def of(
        cls, log: PartitionLog, converter: BatchConverter, *, target_bytes: int, log_end_offset: int
    ) -> ConvertedPartition:
        """Return the result of a converter that has converted a whole log."""
        return cls(
            topic=log.topic,
            partition=log.partition,
            segments=len(log.segments),
            batches=converter.batches,
            records=converter.records,
            source_bytes=log.size_bytes,
            target_bytes=target_bytes,
            largest_batch_bytes=converter.largest_batch_bytes,
            log_start_offset=log.log_start_offset,
            log_end_offset=log_end_offset,
            loss=converter.loss,
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ConvertedPartition:
        """Return the result of an object of to_json()."""
        return cls(**{**values, "loss": Loss(**values["loss"])})


def converted_segments(
    log: PartitionLog, converter: BatchConverter, progress: ProgressCallback
) -> Iterator[tuple[Segment, Iterator[bytes]]]:
    """Yield each segment with its converted batches, to be consumed in order. progress: called with source bytes."""
    for segment in log.segments:
        yield segment, converter.convert(advancing(check_offsets(segment, segment_batches(segment)), progress))


def advancing(batches: Iterator[Batch], progress: ProgressCallback) -> Iterator[Batch]:
    """Yield batches, and call progress with their bytes about once per MiB."""
    done = 0
    for batch in batches:
        done += batch.size_bytes
        if done >= 1 << 20:
            progress(done)
            done = 0
        yield batch
    progress(done)


def converter_for(log: PartitionLog, target: TargetFormat) -> BatchConverter:
    """Return the converter of a log, with its aborted transactions."""
    below_2 = target.magic is not None and target.magic < 2
    first = log.segments[0].base_offset if log.segments else 0
    aborted = log.aborted_transactions(max(first, log.log_start_offset), log.log_end_offset) if below_2 else []
    return BatchConverter(target, AbortedBatches(aborted).has)


def convert_partition(
    log: PartitionLog,
    target: TargetFormat,
    *,
    directory: str | None = None,
    file_system: FileSystem | None = None,
    now_ms: int = 0,
    progress: ProgressCallback = lambda size_bytes: None,
) -> ConvertedPartition:
    """Convert a log into a new directory; without a directory, only compute the result.

    Raises CorruptBatch for damage, LogError for unreadable or unwritable files, OptionError if zstd is not supported.
    """
    converter = converter_for(log, target)
    first = log.segments[0].base_offset if log.segments else log.log_start_offset
    size = 0
    if directory is None:
        for _, converted in converted_segments(log, converter, progress):
            size += sum(map(len, converted))
    else:
        files = file_system or FileSystem()
        copy_small_files(log, target, directory, files)
        new = NewLog(files, directory, log.topic, log.partition, first_offset=first, now_ms=now_ms)
        try:
            for segment, converted in converted_segments(log, converter, progress):
                new.begin_segment(segment.base_offset, segment.modified_ms)
                for data in converted:
                    new.append(data)
            size = new.size_bytes
            new.finish(log_start_offset=log.log_start_offset, log_end_offset=log.log_end_offset)
        finally:
            new.abandon()
    return ConvertedPartition.of(log, converter, target_bytes=size, log_end_offset=log.log_end_offset)


def copy_small_files(log: PartitionLog, target: TargetFormat, directory: str, files: FileSystem) -> None:
    """Copy topic id and leader epochs, if they exist and the format supports them."""
    files.make_directory(directory)
    existing = {entry.name for entry in log.store.list(log.directory)}
    wanted = [PARTITION_METADATA] if target.magic in (0, 1) else [PARTITION_METADATA, LEADER_EPOCHS]
    for name in wanted:
        if name in existing:
            files.write_atomically(f"{directory}/{name}", log.read_file(name))
