"""A log directory that is written partition by partition, and appears when it is complete.

DIR.part    the directory while it is written; renamed to DIR when everything is durable
DIR         partitions, topic ids, checkpoints, meta.properties: a log directory after a clean shutdown
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kwire.errors import Malformed, OptionError
from kwire.identifiers import TopicPartition, new_uuid
from kwire.maintenance.new_log import NewLog
from kwire.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    parse_offset_checkpoint,
    render_clean_shutdown,
    render_offset_checkpoint,
    render_partition_metadata,
)
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import need_space
from kwire.storage.meta_properties import MetaProperties
from kwire.storage.staged_directory import StagedDirectory, check_target
from kwire.target_paths import path_inside

__all__ = [
    "NewDirectory",
    "WrittenPartition",
    "finish_directory",
    "name_of",
    "without_others",
    "write_clean_checkpoints",
]

CHECKPOINTS = frozenset({RECOVERY_POINTS, HIGH_WATERMARKS, LOG_START_OFFSETS, CLEANER_OFFSETS})


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPartition:
    """A partition of a new directory, with records in [log_start_offset, log_end_offset)."""

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


class NewDirectory:
    """A log directory under construction. directory: missing or empty. topic_ids: of topics; others get random ones.

    Raises OptionError for a directory in use, and after an interrupted run.
    """

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        *,
        now_ms: int,
        segment_bytes: int,
        topic_ids: Mapping[str, uuid.UUID] | None = None,
    ) -> None:
        check_target(directory)
        self._files, self._now_ms, self._segment_bytes = files, now_ms, segment_bytes
        self._staged = StagedDirectory(files, directory)
        if self._staged.exists:
            raise OptionError(f"{self._staged.part}: left by an interrupted run; remove it")
        self._ids = dict(topic_ids or {})
        self._open: dict[TopicPartition, tuple[NewLog, int]] = {}
        self._done: list[WrittenPartition] = []

    def create(self, size_bytes: int = 0) -> None:
        """Create the directory. Raises LogError unless its disk has size_bytes free."""
        need_space(self._files, self._staged.part, size_bytes)
        self._staged.create()

    def open(self, key: TopicPartition, first_offset: int) -> NewLog:
        """Create a partition whose log starts at first_offset."""
        topic_id = self._ids.setdefault(key[0], new_uuid())
        log = NewLog(
            self._files,
            path_inside(self._staged.part, name_of(key)),
            *key,
            first_offset=first_offset,
            now_ms=self._now_ms,
            segment_bytes=self._segment_bytes,
            topic_id=topic_id,
        )
        self._open[key] = log, first_offset
        return log

    def finish(self, key: TopicPartition, records: int) -> None:
        """Close a partition. records: their number."""
        log, first_offset = self._open[key]
        size, end = log.size_bytes, log.next_offset
        log.finish(log_start_offset=first_offset, log_end_offset=end)
        del self._open[key]
        self._add(key, (first_offset, end), size, records)

    def write_segment(
        self, key: TopicPartition, offsets: tuple[int, int], data: bytes | bytearray, records: int
    ) -> None:
        """Write a partition as one segment, without the files beside it that a broker needs and readers do not.

        offsets: log start and log end offset. data: its batches. records: their number.
        """
        topic_id = self._ids.setdefault(key[0], new_uuid())
        folder = path_inside(self._staged.part, name_of(key))
        self._files.make_directory(folder)
        for name, content in (
            (f"{offsets[0]:020}.log", data),
            (PARTITION_METADATA, render_partition_metadata(topic_id)),
        ):
            with self._files.open(f"{folder}/{name}", create=True) as file:
                file.append(content)
        self._add(key, offsets, len(data), records)

    def _add(self, key: TopicPartition, offsets: tuple[int, int], size_bytes: int, records: int) -> None:
        self._done.append(
            WrittenPartition(
                topic=key[0],
                partition=key[1],
                topic_id=self._ids[key[0]],
                records=records,
                size_bytes=size_bytes,
                log_start_offset=offsets[0],
                log_end_offset=offsets[1],
            )
        )

    @property
    def is_empty(self) -> bool:
        """Whether no partition has been finished."""
        return not self._done

    def publish(
        self, *, node_id: int = 1, cluster_id: str | None = None, cleaned: Collection[TopicPartition] = ()
    ) -> list[WrittenPartition]:
        """Write checkpoints and meta.properties, and rename the directory; return its partitions.

        cleaned: partitions with gaps in their offsets, as compaction leaves them.
        """
        MetaProperties.new(node_id, cluster_id).write(self._files, self._staged.part, self._now_ms)
        partitions = {(each.topic, each.partition): each.offsets for each in self._done}
        finish_directory(self._staged, partitions, {key: partitions[key][1] for key in cleaned})
        return self._done

    def discard(self) -> None:
        """Close the open partitions and remove the directory."""
        for log, _ in self._open.values():
            log.abandon()
        self._staged.discard()


def name_of(key: TopicPartition) -> str:
    """Return the directory name of a partition: `orders-0`."""
    return f"{key[0]}-{key[1]}"


def finish_directory(
    staged: StagedDirectory,
    partitions: Mapping[TopicPartition, tuple[int, int]],
    cleaned: Mapping[TopicPartition, int] | None = None,
) -> None:
    """Write the checkpoints of a clean shutdown and publish the directory.

    partitions: their log start and log end offsets. cleaned: first dirty offsets.
    """
    write_clean_checkpoints(staged.files, staged.part, partitions, cleaned)
    staged.publish()


def write_clean_checkpoints(
    files: FileSystem,
    directory: str,
    partitions: Mapping[TopicPartition, tuple[int, int]],
    cleaned: Mapping[TopicPartition, int] | None = None,
) -> None:
    """Write the checkpoints of a clean shutdown; arguments as for finish_directory. Raises LogError."""
    ends = {key: end for key, (_, end) in partitions.items()}
    checkpoints = {
        RECOVERY_POINTS: ends,
        HIGH_WATERMARKS: ends,
        LOG_START_OFFSETS: {key: start for key, (start, _) in partitions.items() if start},
        CLEANER_OFFSETS: {key: offset for key, offset in (cleaned or {}).items() if key in partitions},
    }
    for name, offsets in checkpoints.items():
        files.write_atomically(f"{directory}/{name}", render_offset_checkpoint(offsets))
    files.write_atomically(f"{directory}/{CLEAN_SHUTDOWN}", render_clean_shutdown())


def without_others(name: str, data: bytes, partitions: Collection[TopicPartition]) -> bytes:
    """Return a file of a log directory for a copy of these partitions: a checkpoint without the entries of others.

    A partition that a checkpoint names without a directory counts as lost. Other files, and checkpoints that cannot be
    read, are returned unchanged.
    """
    if name not in CHECKPOINTS:
        return data
    try:
        offsets = parse_offset_checkpoint(data)
    except Malformed:
        return data
    kept = {key: offset for key, offset in offsets.items() if key in partitions}
    return data if kept == offsets else render_offset_checkpoint(kept)
