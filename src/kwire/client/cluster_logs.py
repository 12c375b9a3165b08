"""The logs of a running cluster, with the reading interface of a log directory.

    ClusterLogs           kafka://host:port/topic as a LogSource
      ClusterLog            one partition as a ReadableLog
        pin()                 Fetch requests: each response is a run of stored batches, as the broker has them

A read covers the offsets that exist when it begins. Leader changes are followed. Records that retention deletes before
they are read are skipped, and noted in `ignored`; a log that was truncated, or a topic that was deleted, is an error.
Memory: two Fetch responses a read (max.partition.fetch.bytes, or one batch if that is larger).
What a cluster does not tell is None: segments and positions in files.
"""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kwire.client.aborted import aborted_transactions
from kwire.client.address import ClusterAddress
from kwire.client.client import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    UNKNOWN_TOPIC,
    Client,
    OffsetAndTimestamp,
)
from kwire.client.fetch_requests import BY_ID_VERSION, FETCH, Fetched
from kwire.client.partition_state import fetch_leader_epochs, fetch_sizes
from kwire.errors import BrokerError, CorruptBatch, LogError, LogTruncated, UnsupportedVersion
from kwire.identifiers import TopicPartition
from kwire.log.files.file_names import Ignored, SegmentFiles
from kwire.log.files.segment import Segment
from kwire.log.files.segment_batches import open_batches
from kwire.log.files.time_lookup import MAX_TIMESTAMP, TimestampAndOffset
from kwire.log.reading.readable_log import LogSource, ReadableLog
from kwire.log.reading.runs import Isolation, PinnedRange, Run, check_bounds, check_timestamp
from kwire.protocol.error_codes import ErrorCode
from kwire.records.format.batch_header import batch_spans, parse_header
from kwire.storage.checkpoints import LeaderEpoch
from kwire.storage.store import Entry, Store, StoredFile

if TYPE_CHECKING:
    from kwire.records import Batch

__all__ = ["ClusterLog", "ClusterLogs"]

LIST_OFFSETS, MAX_TIMESTAMP_VERSION = 2, 7  # KIP-734
FETCHED = "fetched"


class Session:
    """The connections to a cluster: `client` for all requests but reads, and one client for each read in progress."""

    def __init__(self, address: ClusterAddress, settings: Mapping[str, object]) -> None:
        self.address, self._settings = address, dict(settings)
        self.client = address.connect(settings)
        self._idle: list[Client] = []
        self._all = [self.client]
        self.close = weakref.finalize(self, _close, self._all)

    @contextmanager
    def reader(self) -> Iterator[Client]:
        """Lend a client for one read: Fetch requests that are under way occupy its connections."""
        try:
            client = self._idle.pop()  # one call: several threads may read
        except IndexError:
            client = self.address.connect(self._settings)
            self._all.append(client)
        try:
            yield client
        finally:
            self._idle.append(client)


def _close(clients: list[Client]) -> None:
    for client in clients:
        client.close()


class Offsets:
    """Log start and end offsets of partitions, looked up for all of them on first use."""

    def __init__(self, client: Client, keys: Iterable[TopicPartition]) -> None:
        self._client, self._keys = client, list(keys)
        self._found: dict[tuple[int, str], dict[TopicPartition, OffsetAndTimestamp]] = {}
        self._sizes: dict[TopicPartition, int] | None = None

    def find(self, key: TopicPartition, timestamp: int, isolation: str = "read_uncommitted") -> OffsetAndTimestamp:
        """Return the result of ListOffsets. Raises BrokerError, ConnectionFailed."""
        kind = timestamp, isolation
        if kind not in self._found:
            wanted = dict.fromkeys(self._keys, timestamp)
            self._found[kind] = self._client.list_offsets(wanted, isolation=isolation)
        return self._found[kind][key]

    def newest(self, key: TopicPartition) -> int | None:
        """Return the largest timestamp in ms; None if there is none, or if the broker does not support the lookup."""
        connection = self._client.connection(self._client.leader(key))
        try:
            if connection.version_for(LIST_OFFSETS) < MAX_TIMESTAMP_VERSION:
                return None
            timestamp = self.find(key, MAX_TIMESTAMP).timestamp
        except UnsupportedVersion:
            return None
        return None if timestamp == -1 else timestamp

    def size(self, key: TopicPartition) -> int | None:
        """Return the size of the leader's segments in bytes; None if the account may not see it."""
        if self._sizes is None:
            self._sizes = fetch_sizes(self._client, self._keys)
        return self._sizes.get(key)


class ClusterLogs(LogSource["ClusterLog"]):
    """The partitions of a cluster: a mapping from (topic, partition) to ClusterLog, sorted.

    Topics are listed at construction, offsets are looked up on first use. Create a new object, or call reopened(), to
    see newer ones. Connections are closed with close(), or with the last reference.

    url: of the cluster. ignored: partitions that cannot be read, and records that retention deleted during a read.
    client: for other requests, while no iterator of it is under way.
    """

    def __init__(self, url: str, **settings: object) -> None:
        """url: kafka://host:port[,host:port][/topic[-partition]]. settings: Kafka's client configs, `_` for `.`.

        Raises OptionError for a wrong URL, config, topic or partition; BrokerError, ConnectionFailed.
        """
        self._open(url, Session(ClusterAddress.parse(url), settings))

    def _open(self, url: str, session: Session) -> None:
        self.url, self._session = url, session
        self.ignored: list[Ignored] = []
        topic, partition = session.address.resolve(session.client)
        partitions: dict[TopicPartition, tuple[uuid.UUID | None, int]] = {}
        for name, each in sorted(session.client.metadata(None if topic is None else [topic]).topics.items()):
            if each.error_code:
                self.ignored.append(Ignored(name=name, reason=each.error_code.name))
            for number, of_partition in each.partitions.items():
                if partition not in (None, number):
                    continue
                if of_partition.leader < 0:
                    self.ignored.append(Ignored(name=f"{name}-{number}", reason="no leader"))
                else:
                    partitions[name, number] = each.topic_id, of_partition.leader_epoch
        if not partitions and self.ignored and topic is not None:
            problems = "; ".join(f"{each.name}: {each.reason}" for each in self.ignored[:5])
            raise LogError(f"no readable partition: {problems}", url)
        offsets = Offsets(session.client, partitions)
        self.partitions = {
            key: ClusterLog(session, *key, topic_id=topic_id, offsets=offsets, notes=self.ignored)
            for key, (topic_id, _) in partitions.items()
        }

    @property
    def address(self) -> ClusterAddress:
        """The parsed URL."""
        return self._session.address

    @property
    def client(self) -> Client:
        """The client of the cluster."""
        return self._session.client

    def reopened(self) -> ClusterLogs:
        """Return the cluster's logs as they are now, over the same connections."""
        again = ClusterLogs.__new__(ClusterLogs)
        again._open(self.url, self._session)
        return again

    def close(self) -> None:
        """Close all connections."""
        self._session.close()


class ClusterLog(ReadableLog):
    """The log of one partition on its leader. Created by ClusterLogs.

    Offsets, sizes and times are requested on first use and kept; a read looks them up again when it begins.
    log_end_offset and high_watermark are the same: a broker shows consumers no record above its high watermark.
    """

    def __init__(
        self,
        session: Session,
        topic: str,
        partition: int,
        *,
        topic_id: uuid.UUID | None,
        offsets: Offsets,
        notes: list[Ignored],
    ) -> None:
        self._session, self._offsets, self._notes = session, offsets, notes
        self.topic, self.partition = topic, partition
        self._topic_id = topic_id

    def __repr__(self) -> str:
        return f"ClusterLog({self.url!r})"

    @property
    def _key(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def url(self) -> str:
        """The URL of the partition."""
        return f"{self._session.address.cluster}/{self.topic}-{self.partition}"

    @property
    def source_url(self) -> str:
        """The URL of the cluster."""
        return str(self._session.address.cluster)

    def reopened(self) -> ClusterLog:
        """Return the same partition with the offsets of now."""
        return ClusterLog(
            self._session,
            self.topic,
            self.partition,
            topic_id=self._topic_id,
            offsets=Offsets(self._session.client, [self._key]),
            notes=self._notes,
        )

    # ---- what is known without reading batches

    @property
    def topic_id(self) -> uuid.UUID | None:
        """Topic id; None before Kafka 2.8."""
        return self._topic_id

    @cached_property
    def leader_epochs(self) -> list[LeaderEpoch]:
        """Leader epochs with records of the log, oldest first; empty before Kafka 0.11. Raises BrokerError."""
        try:
            return fetch_leader_epochs(self._session.client, self._key, self.log_start_offset)
        except UnsupportedVersion:
            return []

    @property
    def log_start_offset(self) -> int:
        """First available offset."""
        return self._offsets.find(self._key, EARLIEST_TIMESTAMP).offset

    @property
    def log_end_offset(self) -> int:
        """High watermark: consumers see no records above it."""
        return self._offsets.find(self._key, LATEST_TIMESTAMP).offset

    @property
    def high_watermark(self) -> int:
        """High watermark, the same as log_end_offset."""
        return self.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """Start of the oldest open transaction, or the high watermark."""
        return min(self._offsets.find(self._key, LATEST_TIMESTAMP, "read_committed").offset, self.log_end_offset)

    @property
    def segment_count(self) -> None:
        """None: a cluster does not tell."""
        return None

    @property
    def size_bytes(self) -> int | None:
        """Size of the leader's segments, of DescribeLogDirs; None without the permission to describe the cluster."""
        return self._offsets.size(self._key)

    @property
    def last_timestamp(self) -> int | None:
        """Largest timestamp in ms; None without records, and before Kafka 3.0."""
        return self._offsets.newest(self._key)

    @property
    def damage(self) -> CorruptBatch | None:
        """None: brokers serve only what precedes damage at the end of their logs."""
        return None

    def fingerprint(self) -> list[list[int]]:
        """Return the log start and end offsets and the topic id."""
        return [[self.log_start_offset, self.log_end_offset, self._topic_id.int if self._topic_id else 0]]

    def has_changed(self, again: ClusterLog) -> bool:
        """Return False: nothing that a broker responds is stale."""
        return False

    @property
    def is_deleted(self) -> bool:
        """Whether the topic was deleted, or deleted and created again."""
        return self._session.client.is_gone(self.topic, self._topic_id)

    def bounds(self, start_offset: int, end_offset: int | None, isolation: str) -> tuple[int, int]:
        """Return the range [start, end) of a read that begins now: see ReadableLog.bounds."""
        check_bounds(start_offset, isolation, end_offset)
        now = Offsets(self._session.client, [self._key])
        end = now.find(self._key, LATEST_TIMESTAMP, isolation).offset
        start = max(start_offset, now.find(self._key, EARLIEST_TIMESTAMP).offset)
        return start, end if end_offset is None else min(end, end_offset)

    def offset_for_time(
        self, timestamp: int, *, isolation: Isolation = "read_uncommitted"
    ) -> TimestampAndOffset | None:
        """Find the earliest record at or after `timestamp` (ms), by ListOffsets; None if there is none."""
        check_timestamp(timestamp)
        listed = self._session.client.list_offsets({self._key: timestamp}, isolation=isolation)[self._key]
        return None if listed.offset < 0 else TimestampAndOffset(listed.offset, listed.timestamp)

    # ---- reading

    def pin(
        self, start_offset: int = 0, end_offset: int | None = None, isolation: Isolation = "read_uncommitted"
    ) -> PinnedRange:
        """Fix a range of offsets for a read, and fetch it as runs: see ReadableLog.pin.

        The runs raise LogError if the topic is deleted or the log truncated meanwhile, BrokerError, ConnectionFailed.
        """
        start, end = self.bounds(start_offset, end_offset, isolation)
        return PinnedRange(
            topic=self.topic,
            partition=self.partition,
            start_offset=start,
            end_offset=end,
            runs=self._runs(start, end, isolation),
        )

    def batches(self, start_offset: int = 0) -> Iterator[tuple[Segment, Batch]]:
        """Iterate over the batches from the one that contains start_offset on, up to the present high watermark."""
        pinned = self.pin(start_offset)
        for run in pinned.runs:
            for batch in open_batches(run.segment, run.file, run.start_offset):
                if batch.magic == 2 and batch.base_offset >= pinned.end_offset:
                    return
                yield run.segment, batch

    def _runs(self, start: int, end: int, isolation: str) -> Iterator[Run]:
        with self._session.reader() as client:
            offset = start
            while offset < end:
                try:
                    for fetched in client.read(
                        self.topic, self.partition, offset, end, isolation=isolation, topic_id=self._topic_id
                    ):
                        yield self._run(fetched)
                        offset = fetched.next_offset
                    self._check_topic(client)
                    return
                except BrokerError as error:
                    offset = self._resume(client, error, offset, end)

    def _run(self, fetched: Fetched) -> Run:
        whole = max((end for _, end in batch_spans(fetched.records)), default=0)
        store = FetchedStore(self.url, fetched.records[:whole])
        first = parse_header(fetched.records, 0, 0, self.url)
        base = fetched.start_offset if first is None else min(first.stored_offset, fetched.start_offset)
        segment = Segment(
            store,
            "",
            SegmentFiles(base_offset=base, names={"log": FETCHED}),
            next_base=fetched.next_offset,
            size_bytes=whole,
        )
        aborted = aborted_transactions(fetched)
        return Run(segment, store.open(FETCHED), fetched.start_offset, lambda start, end, *, skip_missing: aborted)

    def _resume(self, client: Client, error: BrokerError, offset: int, end: int) -> int:
        """Return where a read continues after retention has overtaken it. Raises LogError for what ends it."""
        if isinstance(error, LogTruncated):
            raise LogError(error.what, self.url) from error
        if error.code in UNKNOWN_TOPIC:
            what = "the topic was deleted, or deleted and created again, during the read"
            raise LogError(f"{what}; read up to offset {offset}", self.url) from error
        if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise error
        now = Offsets(client, [self._key])
        first, last = (now.find(self._key, each).offset for each in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP))
        if first <= offset:
            what = f"the log ends at offset {last}; it had offsets up to {end - 1} when the read began"
            raise LogError(f"{what}: it was truncated, or the topic was created again", self.url) from error
        skipped = f"retention deleted offsets {offset} to {min(first, end) - 1} before they were read"
        self._notes.append(Ignored(name=f"{self.topic}-{self.partition}", reason=skipped))
        return first

    def _check_topic(self, client: Client) -> None:
        """Raise LogError if another topic of this name was read: brokers before 3.1 do not check the id."""
        if self._topic_id is None:
            return
        by_id = client.connection(client.leader(self._key)).version_for(FETCH) >= BY_ID_VERSION
        if not by_id and client.is_gone(self.topic, self._topic_id):
            raise LogError("the topic was deleted, or deleted and created again, during the read", self.url)


class FetchedFile(StoredFile):
    """The batches of a Fetch response."""

    window_bytes = 1 << 12

    def __init__(self, url: str, data: memoryview) -> None:
        self.url, self._data = url, data

    def size(self) -> int:
        """Return the number of bytes."""
        return len(self._data)

    def pread(self, position: int, n: int) -> bytes:
        """Return up to n bytes from position."""
        return bytes(self._data[position : position + n])

    def readinto(self, position: int, view: memoryview) -> int:
        """Fill view from position; return the number of bytes."""
        part = self._data[position : position + len(view)]
        view[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Do nothing."""


class FetchedStore(Store):
    """A store with one file, the batches of a Fetch response. Every file has the partition's URL."""

    def __init__(self, url: str, data: memoryview) -> None:
        self.options: Mapping[str, Any] = {}
        self.url, self._data = url, data

    def url_of(self, path: str) -> str:
        """Return the URL of the partition."""
        return self.url

    def list(self, path: str) -> list[Entry]:
        """List the file."""
        return [Entry(name=FETCHED, is_directory=False, size_bytes=len(self._data))]

    def open(self, path: str, *, is_closed: bool = False) -> StoredFile:
        """Return the file."""
        return FetchedFile(self.url, self._data)

    def is_file(self) -> bool:
        """Return False."""
        return False
