"""The files of one partition's directory, as of one listing, and the segments that a broker would load from them."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple, Self, TypeVar

from kwire.errors import LogError, Malformed
from kwire.log.files.file_names import Ignored, PartitionFiles, SegmentFiles, decide_files, plain_segments
from kwire.log.files.segment import Segment
from kwire.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    LeaderEpoch,
    parse_leader_epochs,
    parse_partition_metadata,
)
from kwire.storage.store import Entry, Store, StoredFile

__all__ = ["PartitionListing", "SegmentSpan"]

T = TypeVar("T")
MEASURED = (".log", ".log.swap")  # files of segments, whose sizes and times matter


class SegmentSpan(NamedTuple):
    """Offsets and size of a segment. next_base: None for the active one. name: of the `.log` file."""

    base_offset: int
    next_base: int | None
    size_bytes: int
    name: str


class PartitionListing(ABC):
    """One listing of a partition's directory; the part of a PartitionLog that decides nothing about offsets.

    store, directory: the location of the files. topic, partition: whose they are. only_base_offset: the only segment
    that counts, None for all.
    """

    def __init__(
        self, store: Store, directory: str, topic: str, partition: int, *, only_base_offset: int | None = None
    ) -> None:
        self.store, self.directory = store, directory
        self.topic, self.partition = topic, partition
        self.only_base_offset = only_base_offset

    @abstractmethod
    def reopened(self) -> Self:
        """Return the same partition with a new listing, which has later segments and no deleted ones."""

    @property
    def url(self) -> str:
        """The path or URL of the partition's directory."""
        return self.store.url_of(self.directory)

    @property
    def source_url(self) -> str:
        """The path or URL of the store that has the directory."""
        return self.store.url

    @cached_property
    def listing(self) -> dict[str, Entry]:
        """The files of the directory, by name. Raises LogError if it cannot be listed."""
        return {entry.name: entry for entry in self.store.list(self.directory) if not entry.is_directory}

    @cached_property
    def entries(self) -> Mapping[str, Entry | None]:
        """The files of the directory; of those in MEASURED, with their entries. The listing if that was read before.

        Asking for the sizes of all files would take most of the time of planning with many small segments.
        """
        return self.listing if "listing" in self.__dict__ else self.store.list_files(self.directory, MEASURED)

    @property
    def is_fully_listed(self) -> bool:
        """Whether entries has the sizes and times of all files."""
        return self.__dict__.get("listing") is self.entries

    @cached_property
    def _files(self) -> PartitionFiles:
        def next_offset(name: str, base_offset: int) -> int:
            files = SegmentFiles(base_offset=base_offset, names={"log": name})
            return self._segment(files, None).end().next_offset

        files = decide_files(self.entries, next_offset)
        if self.only_base_offset is not None:
            files.segments = [each for each in files.segments if each.base_offset == self.only_base_offset]
        return files

    def _segment(self, files: SegmentFiles, next_base: int | None) -> Segment:
        entry = self.entries[files.names["log"]]
        assert entry is not None, "a segment's file has one of the endings MEASURED"
        return Segment(
            self.store,
            self.directory,
            files,
            next_base=next_base,
            size_bytes=entry.size_bytes,
            modified_ms=entry.modified_ms,
        )

    @cached_property
    def segments(self) -> list[Segment]:
        """The segments that a broker would load, by base offset. Raises LogError if the directory cannot be listed."""
        listed = self._files.segments
        next_bases = [*(each.base_offset for each in listed[1:]), None]
        return [self._segment(files, base) for files, base in zip(listed, next_bases, strict=False)]

    def segment_spans(self) -> list[SegmentSpan]:
        """Return what planning needs of each segment. Takes a third of the time of creating segments.

        Raises LogError if the directory cannot be listed.
        """
        entries = self.entries
        segment_names = None if self.only_base_offset is not None else plain_segments(entries)
        if segment_names is None or "segments" in self.__dict__:
            return [
                SegmentSpan(each.base_offset, each.next_base, each.size_bytes, each.name_of("log"))
                for each in self.segments
            ]
        spans, next_base = [], None
        for base, name in reversed(segment_names):
            entry = entries[name]
            assert entry is not None, "a segment's file has one of the endings MEASURED"
            spans.append(SegmentSpan(base, next_base, entry.size_bytes, name))
            next_base = base
        spans.reverse()
        return spans

    @property
    def ignored(self) -> list[Ignored]:
        """Files in this directory that are not part of the log, with reasons."""
        return self._files.ignored

    def has_changed(self, again: Self) -> bool:
        """Return whether a new listing differs in files, sizes or times, as far as this one has them."""
        try:
            return self.entries != (again.listing if self.is_fully_listed else again.entries)
        except LogError:
            return True

    @property
    def is_deleted(self) -> bool:
        """Whether the directory was removed, or renamed because its topic was deleted."""
        if not self.directory:
            return False
        try:
            return all(entry.name != self.directory for entry in self.store.list("") if entry.is_directory)
        except LogError:
            return False

    @property
    def directory_bytes(self) -> int:
        """Total size of the files in the directory, as listed."""
        return sum(entry.size_bytes for entry in self.listing.values())

    def path_of(self, name: str) -> str:
        """Return the path of a file in this directory, relative to the store."""
        return f"{self.directory}/{name}" if self.directory else name

    def url_of(self, name: str) -> str:
        """Return the path or URL of a file in this directory."""
        return self.store.url_of(self.path_of(name))

    def open_file(self, name: str) -> StoredFile:
        """Open a file in this directory. Raises LogError."""
        return self.store.open(self.path_of(name))

    def read_file(self, name: str) -> bytes:
        """Read a whole small file in this directory. Raises LogError."""
        return self.store.read_all(self.path_of(name))

    def has_file(self, name: str) -> bool:
        """Return whether the listing contains a file."""
        return name in self.entries

    @property
    def file_names(self) -> list[str]:
        """Names of the files in this directory, as listed."""
        return list(self.listing)

    @property
    def snapshots(self) -> dict[int, str]:
        """Names of the producer snapshots, by offset."""
        return self._files.snapshots

    def _parse_file(self, name: str, parse: Callable[[bytes], T]) -> T | None:
        """Parse a small file, None if it is missing. Raises LogError if it is invalid."""
        try:
            return parse(self.read_file(name)) if name in self.entries else None
        except Malformed as error:
            raise LogError(str(error), self.url_of(name)) from error

    @cached_property
    def topic_id(self) -> uuid.UUID | None:
        """Topic id in partition.metadata; None without that file (before Kafka 2.8). Raises LogError if invalid."""
        return self._parse_file(PARTITION_METADATA, parse_partition_metadata)

    @cached_property
    def leader_epochs(self) -> list[LeaderEpoch]:
        """Entries of leader-epoch-checkpoint, oldest first; empty without it. Raises LogError if it is invalid."""
        return self._parse_file(LEADER_EPOCHS, parse_leader_epochs) or []

    def segments_between(self, start_offset: int, end_offset: int) -> list[Segment]:
        """Return the segments that may contain offsets in [start_offset, end_offset)."""
        return [
            segment
            for segment in self.segments
            if segment.base_offset < end_offset and (segment.next_base is None or segment.next_base > start_offset)
        ]
