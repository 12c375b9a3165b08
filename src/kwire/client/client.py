"""A blocking client: metadata, offsets, ranges of records, whole batches, transactions. One thread at a time.

    with Client("localhost:9092") as client:
        client.metadata(["orders"]).topics["orders"].partitions
        client.list_offsets({("orders", 0): EARLIEST_TIMESTAMP})
        for fetched in client.read("orders", 0, 0, 1000): ...           # bytes of complete batches

Requests go to the leader of a partition, also after the leader has changed. Retriable errors are retried for
default.api.timeout.ms. Other errors raise BrokerError with Kafka's error code.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

from kwire.client.broker_connection import BrokerConnection
from kwire.client.cluster import Cluster, parse_metadata
from kwire.client.failures import ConnectionFailures, is_final, is_unknown_host
from kwire.client.settings import ClientSettings
from kwire.errors import BrokerError, ConnectionFailed, LogTruncated
from kwire.identifiers import TopicPartition
from kwire.messages import (
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
)
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode
from kwire.records import read_batches
from kwire.records.batch_header import batch_spans

__all__ = ["EARLIEST_TIMESTAMP", "LATEST_TIMESTAMP", "Client", "Fetched", "OffsetAndTimestamp"]

LATEST_TIMESTAMP, EARLIEST_TIMESTAMP = -1, -2
ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
# The last versions with topic names instead of topic ids: all brokers still support them.
FETCH_VERSION, PRODUCE_VERSION, METADATA_VERSION = 12, 11, 12
FETCH_BY_ID_VERSION = 13
TRUNCATION_VERSION = 12  # brokers compare the leader epoch of the last fetched batch with their log (KIP-320, KIP-595)
FETCH_WAIT_MS = 500
TOPIC_CHECKS = 20  # that find no topic or another id until it counts as deleted: a broker's metadata may be stale
UNKNOWN_TOPIC = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
GROUP, TRANSACTION = 0, 1
FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR = 1, 2, 3, 10

if TYPE_CHECKING:
    from kwire.messages.fetch_response import PartitionData

T = TypeVar("T")
R = TypeVar("R", bound=Message)


class OffsetAndTimestamp(NamedTuple):
    """A result of ListOffsets; timestamp in ms, -1 for the start or end of a log."""

    offset: int
    timestamp: int


class Fetched(NamedTuple):
    """A Fetch response for a partition.

    records: complete batches, which may start before and end after the requested offsets.
    aborted: (producer id, first offset) of the aborted transactions in records, for read_committed.
    high_watermark, last_stable_offset, log_start_offset: of the partition at that time; -1 if the broker does not
    report them. start_offset: the requested one. next_offset: after the last batch.
    """

    records: memoryview
    aborted: tuple[tuple[int, int], ...]
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    start_offset: int = -1
    next_offset: int = -1


class Client:
    """A blocking client, for one thread at a time. Connections are opened when needed.

    settings: Kafka's client configs, with dots or underscores; see kwire.client.settings. Raises OptionError.
    """

    def __init__(self, bootstrap_servers: str | None = None, **settings: object) -> None:
        if bootstrap_servers is not None:
            settings["bootstrap.servers"] = bootstrap_servers
        self.settings = ClientSettings.parse(settings)
        self._connections: dict[tuple[str, int], BrokerConnection] = {}
        self._cluster: Cluster | None = None
        self._leaders: dict[TopicPartition, int] = {}
        self.failures = ConnectionFailures()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ---- connections and retries

    def connection(self, node_id: int | None = None) -> BrokerConnection:
        """Return an open connection to a broker, by default any. Raises ConnectionFailed, BrokerError (SASL)."""
        if node_id is not None:
            return self._connect(self._address(node_id))
        known = [] if self._cluster is None else list(self._cluster.brokers.values())
        open_now = [each for each in known if each in self._connections and self._connections[each].is_open]
        if open_now:
            return self._connections[open_now[0]]
        failure: ConnectionFailed | None = None
        for address in [*random.sample(known, len(known)), *self.settings.bootstrap_servers]:
            try:
                return self._connect(address)
            except ConnectionFailed as error:
                if failure is None or not self._is_final(error):
                    failure = error
        assert failure is not None  # bootstrap.servers is not empty
        raise failure

    def open_connection(self, node_id: int) -> BrokerConnection:
        """Open a connection that the caller owns, beside the client's. Raises like connection()."""
        return self._open(self._address(node_id))

    def _address(self, node_id: int) -> tuple[str, int]:
        cluster = self._cluster or self._update_metadata([])
        if node_id not in cluster.brokers:
            raise ConnectionFailed("not in the cluster", f"broker {node_id}")
        return cluster.brokers[node_id]

    def _connect(self, address: tuple[str, int]) -> BrokerConnection:
        connection = self._connections.get(address)
        if connection is None or not connection.is_open:
            connection = self._connections[address] = self._open(address)
        return connection

    def _open(self, address: tuple[str, int]) -> BrokerConnection:
        connection = BrokerConnection(*address, self.settings)
        self.failures.clear(connection.address)
        return connection

    def _is_final(self, error: ConnectionFailed) -> bool:
        """Return whether retries are useless; the name of a broker that was there before may come back."""
        return is_final(error) or (self._cluster is None and is_unknown_host(error))

    def retry(self, attempt: Callable[[], T]) -> T:
        """Return attempt(); repeat it after retriable errors, for at most default.api.timeout.ms."""
        deadline = time.monotonic() + self.settings.default_api_timeout_ms / 1000
        wait_ms = float(self.settings.retry_backoff_ms)
        while True:
            try:
                return attempt()
            except (BrokerError, ConnectionFailed) as error:
                if isinstance(error, ConnectionFailed):
                    retriable = not self._is_final(error)
                else:
                    retriable = ErrorCode(error.code).retriable
                if not retriable or time.monotonic() + wait_ms / 1000 > deadline:
                    raise
                if isinstance(error, ConnectionFailed):
                    self.failures.note(error)
                self._leaders.clear()
            time.sleep(wait_ms / 1000 * random.uniform(0.8, 1.2))
            wait_ms = min(wait_ms * 2, self.settings.retry_backoff_max_ms)

    @overload
    def request(
        self, message: Message, response: type[R], *, node_id: int | None = None, version: int | None = None
    ) -> R: ...
    @overload
    def request(self, message: Message, *, node_id: int | None = None, version: int | None = None) -> Message: ...
    def request(
        self,
        message: Message,
        response: type[Message] = Message,
        *,
        node_id: int | None = None,
        version: int | None = None,
    ) -> Message:
        """Send a request and return its response, with retries if the connection fails.

        response: the class of the response, for type checkers. node_id: the broker, by default any. version: maximum
        version, by default the highest that both sides support.
        """
        return self.retry(lambda: self.connection(node_id).request(message, response, version=version))

    # ---- metadata

    def metadata(self, topics: Iterable[str] | None = None) -> Cluster:
        """Request the metadata of brokers and topics, all topics by default. Never creates a topic."""
        names = None if topics is None else list(topics)
        return self.retry(lambda: self._update_metadata(names))

    def _update_metadata(self, topics: list[str] | None) -> Cluster:
        connection = self.connection()
        version = min(METADATA_VERSION, connection.version_for(METADATA))
        if version < 4 and topics:
            topics = None  # these versions create the topics that a request names
        request = MetadataRequest(
            topics=None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=version < 4,
        )
        if version == 0:
            request.topics = []  # requests all topics
        cluster = parse_metadata(connection.request(request, MetadataResponse, version=version))
        self._cluster = cluster
        self._leaders.update(cluster.leaders)
        return cluster

    def leader(self, key: TopicPartition) -> int:
        """Return the node id of a partition's leader. Raises BrokerError if it is unknown or has no leader."""
        if key not in self._leaders:
            topic = self._update_metadata([key[0]]).topics.get(key[0])
            if topic is None or topic.error_code:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code
                raise BrokerError(f"topic {key[0]!r}: {code.name}", code)
            if key[1] not in topic.partitions:
                raise BrokerError(
                    f"topic {key[0]!r} has no partition {key[1]}, it has {len(topic.partitions)} partitions",
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                )
        if key not in self._leaders:
            raise BrokerError(f"{key[0]}-{key[1]} has no leader", ErrorCode.LEADER_NOT_AVAILABLE)
        return self._leaders[key]

    def forget_leader(self, key: TopicPartition) -> None:
        """Look up the leader of (topic, partition) again when it is needed next."""
        self._leaders.pop(key, None)

    def is_ready_for(self, key: TopicPartition) -> bool:
        """Return whether the leader of (topic, partition) is known and a connection to it open."""
        if self._cluster is None or key not in self._leaders:
            return False
        connection = self._connections.get(self._cluster.brokers.get(self._leaders[key], ("", 0)))
        return connection is not None and connection.is_open

    def coordinator(self, key: str, kind: int = TRANSACTION) -> int:
        """Return the node id of the coordinator of a transactional id (TRANSACTION) or group (GROUP)."""

        def attempt() -> int:
            connection = self.connection()
            version = min(connection.version_for(FIND_COORDINATOR), 6)
            request = FindCoordinatorRequest(key_type=kind)
            if version >= 4:
                request.coordinator_keys = [key]
            else:
                request.key = key
            response = connection.request(request, FindCoordinatorResponse, version=version)
            found = response.coordinators[0] if version >= 4 else response
            raise_for(found.error_code, f"coordinator of {key!r}", found.error_message)
            self._update_metadata([])
            return found.node_id

        return self.retry(attempt)

    # ---- offsets

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, isolation: str | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Look up the first offset at or after a timestamp in ms, for each partition; -1 if there is none.

        timestamps: also EARLIEST_TIMESTAMP or LATEST_TIMESTAMP, for the start or end of the log.
        """
        level = ISOLATION[isolation or self.settings.isolation_level]
        found: dict[TopicPartition, OffsetAndTimestamp] = {}

        def attempt() -> None:
            for node_id, keys in self._by_leader(key for key in timestamps if key not in found).items():
                request = ListOffsetsRequest(
                    replica_id=-1,
                    isolation_level=level,
                    topics=[
                        ListOffsetsRequest.ListOffsetsTopic(
                            name=topic,
                            partitions=[
                                ListOffsetsRequest.ListOffsetsPartition(
                                    partition_index=partition, timestamp=timestamps[topic, partition]
                                )
                                for partition in partitions
                            ],
                        )
                        for topic, partitions in by_topic(keys).items()
                    ],
                )
                connection = self.connection(node_id)
                if connection.version_for(LIST_OFFSETS) < 2:
                    request.isolation_level = 0
                for each in connection.request(request, ListOffsetsResponse).topics:
                    for partition in each.partitions:
                        raise_for(partition.error_code, f"offsets of {each.name}-{partition.partition_index}")
                        old_style = partition.old_style_offsets
                        offset = old_style[0] if old_style else partition.offset
                        found[each.name, partition.partition_index] = OffsetAndTimestamp(offset, partition.timestamp)

        self.retry(attempt)
        return found

    def _by_leader(self, keys: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        groups: dict[int, list[TopicPartition]] = {}
        for key in keys:
            groups.setdefault(self.leader(key), []).append(key)
        return groups

    # ---- reading

    def read(
        self,
        topic: str,
        partition: int,
        start_offset: int,
        end_offset: int,
        *,
        isolation: str | None = None,
        topic_id: uuid.UUID | None = None,
    ) -> Iterator[Fetched]:
        """Yield the batches with offsets in [start_offset, end_offset), a Fetch response at a time.

        The next request is sent before a response is yielded, so that broker and caller work at the same time: the
        client is free for other requests once the iteration has ended. Waits up to default.api.timeout.ms for records
        that are not written yet.
        topic_id: fail if the topic has another id (brokers before 3.1 do not check it).
        Raises BrokerError: OFFSET_OUT_OF_RANGE if start_offset is not in the log, REQUEST_TIMED_OUT if the log ends
        before end_offset, UNKNOWN_TOPIC_ID if the topic was deleted and created again; LogTruncated if a new leader
        does not have the batches that were read (brokers from 2.7 on); CorruptBatch for batches that do not fit the
        request.
        """
        key, position, gone = (topic, partition), Position(start_offset), 0
        deadline = time.monotonic() + self.settings.default_api_timeout_ms / 1000
        pending: BrokerConnection | None = None
        try:
            while position.offset < end_offset:
                if pending is None:
                    pending = self.retry(lambda at=position: self._send_fetch(key, at, isolation, topic_id))  # type: ignore[misc]
                connection, pending = pending, None
                try:
                    fetched = self._receive_fetch(connection, key, position, topic_id)
                except (BrokerError, ConnectionFailed) as error:
                    if isinstance(error, BrokerError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        if position.leader_epoch < 0 or isinstance(error, LogTruncated):
                            raise
                        position = Position(position.offset)  # perhaps the leader does not know that epoch
                        continue
                    if isinstance(error, BrokerError) and not ErrorCode(error.code).retriable:
                        raise
                    self.forget_leader(key)
                    if isinstance(error, BrokerError) and error.code in UNKNOWN_TOPIC:
                        gone += self.is_gone(topic, topic_id)
                    if time.monotonic() > deadline or gone == TOPIC_CHECKS:
                        raise
                    time.sleep(self.settings.retry_backoff_ms / 1000)
                    continue
                after = position_after(fetched.records, position, f"{topic}-{partition}")
                if after is None:
                    if time.monotonic() > deadline:
                        what = f"{topic}-{partition}: log ends at offset {position.offset}"
                        what += f", expected records up to offset {end_offset}"
                        raise BrokerError(what, ErrorCode.REQUEST_TIMED_OUT)
                    continue
                position = after
                deadline = time.monotonic() + self.settings.default_api_timeout_ms / 1000
                if position.offset < end_offset:
                    with suppress(BrokerError, ConnectionFailed):  # sent again above, with retries
                        pending = self._send_fetch(key, position, isolation, topic_id)
                yield fetched._replace(next_offset=position.offset)
        finally:
            if pending is not None:  # the caller stopped early: its response must not be taken for another one
                pending.close()

    def is_gone(self, topic: str, topic_id: uuid.UUID | None) -> bool:
        """Return whether metadata has no such topic, or another one of this name. Metadata may be seconds old."""
        found = self.metadata([topic]).topics.get(topic)
        if found is None or found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return True
        return topic_id is not None and found.topic_id not in (None, topic_id)

    def _send_fetch(
        self, key: TopicPartition, position: Position, isolation: str | None, topic_id: uuid.UUID | None
    ) -> BrokerConnection:
        settings = self.settings
        partition = FetchRequest.FetchPartition(
            partition=key[1], fetch_offset=position.offset, partition_max_bytes=settings.max_partition_fetch_bytes
        )
        request = FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=max(settings.fetch_max_bytes, settings.max_partition_fetch_bytes),
            isolation_level=ISOLATION[isolation or settings.isolation_level],
        )
        connection = self.connection(self.leader(key))
        if connection.version_for(FETCH) >= TRUNCATION_VERSION:
            partition.last_fetched_epoch = position.leader_epoch
        if topic_id is not None and connection.version_for(FETCH) >= FETCH_BY_ID_VERSION:
            request.topics = [FetchRequest.FetchTopic(topic_id=topic_id, partitions=[partition])]
            connection.send(request, version=FETCH_BY_ID_VERSION)
        else:
            request.topics = [FetchRequest.FetchTopic(topic=key[0], partitions=[partition])]
            connection.send(request, version=FETCH_VERSION)
        return connection

    def _receive_fetch(
        self, connection: BrokerConnection, key: TopicPartition, position: Position, topic_id: uuid.UUID | None
    ) -> Fetched:
        timeout_ms = self.settings.request_timeout_ms + FETCH_WAIT_MS
        response = connection.receive(FetchResponse, timeout_ms=timeout_ms)
        raise_for(response.error_code, "Fetch")
        for topic in response.responses:
            for each in topic.partitions:
                if each.partition_index == key[1] and (topic.topic == key[0] or topic.topic_id == topic_id):
                    return response_of(each, key, position)
        raise BrokerError(f"{key[0]}-{key[1]}: missing in the Fetch response", ErrorCode.UNKNOWN_SERVER_ERROR)


def by_topic(keys: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic."""
    topics: dict[str, list[int]] = {}
    for topic, partition in keys:
        topics.setdefault(topic, []).append(partition)
    return topics


def response_of(each: PartitionData, key: TopicPartition, position: Position) -> Fetched:
    """Return the response for a partition that was fetched from a position. Raises BrokerError, LogTruncated."""
    raise_for(each.error_code, f"{key[0]}-{key[1]}")
    if each.diverging_epoch.epoch >= 0:
        end = min(each.diverging_epoch.end_offset, position.offset)
        what = f"{key[0]}-{key[1]}: the log was truncated to offset {end} by an unclean leader election"
        what += f"; offsets up to {position.offset - 1} had been read"
        raise LogTruncated(what, ErrorCode.OFFSET_OUT_OF_RANGE, end)
    return Fetched(
        memoryview(each.records or b""),
        tuple((aborted.producer_id, aborted.first_offset) for aborted in each.aborted_transactions or ()),
        each.high_watermark,
        each.last_stable_offset,
        each.log_start_offset,
        position.offset,
    )


class Position(NamedTuple):
    """Where to fetch next. leader_epoch: of the batch before it, -1 if it is unknown."""

    offset: int
    leader_epoch: int = -1


def position_after(records: memoryview, position: Position, where: str) -> Position | None:
    """Return the position after the last whole batch; None without one. Parses the last batch only.

    Raises CorruptBatch for an impossible size, and for batches that end before the requested position: reading would
    never advance. where: the partition, for errors.
    """
    at = max((start for start, _ in batch_spans(records)), default=0)
    last = None
    for batch in read_batches(records[at:], position=at, file=where):
        last = batch
    if last is None:
        return None
    if last.last_offset < position.offset:
        raise last.corrupt(f"a Fetch response for offset {position.offset} ends at offset {last.last_offset}")
    return Position(last.last_offset + 1, last.partition_leader_epoch)


def raise_for(code: int, what: str, message: str | None = None) -> None:
    """Raise BrokerError unless code is NONE."""
    if code:
        name = ErrorCode(code).name
        raise BrokerError(f"{what}: {name}" + (f", {message}" if message else ""), code)
