"""A blocking client: metadata, offsets, ranges of records, whole batches, transactions. One thread at a time.

    with Client("localhost:9092") as client:
        client.metadata(["orders"]).topics["orders"].partitions
        client.list_offsets({("orders", 0): EARLIEST_TIMESTAMP})
        for fetched in client.read("orders", 0, 0, 1000): ...           # bytes of whole batches

It speaks to the leader of a partition, follows it when it moves, and asks again after an error that passes, until
default.api.timeout.ms is over. Errors that do not pass are BrokerError with Kafka's code.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from kwire.client.broker_connection import BrokerConnection
from kwire.client.cluster import Cluster, TopicPartition, parse_metadata
from kwire.client.settings import ClientSettings
from kwire.errors import BrokerError, ConnectionFailed
from kwire.messages import registry
from kwire.protocol.error_codes import ErrorCode
from kwire.records import read_batches
from kwire.records.batch import FRAME_BYTES, SMALLEST_SIZE

__all__ = ["EARLIEST_TIMESTAMP", "LATEST_TIMESTAMP", "Client", "Fetched", "OffsetAndTimestamp"]

LATEST_TIMESTAMP, EARLIEST_TIMESTAMP = -1, -2
ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
# The last versions that name topics and not their ids: every broker that is not older than them has these.
FETCH_VERSION, PRODUCE_VERSION, METADATA_VERSION = 12, 11, 12
FETCH_BY_ID_VERSION = 13
FETCH_WAIT_MS = 500
TOPIC_ID_LOOKS = 10  # that must see another id: the metadata of one broker may be out of date for a moment
GROUP, TRANSACTION = 0, 1

T = TypeVar("T")


class OffsetAndTimestamp(NamedTuple):
    """An answer of ListOffsets; timestamp in ms, -1 where only an offset was asked for."""

    offset: int
    timestamp: int


class Fetched(NamedTuple):
    """One answer of Fetch. records: whole batches, which may begin below the offset asked for and end above the end.

    aborted: (producer id, first offset) of the aborted transactions in it, for read_committed.
    high_watermark, last_stable_offset, log_start_offset: of the partition then; -1 where the broker does not tell.
    """

    records: memoryview
    aborted: tuple[tuple[int, int], ...]
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class Client:
    """See the head of this module. settings: by Kafka's names, dots or underscores; see kwire.client.settings.

    Raises OptionError for settings. Opens connections when they are needed.
    """

    def __init__(self, bootstrap_servers: str | None = None, **settings: Any) -> None:
        if bootstrap_servers is not None:
            settings["bootstrap.servers"] = bootstrap_servers
        self.settings = ClientSettings.parse(settings)
        self._connections: dict[tuple[str, int], BrokerConnection] = {}
        self._cluster: Cluster | None = None
        self._leaders: dict[TopicPartition, int] = {}

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
        """An open connection to a broker, to any without node_id. Raises ConnectionFailed, BrokerError (SASL)."""
        if node_id is not None:
            cluster = self._cluster or self._learn([])
            if node_id not in cluster.brokers:
                raise ConnectionFailed(f"the cluster has no broker {node_id}", str(node_id))
            return self._connect(cluster.brokers[node_id])
        known = [] if self._cluster is None else list(self._cluster.brokers.values())
        open_now = [each for each in known if each in self._connections and self._connections[each].is_open]
        if open_now:
            return self._connections[open_now[0]]
        failure: ConnectionFailed | None = None
        for address in [*random.sample(known, len(known)), *self.settings.bootstrap_servers]:
            try:
                return self._connect(address)
            except ConnectionFailed as error:
                failure = error
        assert failure is not None  # there is a bootstrap server
        raise failure

    def _connect(self, address: tuple[str, int]) -> BrokerConnection:
        connection = self._connections.get(address)
        if connection is None or not connection.is_open:
            connection = self._connections[address] = BrokerConnection(*address, self.settings)
        return connection

    def retry(self, attempt: Callable[[], T]) -> T:
        """attempt() until it gives no error that passes, at most default.api.timeout.ms; then its last error."""
        deadline = time.monotonic() + self.settings.default_api_timeout_ms / 1000
        wait_ms = float(self.settings.retry_backoff_ms)
        while True:
            try:
                return attempt()
            except (BrokerError, ConnectionFailed) as error:
                passes = isinstance(error, ConnectionFailed) or ErrorCode(error.code).retriable
                if not passes or time.monotonic() + wait_ms / 1000 > deadline:
                    raise
                self._leaders.clear()
            time.sleep(wait_ms / 1000 * random.uniform(0.8, 1.2))
            wait_ms = min(wait_ms * 2, self.settings.retry_backoff_max_ms)

    def request(self, message: Any, *, node_id: int | None = None, version: int | None = None) -> Any:
        """One request to a broker (any), its response's body; version: at most. Connections that break are retried."""
        return self.retry(lambda: self.connection(node_id).request(message, version=version))

    # ---- metadata

    def metadata(self, topics: Iterable[str] | None = None) -> Cluster:
        """Brokers and these topics (all of them with None), as they are now. Topics are not made by asking."""
        wanted = None if topics is None else list(topics)
        return self.retry(lambda: self._learn(wanted))

    def _learn(self, topics: list[str] | None) -> Cluster:
        cls: Any = registry.get("MetadataRequest")
        request = cls(
            topics=None if topics is None else [cls.MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=False,
        )
        connection = self.connection()
        version = min(METADATA_VERSION, connection.version_for(cls.API_KEY))
        if version == 0 and topics is None:
            request.topics = []  # version 0 has no null: none named are all
        if version < 4:
            request.allow_auto_topic_creation = True  # those versions cannot say otherwise
        cluster = parse_metadata(connection.request(request, version=version))
        self._cluster = cluster
        self._leaders.update(cluster.leaders)
        return cluster

    def leader(self, key: TopicPartition) -> int:
        """Node id of the leader of (topic, partition). Raises BrokerError where there is no such partition, or none."""
        if key not in self._leaders:
            topic = self._learn([key[0]]).topics.get(key[0])
            if topic is None or topic.error_code:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code
                raise BrokerError(f"topic {key[0]!r}: {code.name}", code)
            if key[1] not in topic.partitions:
                raise BrokerError(
                    f"topic {key[0]!r} has {len(topic.partitions)} partitions, no {key[1]}",
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                )
        if key not in self._leaders:
            raise BrokerError(f"{key[0]}-{key[1]} has no leader", ErrorCode.LEADER_NOT_AVAILABLE)
        return self._leaders[key]

    def is_ready_for(self, key: TopicPartition) -> bool:
        """Whether the leader of (topic, partition) is known, and a connection to it open."""
        if self._cluster is None or key not in self._leaders:
            return False
        connection = self._connections.get(self._cluster.brokers.get(self._leaders[key], ("", 0)))
        return connection is not None and connection.is_open

    def coordinator(self, key: str, kind: int = TRANSACTION) -> int:
        """Node id of the coordinator of a transactional id (TRANSACTION) or group (GROUP)."""
        cls: Any = registry.get("FindCoordinatorRequest")

        def attempt() -> int:
            connection = self.connection()
            version = min(connection.version_for(cls.API_KEY), 6)
            keys = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
            answer = connection.request(cls(key_type=kind, **keys), version=version)
            found = answer.coordinators[0] if version >= 4 else answer
            raise_for(found.error_code, f"coordinator of {key!r}", found.error_message)
            self._learn([])
            return int(found.node_id)

        return self.retry(attempt)

    # ---- offsets

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, isolation: str | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """For each partition the first offset at or after a timestamp (ms), or of its start or end; -1 without one."""
        cls: Any = registry.get("ListOffsetsRequest")
        level = ISOLATION[isolation or self.settings.isolation_level]
        found: dict[TopicPartition, OffsetAndTimestamp] = {}

        def attempt() -> None:
            for node_id, keys in self._by_leader(key for key in timestamps if key not in found).items():
                topics: dict[str, list[Any]] = {}
                for topic, partition in keys:
                    timestamp = timestamps[topic, partition]
                    topics.setdefault(topic, []).append(
                        cls.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
                    )
                request = cls(
                    replica_id=-1,
                    isolation_level=level,
                    topics=[cls.ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
                )
                connection = self.connection(node_id)
                if connection.version_for(cls.API_KEY) < 2:
                    request.isolation_level = 0
                for topic in connection.request(request).topics:
                    for each in topic.partitions:
                        raise_for(each.error_code, f"offsets of {topic.name}-{each.partition_index}")
                        offset = each.old_style_offsets[0] if each.old_style_offsets else each.offset
                        found[topic.name, each.partition_index] = OffsetAndTimestamp(offset, each.timestamp)

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
        """Batches that hold [start_offset, end_offset), one answer of the broker after the other.

        The next answer is asked for before one is given, so that broker and caller work at the same time. Ends at
        end_offset, waiting for records that are not there yet for default.api.timeout.ms at most.
        topic_id: read nothing of a topic with the same name and another id (brokers before 3.1 do not check it).
        Raises BrokerError: OFFSET_OUT_OF_RANGE where start_offset is not in the log (any more), REQUEST_TIMED_OUT,
        UNKNOWN_TOPIC_ID where the topic was deleted and created again.
        """
        key, offset, other_id_seen = (topic, partition), start_offset, 0
        deadline = time.monotonic() + self.settings.default_api_timeout_ms / 1000
        asked: BrokerConnection | None = None
        while offset < end_offset:
            if asked is None:
                asked = self.retry(lambda at=offset: self._ask(key, at, isolation, topic_id))  # type: ignore[misc]
            connection, asked = asked, None
            try:
                fetched = self._take(connection, key, topic_id)
            except (BrokerError, ConnectionFailed) as error:
                if isinstance(error, BrokerError) and not ErrorCode(error.code).retriable:
                    raise
                self._leaders.pop(key, None)
                if isinstance(error, BrokerError) and error.code == ErrorCode.UNKNOWN_TOPIC_ID:
                    other_id_seen += self._has_other_id(topic, topic_id)
                if time.monotonic() > deadline or other_id_seen == TOPIC_ID_LOOKS:
                    raise
                time.sleep(self.settings.retry_backoff_ms / 1000)
                continue
            after = next_offset(fetched.records)
            if after is None:
                if time.monotonic() > deadline:
                    what = f"{topic}-{partition}: no records from offset {offset} on, which should go to {end_offset}"
                    raise BrokerError(what, ErrorCode.REQUEST_TIMED_OUT)
                continue
            offset = max(offset, after)
            deadline = time.monotonic() + self.settings.default_api_timeout_ms / 1000
            if offset < end_offset:
                with suppress(BrokerError, ConnectionFailed):  # asked again, with retries, where it failed
                    asked = self._ask(key, offset, isolation, topic_id)
            yield fetched

    def _has_other_id(self, topic: str, topic_id: uuid.UUID | None) -> bool:
        found = self.metadata([topic]).topics.get(topic)
        return found is not None and found.topic_id not in (None, topic_id)

    def _ask(
        self, key: TopicPartition, offset: int, isolation: str | None, topic_id: uuid.UUID | None
    ) -> BrokerConnection:
        cls: Any = registry.get("FetchRequest")
        settings = self.settings
        partition = cls.FetchPartition(
            partition=key[1], fetch_offset=offset, partition_max_bytes=settings.max_partition_fetch_bytes
        )
        request = cls(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=max(settings.fetch_max_bytes, settings.max_partition_fetch_bytes),
            isolation_level=ISOLATION[isolation or settings.isolation_level],
        )
        connection = self.connection(self.leader(key))
        if topic_id is not None and connection.version_for(cls.API_KEY) >= FETCH_BY_ID_VERSION:
            request.topics = [cls.FetchTopic(topic_id=topic_id, partitions=[partition])]
            connection.send(request, version=FETCH_BY_ID_VERSION)
        else:
            request.topics = [cls.FetchTopic(topic=key[0], partitions=[partition])]
            connection.send(request, version=FETCH_VERSION)
        return connection

    def _take(self, connection: BrokerConnection, key: TopicPartition, topic_id: uuid.UUID | None) -> Fetched:
        answer = connection.receive(timeout_ms=self.settings.request_timeout_ms + FETCH_WAIT_MS)
        raise_for(answer.error_code, "Fetch")
        for topic in answer.responses:
            for each in topic.partitions:
                if each.partition_index == key[1] and (topic.topic == key[0] or topic.topic_id == topic_id):
                    raise_for(each.error_code, f"{key[0]}-{key[1]}")
                    return Fetched(
                        memoryview(each.records or b""),
                        tuple((one.producer_id, one.first_offset) for one in each.aborted_transactions or ()),
                        each.high_watermark,
                        each.last_stable_offset,
                        each.log_start_offset,
                    )
        raise BrokerError(f"the answer lacks {key[0]}-{key[1]}", ErrorCode.UNKNOWN_SERVER_ERROR)


def next_offset(records: memoryview) -> int | None:
    """The offset after the last whole batch; None without one. Bytes of a batch that was cut are passed over.

    Looks at no batch but the last. Raises CorruptBatch for sizes that cannot be.
    """
    at, end = 0, 0
    while len(records) - end >= FRAME_BYTES:
        size = int.from_bytes(records[end + 8 : end + FRAME_BYTES], "big", signed=True)
        if size < SMALLEST_SIZE or end + FRAME_BYTES + size > len(records):
            break
        at, end = end, end + FRAME_BYTES + size
    last = None
    for batch in read_batches(records[at:], position=at):
        last = batch.last_offset
    return None if last is None else last + 1


def raise_for(code: int, what: str, message: str | None = None) -> None:
    """Raise BrokerError unless code is NONE."""
    if code:
        name = ErrorCode(code).name
        raise BrokerError(f"{what}: {name}" + (f", {message}" if message else ""), code)
