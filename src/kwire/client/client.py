"""A blocking client: metadata, offsets, ranges of records, whole batches, transactions. One thread at a time.

    with Client("localhost:9092") as client:
        client.metadata(["orders"]).topics["orders"].partitions
        client.list_offsets({("orders", 0): EARLIEST_TIMESTAMP})
        for fetched in client.read("orders", 0, 0, 1000): ...           # bytes of complete batches

Requests go to the leader of a partition, also after the leader has changed; those for records, with client.rack, to the
replica that the leader names. Retriable errors are retried for
default.api.timeout.ms. Other errors raise BrokerError with Kafka's error code.
"""

from __future__ import annotations

import math
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeVar, overload

from kwire.client.broker_connection import BrokerConnection
from kwire.client.cluster import Cluster, Topic, parse_metadata
from kwire.client.failures import ConnectionFailures, is_final, is_unknown_host
from kwire.client.fetch_requests import (
    FETCH,
    FETCH_WAIT_MS,
    NO_SESSION,
    Diverged,
    Fetched,
    FetchSession,
    Position,
    ReadReplica,
    Wanted,
    fetched_from,
    level_of,
)
from kwire.client.settings import ClientSettings
from kwire.errors import BrokerError, ConnectionFailed, LogTruncated, OptionError
from kwire.identifiers import TopicPartition, by_topic
from kwire.messages import (
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
from kwire.protocol.frames import FrameMemory

__all__ = ["EARLIEST_TIMESTAMP", "LATEST_TIMESTAMP", "Client", "OffsetAndTimestamp"]

LATEST_TIMESTAMP, EARLIEST_TIMESTAMP = -1, -2
# The last versions with topic names instead of topic ids: all brokers still support them.
PRODUCE_VERSION, METADATA_VERSION = 11, 12
TOPIC_CHECKS = 20  # that find no topic or another id until it counts as deleted: a broker's metadata may be stale
UNKNOWN_TOPIC = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
GROUP, TRANSACTION = 0, 1
LIST_OFFSETS, METADATA, FIND_COORDINATOR = 2, 3, 10

T = TypeVar("T")
R = TypeVar("R", bound=Message)


class Sent(NamedTuple):
    """A Fetch request under way. node_id: of the broker. is_leader: False for a replica that the leader named."""

    connection: BrokerConnection
    session: FetchSession
    node_id: int
    is_leader: bool


class OffsetAndTimestamp(NamedTuple):
    """A result of ListOffsets; timestamp in ms, -1 for the start or end of a log."""

    offset: int
    timestamp: int


class Client:
    """A blocking client, for one thread at a time. Connections are opened when needed.

    settings: Kafka's client configs, with dots or underscores; see kwire.client.settings. Raises OptionError.
    """

    def __init__(self, bootstrap_servers: str | None = None, **settings: object) -> None:
        if bootstrap_servers is not None:
            settings["bootstrap.servers"] = bootstrap_servers
        self._begin(ClientSettings.parse(settings))

    def _begin(self, settings: ClientSettings) -> None:
        self.settings = settings
        self._connections: dict[tuple[str, int], BrokerConnection] = {}
        self._memory = FrameMemory()
        self._cluster: Cluster | None = None
        self._is_stale = False
        self._leaders: dict[TopicPartition, int] = {}
        self._replicas: dict[TopicPartition, ReadReplica] = {}
        self._deadline = math.inf  # of the retries under way
        self.failures = ConnectionFailures()

    def another(self, *, limit_ms: int) -> Client:
        """Return a client of the same cluster for another thread. limit_ms: highest default.api.timeout.ms."""
        client = Client.__new__(Client)
        client._begin(
            replace(self.settings, default_api_timeout_ms=min(limit_ms, self.settings.default_api_timeout_ms))
        )
        client._cluster, client._is_stale = self._cluster, True  # bootstrap servers may be away
        return client

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
        for address in dict.fromkeys([*random.sample(known, len(known)), *self.settings.bootstrap_servers]):
            try:
                return self._connect(address)
            except ConnectionFailed as error:
                if failure is None or not self._is_final(error):
                    failure = error
                if time.monotonic() > self._deadline:  # each hung broker takes request.timeout.ms
                    break
        assert failure is not None  # bootstrap.servers is not empty
        raise failure

    def take_connection(self, node_id: int) -> BrokerConnection:
        """Return an open connection that belongs to the caller until return_connection(). Raises like connection()."""
        connection = self.connection(node_id)
        del self._connections[self._address(node_id)]
        return connection

    def return_connection(self, node_id: int, connection: BrokerConnection) -> None:
        """Take back a connection without a request in flight: for other requests, or to close it."""
        address = ("", 0) if self._cluster is None else self._cluster.brokers.get(node_id, ("", 0))
        if address in self._connections or not address[0]:
            connection.close()
        else:
            self._connections[address] = connection

    def _address(self, node_id: int) -> tuple[str, int]:
        cluster = self._cluster
        if cluster is None or self._is_stale:
            cluster = self._update_metadata([])
        if node_id not in cluster.brokers:
            raise ConnectionFailed("not in the cluster", f"broker {node_id}")
        return cluster.brokers[node_id]

    def _connect(self, address: tuple[str, int]) -> BrokerConnection:
        connection = self._connections.get(address)
        if connection is None or not connection.is_open:
            connection = self._connections[address] = self._open(address)
        return connection

    def _open(self, address: tuple[str, int]) -> BrokerConnection:
        connection = BrokerConnection(*address, self.settings, self._memory)
        self.failures.clear(connection.address)
        return connection

    def _is_final(self, error: ConnectionFailed) -> bool:
        """Return whether retries are useless; the name of a broker that was there before may come back."""
        return is_final(error) or (self._cluster is None and is_unknown_host(error))

    def is_retriable(self, error: BrokerError | ConnectionFailed) -> bool:
        """Return whether the same request may succeed later."""
        if isinstance(error, ConnectionFailed):
            return not self._is_final(error)
        return ErrorCode(error.code).retriable

    def retry(self, attempt: Callable[[], T], limit_ms: int | None = None) -> T:
        """Return attempt(); repeat it after retriable errors, for at most limit_ms, default.api.timeout.ms by default.

        Each attempt looks up leaders and the addresses of brokers again.
        """
        given_ms = self.settings.default_api_timeout_ms
        deadline = time.monotonic() + (given_ms if limit_ms is None else min(limit_ms, given_ms)) / 1000
        outer, self._deadline = self._deadline, min(deadline, self._deadline)
        try:
            return self._retry_until(self._deadline, attempt)
        finally:
            self._deadline = outer

    def _retry_until(self, deadline: float, attempt: Callable[[], T]) -> T:
        wait_ms = float(self.settings.retry_backoff_ms)
        while True:
            try:
                return attempt()
            except (BrokerError, ConnectionFailed) as error:
                if not self.is_retriable(error) or time.monotonic() + wait_ms / 1000 > deadline:
                    raise
                if isinstance(error, ConnectionFailed):
                    self.failures.note(error)
                    self._is_stale = True
                self._leaders.clear()
            time.sleep(wait_ms / 1000 * random.uniform(0.8, 1.2))
            wait_ms = min(wait_ms * 2, self.settings.retry_backoff_max_ms)

    @overload
    def request(
        self,
        message: Message,
        response: type[R],
        *,
        node_id: int | None = None,
        version: int | None = None,
        limit_ms: int | None = None,
    ) -> R: ...
    @overload
    def request(
        self, message: Message, *, node_id: int | None = None, version: int | None = None, limit_ms: int | None = None
    ) -> Message: ...
    def request(
        self,
        message: Message,
        response: type[Message] = Message,
        *,
        node_id: int | None = None,
        version: int | None = None,
        limit_ms: int | None = None,
    ) -> Message:
        """Send a request and return its response, with retries if the connection fails.

        response: the class of the response, for type checkers. node_id: the broker, by default any. version: maximum
        version, by default the highest that both sides support. limit_ms: of the retries, as in retry().
        """
        return self.retry(lambda: self.connection(node_id).request(message, response, version=version), limit_ms)

    # ---- metadata

    def metadata(self, topics: Iterable[str] | None = None) -> Cluster:
        """Request the metadata of brokers and topics, all topics by default. Never creates a topic.

        Raises OptionError for a string instead of names.
        """
        if isinstance(topics, str):
            raise OptionError(f"topics: expected a list of names, got the string {topics!r}")
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
        self._cluster, self._is_stale = cluster, False
        self._leaders.update(cluster.leaders)
        return cluster

    def leader(self, key: TopicPartition) -> int:
        """Return the node id of a partition's leader. Raises BrokerError if it is unknown or has no leader."""
        if key not in self._leaders:
            topic = self._update_metadata([key[0]]).topics.get(key[0])
            if key not in self._leaders:
                raise without_leader(key, topic)
        return self._leaders[key]

    def forget_leader(self, key: TopicPartition) -> None:
        """Look up the leader of (topic, partition) again when it is needed next."""
        self._leaders.pop(key, None)

    def read_replica(self, key: TopicPartition) -> ReadReplica:
        """Return the state of the replica that (topic, partition) is read from, which all reads of it share."""
        return self._replicas.setdefault(key, ReadReplica())

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
            what = f"coordinator of {key!r}"
            coordinator = only(response.coordinators, what, "FindCoordinator") if version >= 4 else response
            raise_for(coordinator.error_code, what, coordinator.error_message)
            self._update_metadata([])
            return coordinator.node_id

        return self.retry(attempt)

    # ---- offsets

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, isolation: str | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Look up the first offset at or after a timestamp in ms, for each partition; -1 if there is none.

        timestamps: also EARLIEST_TIMESTAMP or LATEST_TIMESTAMP, for the start or end of the log.
        """
        offsets, errors = self.find_offsets(timestamps, isolation=isolation)
        for error in errors.values():
            raise error
        return offsets

    def find_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, isolation: str | None = None, limit_ms: int | None = None
    ) -> tuple[dict[TopicPartition, OffsetAndTimestamp], dict[TopicPartition, BrokerError | ConnectionFailed]]:
        """Look up offsets as list_offsets() does; return them, and the errors of partitions without.

        limit_ms: of the retries, as in retry(). Raises ConnectionFailed, BrokerError if no broker responds.
        """
        level = level_of(isolation or self.settings.isolation_level)
        offsets: dict[TopicPartition, OffsetAndTimestamp] = {}
        errors: dict[TopicPartition, BrokerError | ConnectionFailed] = {}

        def attempt() -> None:
            wanted = [key for key in timestamps if key not in offsets]
            wanted = [key for key in wanted if key not in errors or self.is_retriable(errors[key])]
            unknown = sorted({key[0] for key in wanted if key not in self._leaders})
            topics = self._update_metadata(unknown).topics if unknown else {}
            by_leader: dict[int, list[TopicPartition]] = {}
            for key in wanted:
                if key in self._leaders:
                    by_leader.setdefault(self._leaders[key], []).append(key)
                else:
                    errors[key] = without_leader(key, topics.get(key[0]))
            for node_id, keys in by_leader.items():
                try:
                    connection = self.connection(node_id)
                    of_leader = list_from(connection, {key: timestamps[key] for key in keys}, level)
                except ConnectionFailed as error:
                    of_leader = dict.fromkeys(keys, error)
                for key, each in of_leader.items():
                    if isinstance(each, OffsetAndTimestamp):
                        offsets[key] = each
                        errors.pop(key, None)
                    else:
                        errors[key] = each
            for key in wanted:
                if key in errors and self.is_retriable(errors[key]):
                    raise errors[key]

        try:
            self.retry(attempt, limit_ms)
        except (BrokerError, ConnectionFailed) as error:
            if all(error is not each for each in errors.values()):
                raise  # not of a partition
        return offsets, errors

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
        key, position, gone = (topic, partition), Position(start_offset, -1, topic_id), 0
        deadline = time.monotonic() + self.settings.default_api_timeout_ms / 1000
        pending: Sent | None = None
        try:
            while position.offset < end_offset:
                if pending is None:
                    left_ms = max(0, int((deadline - time.monotonic()) * 1000))
                    pending = self.retry(lambda at=position: self._send_fetch(key, at, isolation), left_ms)  # type: ignore[misc]
                sent, pending = pending, None
                try:
                    received = self._receive_fetch(sent, key, position)
                except (BrokerError, ConnectionFailed) as error:
                    if not sent.is_leader:  # only an error of the leader ends the read
                        self._leave_replica(key, error)
                        continue
                    if isinstance(error, BrokerError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        if position.leader_epoch < 0 or isinstance(error, LogTruncated):
                            raise
                        position = position._replace(leader_epoch=-1)  # perhaps the leader does not know that epoch
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
                if received is None:
                    continue
                fetched, after = received
                if not len(fetched.records):
                    if time.monotonic() > deadline:
                        what = f"{topic}-{partition}: log ends at offset {position.offset}"
                        what += f", expected records up to offset {end_offset}"
                        raise BrokerError(what, ErrorCode.REQUEST_TIMED_OUT)
                    continue
                position = after
                if position.offset < end_offset:
                    with suppress(BrokerError, ConnectionFailed):  # sent again above, with retries
                        pending = self._send_fetch(key, position, isolation)
                yield fetched
                deadline = time.monotonic() + self.settings.default_api_timeout_ms / 1000  # the caller may be slow
        finally:
            if pending is not None:  # the caller stopped early: its response must not be taken for another one
                pending.connection.close()

    def is_gone(self, topic: str, topic_id: uuid.UUID | None) -> bool:
        """Return whether metadata has no such topic, or another one of this name. Metadata may be seconds old."""
        metadata = self.metadata([topic]).topics.get(topic)
        if metadata is None or metadata.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return True
        return topic_id is not None and metadata.topic_id not in (None, topic_id)

    def _send_fetch(self, key: TopicPartition, position: Position, isolation: str | None) -> Sent:
        replica = self.read_replica(key)
        replica.expire()
        if replica.node_id is not None:
            try:
                return self._send_fetch_to(replica.node_id, key, position, isolation, is_leader=False)
            except ConnectionFailed as error:
                if self._is_final(error):
                    raise
                self._leave_replica(key, error)
        return self._send_fetch_to(self.leader(key), key, position, isolation, is_leader=True)

    def _leave_replica(self, key: TopicPartition, error: BrokerError | ConnectionFailed) -> None:
        self.read_replica(key).fail(self.settings)
        self.forget_leader(key)  # perhaps there is another one
        if isinstance(error, ConnectionFailed):
            self.failures.note(error)
            self._is_stale = True

    def _send_fetch_to(
        self, node_id: int, key: TopicPartition, position: Position, isolation: str | None, *, is_leader: bool
    ) -> Sent:
        connection = self.connection(node_id)
        session = FetchSession(epoch=NO_SESSION)
        request, version = session.next_request(
            {key: Wanted(position)},
            connection.version_for(FETCH),
            self.settings,
            isolation or self.settings.isolation_level,
            names_rack=not self.read_replica(key).is_paused,
        )
        connection.send(request, version=version)
        return Sent(connection, session, node_id, is_leader)

    def _receive_fetch(self, sent: Sent, key: TopicPartition, position: Position) -> tuple[Fetched, Position] | None:
        """Return what the response has; None if it names a replica to ask."""
        timeout_ms = self.settings.request_timeout_ms + FETCH_WAIT_MS
        response = sent.connection.receive(FetchResponse, timeout_ms=timeout_ms)
        raise_for(response.error_code, "Fetch")
        replica = self.read_replica(key)
        for _, data in sent.session.accept(response):
            raise_for(data.error_code, f"{key[0]}-{key[1]}")
            if replica.obey(data, sent.node_id, key):
                return None
            fetched = fetched_from(data, key, position)
            if isinstance(fetched, Diverged):
                raise fetched.error()
            if replica.node_id == sent.node_id:
                replica.answered(self.settings)
            return fetched
        raise BrokerError(f"{key[0]}-{key[1]}: missing in the Fetch response", ErrorCode.UNKNOWN_SERVER_ERROR)


def list_from(
    connection: BrokerConnection, timestamps: Mapping[TopicPartition, int], level: int
) -> dict[TopicPartition, OffsetAndTimestamp | BrokerError | ConnectionFailed]:
    """Ask a leader for offsets; return one, or an error, for each partition. Raises ConnectionFailed."""
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=level if connection.version_for(LIST_OFFSETS) >= 2 else 0,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(partition_index=number, timestamp=timestamps[topic, number])
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(timestamps).items()
        ],
    )
    offsets: dict[TopicPartition, OffsetAndTimestamp | BrokerError | ConnectionFailed] = {
        key: missing(f"offsets of {key[0]}-{key[1]}", "ListOffsets") for key in timestamps
    }
    for topic in connection.request(request, ListOffsetsResponse).topics:
        for each in topic.partitions:
            key = topic.name, each.partition_index
            if key not in offsets:
                continue
            if each.error_code:
                code = ErrorCode(each.error_code)
                offsets[key] = BrokerError(f"offsets of {key[0]}-{key[1]}: {code.name}", code)
            else:
                old_style = each.old_style_offsets
                offsets[key] = OffsetAndTimestamp(old_style[0] if old_style else each.offset, each.timestamp)
    return offsets


def without_leader(key: TopicPartition, topic: Topic | None) -> BrokerError:
    """Return the reason why metadata has no leader of a partition. topic: its metadata, if there is any."""
    if topic is None or topic.error_code:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code
        return BrokerError(f"topic {key[0]!r}: {code.name}", code)
    if key[1] not in topic.partitions:
        return BrokerError(
            f"topic {key[0]!r} has no partition {key[1]}, it has {len(topic.partitions)} partitions",
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )
    return BrokerError(f"{key[0]}-{key[1]} has no leader", ErrorCode.LEADER_NOT_AVAILABLE)


def missing(what: str, api: str) -> BrokerError:
    """Return the error for a response that leaves out what was asked for."""
    return BrokerError(f"{what}: missing in the {api} response", ErrorCode.UNKNOWN_SERVER_ERROR)


def only(items: Sequence[T], what: str, api: str) -> T:
    """Return the one element of a response to a request for one thing. Raises BrokerError unless there is one."""
    if len(items) != 1:
        raise missing(what, api)
    return items[0]


def raise_for_offsets(
    codes: Iterable[tuple[TopicPartition, int]], wanted: Iterable[TopicPartition], suffix: str, api: str
) -> None:
    """Raise BrokerError unless a response has the code NONE for each wanted partition. suffix: of 'offset TOPIC-0'."""
    unmentioned = dict.fromkeys(wanted)
    for key, code in codes:
        raise_for(code, f"offset {key[0]}-{key[1]} {suffix}")
        unmentioned.pop(key, None)
    for key in unmentioned:
        raise missing(f"offset {key[0]}-{key[1]} {suffix}", api)


def raise_for(code: int, what: str, message: str | None = None) -> None:
    """Raise BrokerError unless code is NONE."""
    if code:
        name = ErrorCode(code).name
        raise BrokerError(f"{what}: {name}" + (f", {message}" if message else ""), code)
