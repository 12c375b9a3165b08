"""The copy of one partition in a store: its objects, its files in the staging directory, and their upload.

    store      closed segments, and the open one as of its last upload, replaced whole each time it grows
    staging    the open segment, and closed ones that are not uploaded yet

A partition's files are written in this order, by one thread: snapshots and leader epochs, then each segment in offset
order, its transaction index first. So at any time the store has whole batches from the log start offset up to some
offset, the aborted transactions among them, and each offset once.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kwire.errors import CorruptBatch, LogError
from kwire.identifiers import TopicPartition
from kwire.log.files.file_names import LARGEST_SEGMENT_BYTES, SEGMENT_FILE, segment_file
from kwire.log.writing.log_config import MAX_INT64, LogConfig
from kwire.log.writing.partition_writer import PartitionWriter
from kwire.log.writing.recovery import PartitionCheckpoints
from kwire.log.writing.segment_writer import SegmentWriter
from kwire.maintenance.new_log import pieces
from kwire.maintenance.pull.cluster import Bounds
from kwire.maintenance.pull.manifest import PartitionEntry, SegmentEntry
from kwire.maintenance.pull.partition_copy import APPEND_BYTES, PartitionCopy, size_below
from kwire.maintenance.pull.staging import Staging
from kwire.records import RejectedRecords
from kwire.records.format.batch_header import FRAME_BYTES, batch_bytes, batch_spans
from kwire.storage.checkpoints import LEADER_EPOCHS, PARTITION_METADATA, render_leader_epochs, render_partition_metadata
from kwire.storage.store import Entry
from kwire.storage.writable_store import WritableStore

__all__ = ["StoredCopy", "StoredPartition", "Upload", "read_partition", "stage"]

READ_BYTES = 16 << 20
KINDS = ("txnindex", "log", "index", "timeindex")
"""Kinds of a segment's files as they are uploaded: readers take aborted transactions from `.txnindex`."""


@dataclass(frozen=True, slots=True)
class StoredPartition:
    """A partition's files in a store. name: of its directory. sizes: of segments, by base offset."""

    name: str
    files: Mapping[str, Entry]
    sizes: Mapping[int, int]

    def read(self, store: WritableStore, file: str) -> bytes | None:
        """Return the contents of a file, None if it is missing."""
        return store.read_all(f"{self.name}/{file}") if file in self.files else None


def read_partition(store: WritableStore, name: str) -> StoredPartition:
    """List a partition's files. Raises LogError."""
    files = store.find(name)
    sizes = {}
    for file, entry in files.items():
        match = SEGMENT_FILE.fullmatch(file)
        if match is not None and match["kind"] == "log" and match["suffix"] is None:
            sizes[int(match["base"])] = entry.size_bytes
    return StoredPartition(name, files, dict(sorted(sizes.items())))


@dataclass(frozen=True, slots=True)
class SegmentUpload:
    """A segment to upload: the first bytes of its local files, by kind."""

    entry: SegmentEntry
    files: Mapping[str, tuple[str, int]]
    is_closed: bool


@dataclass(frozen=True, slots=True)
class Upload:
    """Files to write, in order, and to remove. small, last: contents, or local paths, by name. end_offset: of the log.

    last: the snapshot of a closed log, which says that everything before it was written.
    """

    name: str
    small: Mapping[str, bytes | str]
    segments: list[SegmentUpload]
    last: Mapping[str, str]
    removed: list[str]
    end_offset: int

    def run(self, store: WritableStore) -> Upload:
        """Write the files, in another thread, and return self. Raises LogError."""
        for file, data in self.small.items():
            store.write(f"{self.name}/{file}", data if isinstance(data, bytes) else read_local(data))
        for segment in self.segments:
            for kind, (path, size) in segment.files.items():
                file = segment_file(segment.entry.base_offset, kind)
                store.write(f"{self.name}/{file}", read_local(path, size))
        for file, path in self.last.items():
            store.write(f"{self.name}/{file}", read_local(path))
        for file in self.removed:
            store.remove(f"{self.name}/{file}")
        return self


def read_local(path: str, size: int | None = None) -> bytes:
    """Read the first bytes of a local file, all of them by default. Raises LogError."""
    try:
        with open(path, "rb") as file:
            return file.read() if size is None else file.read(size)
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", path) from error


@dataclass(slots=True)
class Uploaded:
    """Files of a partition in the store.

    epochs: contents of leader-epoch-checkpoint. aborted: sizes of transaction indexes, by base offset. tail_at:
    monotonic time of the last upload of the open segment. indexed: base offset of the segment that was open before this
    run and has its indexes, None without one. is_too_long: the open segment has to be replaced by a shorter one.
    """

    segments: dict[int, SegmentEntry] = field(default_factory=dict)
    end_offset: int = 0
    epochs: bytes | None = None
    has_metadata: bool = False
    snapshots: set[int] = field(default_factory=set)
    aborted: dict[int, int] = field(default_factory=dict)
    tail_at: float = field(default_factory=time.monotonic)
    indexed: int | None = None
    is_too_long: bool = False


class StoredCopy(PartitionCopy):
    """The copy of a partition in a store. uploaded: what the store has. name: of its directory."""

    def __init__(self, log: PartitionWriter, uploaded: Uploaded, bounds: Bounds, *, is_new: bool) -> None:
        """is_new: nothing of it was ever in the store."""
        super().__init__(log, bounds, known={})
        self.uploaded, self.name, self._is_new = uploaded, log.name, is_new

    def replay(self, data: Iterator[memoryview], url: str, *, now_ms: int) -> None:
        """Append the batches of the open segment, as one segment. url: of its file, for errors."""
        log, config = self.log, self.log.config
        log.config = dataclasses.replace(config, segment_bytes=LARGEST_SEGMENT_BYTES, segment_ms=MAX_INT64)
        position = 0
        try:
            for block in data:
                for start, end in pieces(block, APPEND_BYTES):
                    self._write(block[start:end], now_ms)
                    position += end - start
        except (CorruptBatch, RejectedRecords) as error:
            what = f"damaged after byte {position}: {error}; remove this file, and pull again"
            raise LogError(what, url) from error
        finally:
            log.config = config

    @property
    def staged_bytes(self) -> int:
        """Size of the segments in the staging directory."""
        return self.log.size_bytes

    @property
    def tail_growth(self) -> int:
        """Bytes of the open segment that are not in the store."""
        active = self.log.segments.active
        stored = self.uploaded.segments.get(active.base_offset)
        return active.size_bytes - (0 if stored is None else stored.size_bytes)

    @property
    def has_closed(self) -> bool:
        """Whether there are closed segments to upload."""
        return len(self.log.segments) > 1

    @property
    def is_uploaded(self) -> bool:
        """Whether the store has everything."""
        known = self.uploaded
        is_there = self.log.segments.active.base_offset in known.segments and not known.is_too_long
        return is_there and not self.has_closed and not self.tail_growth

    @property
    def is_finished(self) -> bool:
        """Whether the store has everything that a clean close writes."""
        log, known = self.log, self.uploaded
        ends = log.log_end_offset in known.snapshots or log.log_end_offset == log.segments.active.base_offset
        return self.is_uploaded and ends and known.indexed == log.segments.active.base_offset

    def resumed(self, base: int, size_bytes: int) -> None:
        """Note that the open segment was read from the store. size_bytes: of its file there."""
        size = self.log.segments.active.size_bytes
        entry = SegmentEntry(base_offset=base, size_bytes=size, sha256=self._digest.hexdigest())
        self.uploaded.segments[base] = entry
        self.uploaded.end_offset = self.log.log_end_offset
        self.uploaded.is_too_long = size < size_bytes

    def roll(self, now_ms: int) -> None:
        """Close the open segment."""
        self.log.roll(now_ms)
        self._follow_active()

    def upload(self, *, with_tail: bool) -> Upload:
        """Return what to write. with_tail: the open segment too, complete with its indexes if the log is closed."""
        log, known = self.log, self.uploaded
        active = log.segments.active
        small: dict[str, bytes | str] = {}
        if log.topic_id is not None and not known.has_metadata:
            small[PARTITION_METADATA] = render_partition_metadata(log.topic_id)
        end = log.log_end_offset if with_tail else active.base_offset
        entries = [each for each in log.leader_epochs.entries if each.start_offset < end]
        epochs = render_leader_epochs(entries)
        if epochs != known.epochs and (entries or known.epochs is not None):
            small[LEADER_EPOCHS] = epochs
        last: dict[str, str] = {}
        for offset in log.snapshots.offsets:
            if offset in known.snapshots:
                continue
            if offset in log.segments:
                small[segment_file(offset, "snapshot")] = log.snapshots.path(offset)
            elif log.is_closed and offset == log.log_end_offset:
                last[segment_file(offset, "snapshot")] = log.snapshots.path(offset)
        segments = [self._segment(each, is_closed=True) for each in list(log.segments)[:-1]]
        if with_tail:
            segments.append(self._segment(active, is_closed=False))
        bases = {each.entry.base_offset for each in segments}
        empty = [base for base, each in known.segments.items() if not each.size_bytes and base not in bases]
        removed = [segment_file(base, kind) for base in empty for kind in KINDS if base < active.base_offset]
        removed += [
            segment_file(offset, "snapshot")
            for offset in known.snapshots
            if offset not in known.segments and offset not in log.segments and offset < end
        ]
        return Upload(self.name, small, segments, last, removed, end)

    def _segment(self, segment: SegmentWriter, *, is_closed: bool) -> SegmentUpload:
        base = segment.base_offset
        entry = self._hashed.get(base)
        if not is_closed or entry is None:
            entry = SegmentEntry(base_offset=base, size_bytes=segment.size_bytes, sha256=self._digest.hexdigest())
        files = {}
        if segment.transaction_index.file is not None:
            size = segment.transaction_index.file.end
            if size != self.uploaded.aborted.get(base, 0):
                files["txnindex"] = segment.path("txnindex"), size
        files["log"] = segment.path("log"), segment.size_bytes
        if is_closed or self.log.is_closed:
            files["index"] = segment.path("index"), segment.index_bytes
            files["timeindex"] = segment.path("timeindex"), segment.time_index_bytes
        return SegmentUpload(entry, files, is_closed)

    def written(self, upload: Upload) -> None:
        """Note what was written, and remove closed segments from the staging directory."""
        known, log = self.uploaded, self.log
        for file, data in {**upload.small, **upload.last}.items():
            match = SEGMENT_FILE.fullmatch(file)
            if match is not None:
                known.snapshots.add(int(match["base"]))
            elif file == LEADER_EPOCHS:
                known.epochs = data if isinstance(data, bytes) else None
            else:
                known.has_metadata = True
        for file in upload.removed:
            match = SEGMENT_FILE.fullmatch(file)
            assert match is not None
            if match["kind"] == "snapshot":
                known.snapshots.discard(int(match["base"]))
            else:
                known.segments.pop(int(match["base"]), None)
        for each in upload.segments:
            base = each.entry.base_offset
            known.segments[base] = each.entry
            if "txnindex" in each.files:
                known.aborted[base] = each.files["txnindex"][1]
            segment = log.segments.get(base)
            if not each.is_closed:
                known.tail_at, known.is_too_long = time.monotonic(), False
            elif segment is not None:
                log.segments.remove(base)
                segment.remove()
                log.snapshots.remove(base)
                known.aborted.pop(base, None)
        known.end_offset = max(known.end_offset, upload.end_offset)

    def entry(self) -> PartitionEntry:
        """Return the entry for the manifest: what the store has."""
        segments = self.uploaded.segments
        return PartitionEntry(
            log_start_offset=self.log.log_start_offset,
            log_end_offset=self.uploaded.end_offset,
            high_watermark=self.high_watermark,
            segments=[segments[base] for base in sorted(segments) if segments[base].size_bytes],
        )


def stage(
    store: WritableStore,
    staging: Staging,
    stored: StoredPartition,
    key: TopicPartition,
    config: LogConfig,
    bounds: Bounds,
    *,
    topic_id: uuid.UUID | None,
    known: PartitionEntry | None,
    now_ms: int,
    up_to: int | None = None,
) -> StoredCopy:
    """Open a partition in the staging directory: the open segment, read from the store.

    known: its entry in the manifest; closed segments that differ from it are read and hashed. up_to: drop batches from
    this offset on. Raises LogError.
    """
    directory, files = staging.directory(stored.name), staging.files
    base = max(stored.sizes, default=None)
    epochs = stored.read(store, LEADER_EPOCHS)
    if epochs is not None:
        files.write_atomically(f"{directory}/{LEADER_EPOCHS}", epochs)
    if base is not None:
        files.open(f"{directory}/{segment_file(base, 'log')}", create=True).close()
    start = min(stored.sizes, default=0) if known is None else known.log_start_offset
    log = PartitionWriter.open(
        files,
        directory,
        *key,
        config,
        now_ms=now_ms,
        checkpoints=PartitionCheckpoints(log_start_offset=0 if base is None else min(start, base)),
        topic_id=topic_id,
    )
    uploaded = Uploaded(epochs=epochs, has_metadata=PARTITION_METADATA in stored.files)
    if base is not None and segment_file(base, KINDS[-1]) in stored.files:
        uploaded.indexed = base
    uploaded.snapshots = {int(name[:20]) for name in stored.files if name.endswith(".snapshot")}
    copy = StoredCopy(log, uploaded, bounds, is_new=base is None and known is None)
    if base is None:
        return copy
    entries = {} if known is None else {each.base_offset: each for each in known.segments}
    for each, size in stored.sizes.items():
        entry = entries.get(each)
        if each != base:
            uploaded.segments[each] = (
                entry
                if entry is not None and entry.size_bytes == size
                else hash_segment(store, stored.name, each, size)
            )
    log.log_start_offset = start
    snapshot = stored.read(store, segment_file(base, "snapshot"))
    if snapshot is not None:
        log.producers.load(snapshot, now_ms)
    log.producers.snapshot_offset = log.producers.end_offset = base
    path = f"{stored.name}/{segment_file(base, 'log')}"
    copy.replay(read_batches_of(store, path, stored.sizes[base], up_to), store.url_of(path), now_ms=now_ms)
    copy.resumed(base, stored.sizes[base])
    return copy


def read_batches_of(store: WritableStore, path: str, size: int, up_to: int | None) -> Iterator[memoryview]:
    """Yield the complete batches of a file in blocks; an incomplete one at its end is dropped."""
    with store.open(path) as file:
        position, wanted = 0, READ_BYTES
        while position < size:
            data = memoryview(file.pread(position, min(wanted, size - position)))
            end = max((end for _, end in batch_spans(data)), default=0)
            if not end:  # incomplete, or larger than what was read
                wanted = batch_bytes(data, 0) if len(data) >= FRAME_BYTES else 0
                if not len(data) < wanted <= size - position:
                    return
                continue
            block = data[:end] if up_to is None else data[: size_below(data[:end], up_to)]
            yield block
            if len(block) < end:
                return
            position, wanted = position + end, READ_BYTES


def hash_segment(store: WritableStore, name: str, base: int, size: int) -> SegmentEntry:
    """Read a segment in the store, and return its entry."""
    digest = hashlib.sha256()
    with store.open(f"{name}/{segment_file(base, 'log')}") as file:
        for position in range(0, size, READ_BYTES):
            digest.update(file.pread(position, min(READ_BYTES, size - position)))
    return SegmentEntry(base_offset=base, size_bytes=size, sha256=digest.hexdigest())
