"""A copy in an object store, or in a directory that several machines share.

    URL/orders-0/...             as in a log directory: segments, indexes, snapshots, leader epochs
    URL/kwire-manifest.json      written after what it names
    URL/kwire-pull.lease         while a pull runs
    URL/kwire-pull-orders-0.*    while a process copies this partition as part of a job: its lease, and what it has
                                 copied, which becomes part of the manifest when the job ends or continues

Segments are written in a local staging directory and uploaded by UPLOADS threads: closed ones at once, the open one of
a partition when the copy has caught up, and at the latest after TAIL_S. An open segment of TAIL_BYTES is closed rather
than uploaded again. The staging directory is bounded by STAGED_BYTES: beyond it the largest open segments are closed.
A file is replaced whole, so a reader finds a partition as it was at some moment.
"""

from __future__ import annotations

import dataclasses
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

import msgspec

from kwire.errors import KwireError, LogError, OptionError
from kwire.identifiers import TopicPartition
from kwire.log.files.file_names import SEGMENT_FILE, parse_partition_directory
from kwire.log.writing.log_config import LogConfig
from kwire.maintenance.new_directory import name_of
from kwire.maintenance.pull.cluster import Bounds
from kwire.maintenance.pull.lease import Lease
from kwire.maintenance.pull.manifest import MANIFEST, Manifest, PartitionEntry
from kwire.maintenance.pull.staging import Staging
from kwire.maintenance.pull.stored_copy import StoredCopy, StoredPartition, Upload, read_partition, stage
from kwire.maintenance.pull.target import COPY_NODE_ID, MakeManifest, Target, check_manifest
from kwire.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    parse_partition_metadata,
    render_clean_shutdown,
    render_offset_checkpoint,
)
from kwire.storage.meta_properties import MetaProperties
from kwire.storage.store import Entry
from kwire.storage.writable_store import WritableStore

__all__ = ["LEASE", "StoreTarget"]

LEASE, LEASE_ENDING, PART_ENDING = "kwire-pull.lease", ".lease", ".json"
PART = "kwire-pull-"
UPLOADS = 4
SEGMENT_BYTES = 64 << 20
TAIL_BYTES = 8 << 20
TAIL_GROWTH = 8
"""An open segment is uploaded again when it has grown by this fraction: its size is uploaded, not its growth."""
TAIL_S = 60.0
STAGED_BYTES = 1 << 30
WAIT_S = 1.0


class StoreTarget(Target):
    """A copy in a store, which one process writes at a time: see Lease."""

    _staging: Staging
    _lease: Lease
    _pool: ThreadPoolExecutor

    def __init__(self, store: WritableStore, *, part: TopicPartition | None = None) -> None:
        """part: write this partition only, and nothing that others share; read_manifest and begin are not called."""
        self.url, self._store, self._part = store.url, store, part
        self.options = store.options
        self._root: dict[str, Entry] = {}
        self._configs: dict[str, LogConfig] = {}
        self._known: dict[TopicPartition, PartitionEntry] = {}
        self._found: dict[TopicPartition, StoredPartition] = {}
        self._copies: dict[TopicPartition, StoredCopy] = {}
        self._running: dict[Future[Upload], TopicPartition] = {}
        self._staged_bytes: dict[TopicPartition, int] = {}
        self._total_bytes = 0
        self._written: dict[str, bytes] = {}
        self._last: Manifest | None = None
        self._parts: list[str] = []

    # ---- begin

    def read_manifest(self, cluster_id: str | None) -> Manifest | None:
        """Return the manifest of an earlier copy; None for a new one: see Target."""
        names = self._store.find("")
        if MANIFEST in names:
            return check_manifest(self._store.read_all(MANIFEST), self.url, cluster_id)
        if names.keys() - {LEASE}:
            raise OptionError(f"{self.url}: not empty, and not a copy: it has no {MANIFEST}")
        return None

    def begin(self, manifest: Manifest) -> None:
        """Write an incomplete manifest."""
        self._write_manifest(manifest)

    def open(self, *, cluster_id: str | None, configs: Mapping[str, LogConfig], earlier: Manifest | None) -> None:
        """Take the lease and create the staging directory."""
        where = self.url if self._part is None else f"{self.url}/{name_of(self._part)}"
        self._staging = Staging(where)
        self._pool = ThreadPoolExecutor(UPLOADS, "kwire-upload")
        if earlier is not None:
            self._last = earlier
            for name, topic_entry in earlier.topics.items():
                for number, entry in topic_entry.partitions.items():
                    self._known[name, number] = entry
        try:
            self._lease = Lease(self._store, self._part_file(LEASE_ENDING), self._staging.path)
            self._prepare(cluster_id)
        except BaseException:
            self._give_up()
            raise
        for topic, config in configs.items():
            self.set_config(topic, config)

    def _prepare(self, cluster_id: str | None) -> None:
        """List the copy, and write the files of the directory itself."""
        if self._part is not None:
            self._found[self._part] = read_partition(self._store, name_of(self._part))
            return
        self._root = self._store.find("")
        for name in self._root:
            if name.startswith(PART) and name.endswith(PART_ENDING):
                key = parse_partition_directory(name.removeprefix(PART).removesuffix(PART_ENDING))
                if key is not None:
                    self._known[key] = parse_part(self._store.read_all(name), self._store.url_of(name))
                    self._parts.append(name)
        if CLEAN_SHUTDOWN in self._root:
            self._store.remove(CLEAN_SHUTDOWN)
        if META_PROPERTIES not in self._root:
            properties = MetaProperties.new(COPY_NODE_ID, cluster_id)
            self._store.write(META_PROPERTIES, properties.render(time.time_ns() // 1_000_000))

    def _part_file(self, ending: str) -> str:
        return LEASE if self._part is None else f"{PART}{name_of(self._part)}{ending}"

    def known(self, key: TopicPartition) -> PartitionEntry | None:
        """Return what is known of a partition that is not open."""
        return self._known.get(key)

    def adopt(self, key: TopicPartition, entry: PartitionEntry) -> None:
        """Note what another process has copied of a partition."""
        self._known[key] = entry
        self._parts.append(f"{PART}{name_of(key)}{PART_ENDING}")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the lease while other processes copy partitions. Raises LogError if another process takes it."""
        stopped = threading.Event()

        def renew() -> None:
            while not stopped.wait(WAIT_S):
                self._lease.renew_if_due()

        with ThreadPoolExecutor(1, "kwire-lease") as pool:
            renewing = pool.submit(renew)
            try:
                yield
            finally:
                stopped.set()
        renewing.result()

    def _give_up(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for copy in self._copies.values():
            if not copy.log.is_closed:
                copy.log.abandon()
        self._staging.close()

    def set_config(self, topic: str, config: LogConfig) -> None:
        """Set the configs of a topic; segments are at most SEGMENT_BYTES, and batches larger than that."""
        bounded = dataclasses.replace(
            config, segment_bytes=min(config.max_segment_bytes, SEGMENT_BYTES), internal_segment_bytes=None
        )
        self._configs[topic] = bounded
        for key, copy in self._copies.items():
            if key[0] == topic:
                copy.log.config = bounded

    # ---- partitions

    def _partition(self, key: TopicPartition) -> StoredPartition:
        """Return the files of a partition before this run."""
        if key not in self._found:
            name = name_of(key)
            is_there = name in self._root
            self._found[key] = read_partition(self._store, name) if is_there else StoredPartition(name, {}, {})
        return self._found[key]

    def topic_id(self, key: TopicPartition) -> uuid.UUID | None:
        """Return the topic id in partition.metadata."""
        if key in self._copies:
            return self._copies[key].log.topic_id
        data = self._partition(key).read(self._store, PARTITION_METADATA)
        return None if data is None else parse_partition_metadata(data)

    def copy(
        self,
        key: TopicPartition,
        bounds: Bounds,
        *,
        topic_id: uuid.UUID | None,
        now_ms: int,
    ) -> StoredCopy:
        """Open the copy of a partition in the staging directory, or create it."""
        return self._stage(key, topic_id, bounds, now_ms)

    def _stage(
        self,
        key: TopicPartition,
        topic_id: uuid.UUID | None,
        bounds: Bounds,
        now_ms: int,
        up_to: int | None = None,
    ) -> StoredCopy:
        self._lease.renew_if_due()
        copy = self._copies[key] = stage(
            self._store,
            self._staging,
            self._partition(key),
            key,
            self._configs.get(key[0], LogConfig()),
            bounds,
            topic_id=topic_id,
            known=self._known.get(key),
            now_ms=now_ms,
            up_to=up_to,
        )
        self._count(key)
        return copy

    def set_aside(self, key: TopicPartition) -> int:
        """Move a partition's files to a directory that ends with -stray; return its log end offset."""
        self._close(key)
        stored, end = read_partition(self._store, name_of(key)), self._end_of(key)
        self._forget(key, None)
        stray = f"{key[0]}-{key[1]}.{uuid.uuid4().hex}-stray"
        # what recognizes the earlier topic is moved last, in case this is interrupted
        names = sorted(stored.files, key=lambda name: (name == PARTITION_METADATA, name))
        for name in names:
            self._lease.renew_if_due()
            self._store.copy(f"{stored.name}/{name}", f"{stray}/{name}")
        for name in names:
            self._store.remove(f"{stored.name}/{name}")
        self._store.remove_directory(stored.name)
        self._found[key] = StoredPartition(stored.name, {}, {})
        return end

    def _end_of(self, key: TopicPartition) -> int:
        entry = self._known.get(key)
        return 0 if entry is None else entry.log_end_offset

    def truncate(self, key: TopicPartition, offset: int, *, now_ms: int) -> StoredCopy:
        """Remove segments from the last one on, and write the one that contains the offset again, shorter."""
        old = self._copies[key]
        self._close(key)
        stored = read_partition(self._store, name_of(key))
        gone = [base for base in stored.sizes if base >= offset]
        last = max((base for base in stored.sizes if base < offset), default=None)
        entry = old.entry()
        kept = [each for each in entry.segments if last is not None and each.base_offset < last]
        end = min(entry.log_end_offset, offset if last is None else last)
        self._forget(key, msgspec.structs.replace(entry, segments=kept, log_end_offset=end))
        for name in sorted(stored.files, reverse=True):
            match = SEGMENT_FILE.fullmatch(name)
            if match is None:
                continue
            base = int(match["base"])
            is_index = base == last and match["kind"] in ("index", "timeindex", "txnindex")
            if base in gone or is_index or (match["kind"] == "snapshot" and base > offset):
                self._store.remove(f"{stored.name}/{name}")
        self._found.pop(key)
        self._root[stored.name] = Entry(name=stored.name, is_directory=True)
        copy = self._stage(key, old.log.topic_id, old.bounds, now_ms, offset)
        if last is None:
            copy.begin_at(offset, now_ms=now_ms)
        self._submit(key, with_tail=True)
        self._finish(key)
        return copy

    def _close(self, key: TopicPartition) -> None:
        """Stop writing a partition."""
        self._finish(key)
        copy = self._copies.pop(key, None)
        if copy is not None:
            copy.log.abandon()
            self._known[key] = copy.entry()
            self._total_bytes -= self._staged_bytes.pop(key, 0)

    def _forget(self, key: TopicPartition, entry: PartitionEntry | None) -> None:
        """Replace a partition in the manifest, before its files change. entry: what remains."""
        self._known.pop(key, None)
        if entry is not None:
            self._known[key] = entry
        if self._last is None or self._part is not None or key[0] not in self._last.topics:
            return
        topic = self._last.topics[key[0]]
        partitions = {number: each for number, each in topic.partitions.items() if number != key[1]}
        if entry is not None:
            partitions[key[1]] = entry
        topics = self._last.topics | {key[0]: msgspec.structs.replace(topic, partitions=partitions)}
        self._write_manifest(msgspec.structs.replace(self._last, topics=topics, complete=False))

    # ---- uploads

    def appended(self, key: TopicPartition) -> None:
        """Upload closed segments; wait if the staging directory is full."""
        self._count(key)
        if self._copies[key].has_closed:
            self._submit(key, with_tail=False)
        if self._total_bytes > STAGED_BYTES:
            self._relieve()

    def _count(self, key: TopicPartition) -> None:
        staged = self._copies[key].staged_bytes
        self._total_bytes += staged - self._staged_bytes.get(key, 0)
        self._staged_bytes[key] = staged

    def _relieve(self) -> None:
        """Close the largest open segments until half of the staging directory is free, and wait for that."""
        largest = sorted(self._staged_bytes, key=self._staged_bytes.__getitem__, reverse=True)
        expected = self._total_bytes
        for key in largest:
            if expected <= STAGED_BYTES // 2:
                break
            expected -= self._staged_bytes[key]
            copy = self._copies[key]
            if copy.log.segments.active.size_bytes:
                copy.roll(time.time_ns() // 1_000_000)
            self._submit(key, with_tail=False)
        while self._total_bytes > STAGED_BYTES // 2 and self._running:
            self._collect(WAIT_S)
            for key in largest:
                if self._copies[key].has_closed:
                    self._submit(key, with_tail=False)

    def _submit(self, key: TopicPartition, *, with_tail: bool) -> None:
        """Upload a partition in the background, unless that is under way."""
        if key not in self._running.values():
            upload = self._copies[key].upload(with_tail=with_tail)
            self._running[self._pool.submit(upload.run, self._store)] = key

    def _collect(self, timeout_s: float) -> None:
        """Note finished uploads; wait for the first one up to a time. Raises LogError if one has failed."""
        self._lease.renew_if_due()
        for done in wait(self._running, timeout_s, FIRST_COMPLETED).done:
            key = self._running.pop(done)
            self._copies[key].written(done.result())
            self._count(key)

    def _finish(self, key: TopicPartition) -> None:
        """Wait for the upload of a partition."""
        while key in self._running.values():
            self._collect(WAIT_S)

    def checkpoint(self, manifest: MakeManifest, *, now_ms: int) -> None:
        """Upload what is due; write the checkpoints and the manifest of what is in the store."""
        self._collect(0)
        now = time.monotonic()
        for key, copy in self._copies.items():
            if copy.is_uploaded:
                continue
            active, growth = copy.log.segments.active, copy.tail_growth
            is_late = now - copy.uploaded.tail_at > TAIL_S
            is_due = copy.is_complete and growth * TAIL_GROWTH >= active.size_bytes
            if (is_late or is_due) and active.size_bytes > TAIL_BYTES:
                copy.roll(now_ms)
                self._submit(key, with_tail=False)
            elif is_late or is_due:
                self._submit(key, with_tail=True)
        self._write_state(manifest)

    def _write_state(self, manifest: MakeManifest) -> None:
        """Write the checkpoints and the manifest, if they have changed."""
        if self._part is not None:
            self._write_changed(self._part_file(PART_ENDING), msgspec.json.encode(self._copies[self._part].entry()))
            return
        entries = self._known | {key: copy.entry() for key, copy in self._copies.items()}
        ends = {key: entry.log_end_offset for key, entry in entries.items()}
        starts = {key: entry.log_start_offset for key, entry in entries.items() if entry.log_start_offset}
        self._write_changed(HIGH_WATERMARKS, render_offset_checkpoint(ends))
        self._write_changed(LOG_START_OFFSETS, render_offset_checkpoint(starts))
        self._write_changed(RECOVERY_POINTS, render_offset_checkpoint(ends))
        new, last = manifest(), self._last
        if last is None or msgspec.structs.replace(new, written_ms=last.written_ms, began_ms=last.began_ms) != last:
            self._write_manifest(new)
        while self._parts:  # the manifest has them now
            self._store.remove(self._parts.pop())

    def _write_changed(self, name: str, data: bytes) -> None:
        if self._written.get(name) != data:
            self._store.write(name, data)
            self._written[name] = data

    def _write_manifest(self, manifest: Manifest) -> None:
        self._store.write(MANIFEST, manifest.render())
        self._last = manifest

    # ---- end

    def close(self, manifest: MakeManifest, *, clean: bool) -> None:
        """Upload the rest, with the indexes of open segments, and write the manifest; give the lease back."""
        try:
            if clean:
                self._upload_rest()
                if self._part is None:
                    self._store.write(CLEAN_SHUTDOWN, render_clean_shutdown())
                self._write_state(manifest)
        finally:
            self._give_up()
            try:
                self._lease.release()
            except KwireError:
                if clean:
                    raise

    def _upload_rest(self) -> None:
        for key, copy in self._copies.items():
            self._finish(key)
            if copy.is_finished:
                continue
            copy.log.close()
            self._submit(key, with_tail=True)
            while len(self._running) > 2 * UPLOADS:
                self._collect(WAIT_S)
        while self._running:
            self._collect(WAIT_S)


def parse_part(data: bytes, file: str) -> PartitionEntry:
    """Parse what a process has copied of a partition. file: for errors. Raises LogError."""
    try:
        return msgspec.json.decode(data, type=PartitionEntry)
    except msgspec.DecodeError as error:
        raise LogError(f"not written by a pull: {error}; remove it", file) from error
