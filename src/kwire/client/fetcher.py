"""Fetch many partitions, each from its leader, as a follower does: stored batches, unchanged and in order.

    fetcher = Fetcher(client)
    fetcher.add(("orders", 0), Position(offset=0))
    for result in fetcher.poll(): ...       # Fetched, Diverged or FetchError, one per partition in a response

It has its own connections. One request per broker is in flight, and the next one is sent before a response is returned,
so that broker and caller work at the same time. Partitions with data go to the end of the next request: none of them
starves. Requests name the leader epoch, so that a deposed leader refuses them, and the epoch of the last batch, so that
a leader reports records that it does not have (KIP-320, KIP-595).
Memory: the responses of fetch.max.bytes that poll() returns and the broker prepares.
Source: FetchRequest of 3.9.1 and 4.4.0; kafka.server.AbstractFetcherThread.
"""

from __future__ import annotations

import selectors
import time
import uuid
from dataclasses import dataclass
from typing import NamedTuple

from kwire.client.broker_connection import BrokerConnection
from kwire.client.client import FETCH, FETCH_BY_ID_VERSION, FETCH_WAIT_MS, Client, by_topic
from kwire.client.cluster import Topic
from kwire.client.failures import is_final
from kwire.errors import BrokerError, ConnectionFailed, CorruptBatch, KwireError
from kwire.identifiers import TopicPartition
from kwire.messages import (
    FetchRequest,
    FetchResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kwire.messages.fetch_response import PartitionData
from kwire.protocol.error_codes import ErrorCode
from kwire.records.batch_header import batch_spans, parse_header

__all__ = ["Diverged", "FetchError", "FetchedBatches", "Fetcher", "Position"]

OFFSET_FOR_LEADER_EPOCH = 23
METADATA_CHECKS = 5
"""How often the metadata must say that a topic is missing or recreated: a broker's metadata may be stale."""
EPOCH_IN_FETCH_VERSION = 12
"""The first version of Fetch that reports diverging epochs; before it, OffsetForLeaderEpoch does."""
NEWEST_VERSION = 17
STALE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
MISSING = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID})


class Position(NamedTuple):
    """The next offset to fetch.

    leader_epoch: of the batch before it, -1 if unknown. topic_id: fail if the topic has another one.
    """

    offset: int
    leader_epoch: int = -1
    topic_id: uuid.UUID | None = None


class FetchedBatches(NamedTuple):
    """Complete batches of a partition, perhaps none; the first one may begin before the position.

    after: the position after them.
    """

    key: TopicPartition
    records: memoryview
    high_watermark: int
    log_start_offset: int
    after: Position


class Diverged(NamedTuple):
    """The leader's log ends at end_offset for leader_epoch: what was fetched after it is not in its log."""

    key: TopicPartition
    leader_epoch: int
    end_offset: int


class FetchError(NamedTuple):
    """An error that retries do not solve: BrokerError, or CorruptBatch for batches of impossible sizes.

    The partition is not fetched any more until seek() or add().
    """

    key: TopicPartition
    error: KwireError


Result = FetchedBatches | Diverged | FetchError


@dataclass(slots=True)
class Fetching:
    """A partition that is fetched. leader: node id, None if unknown. checks: METADATA_CHECKS so far."""

    position: Position
    leader: int | None = None
    leader_epoch: int = -1
    checks: int = 0
    failing_since: float | None = None
    epoch_checked: bool = False


@dataclass(slots=True)
class Sent:
    """A request in flight, with the positions that it asks for."""

    connection: BrokerConnection
    positions: dict[TopicPartition, Position]
    names: dict[uuid.UUID, str]


class Fetcher:
    """Fetches partitions of one cluster, until close(). For one thread, like its client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._partitions: dict[TopicPartition, Fetching] = {}
        self._stopped: set[TopicPartition] = set()
        self._sent: dict[int, Sent] = {}
        self._connections: dict[int, BrokerConnection] = {}
        self._metadata_due = 0.0
        self._backoff_s = client.settings.retry_backoff_ms / 1000

    def close(self) -> None:
        """Close the connections, and drop the responses in flight."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._sent.clear()

    def add(self, key: TopicPartition, position: Position) -> None:
        """Fetch a partition from a position on."""
        self._partitions[key] = Fetching(position)
        self._stopped.discard(key)

    def seek(self, key: TopicPartition, position: Position) -> None:
        """Continue at another position; a response to an earlier one is dropped."""
        partition = self._partitions[key]
        partition.position, partition.checks, partition.failing_since = position, 0, None
        self._stopped.discard(key)

    def remove(self, key: TopicPartition) -> None:
        """Stop fetching a partition."""
        self._partitions.pop(key, None)
        self._stopped.discard(key)

    def __len__(self) -> int:
        return len(self._partitions) - len(self._stopped)

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._partitions and key not in self._stopped

    # ---- fetching

    def poll(self) -> list[Result]:
        """Wait for the next response, for about half a second if there is no new data, and return its results.

        Raises ConnectionFailed, BrokerError if no broker can be reached for default.api.timeout.ms.
        """
        found = self._find_leaders()
        if found:
            return found
        for node_id in {each.leader for key, each in self._partitions.items() if key not in self._stopped}:
            if node_id is not None and node_id not in self._sent:
                found += self._send(node_id)
        if not self._sent:
            time.sleep(self._backoff_s)
            return found
        for node_id in self._readable():
            found += self._receive(node_id)
        return found

    def _readable(self) -> list[int]:
        """Return the brokers whose responses arrive; the one asked first if all connections are silent for long."""
        with selectors.DefaultSelector() as selector:
            for node_id, sent in self._sent.items():
                selector.register(sent.connection, selectors.EVENT_READ, node_id)
            ready = [key.data for key, _ in selector.select(self._client.settings.request_timeout_ms / 1000)]
        return ready or [next(iter(self._sent))]

    def _send(self, node_id: int) -> list[Result]:
        """Send a request for the partitions of a leader. Returns positions that OffsetForLeaderEpoch rejects."""
        try:
            connection = self._connection(node_id)
            version = min(connection.version_for(FETCH), NEWEST_VERSION)
            found = [] if version >= EPOCH_IN_FETCH_VERSION else self._check_epochs(node_id, connection)
            wanted = {
                key: each.position
                for key, each in self._partitions.items()
                if each.leader == node_id and key not in self._stopped
            }
            by_id = version >= FETCH_BY_ID_VERSION and all(at.topic_id for at in wanted.values())
            if wanted:
                connection.send(
                    self._request(wanted, by_id=by_id),
                    version=version if by_id else min(version, EPOCH_IN_FETCH_VERSION),
                )
                names = {at.topic_id: topic for (topic, _), at in wanted.items() if at.topic_id is not None}
                self._sent[node_id] = Sent(connection, wanted, names)
            return found
        except ConnectionFailed as error:
            self._failed_at(node_id, error)
            return []

    def _connection(self, node_id: int) -> BrokerConnection:
        connection = self._connections.get(node_id)
        if connection is None or not connection.is_open:
            connection = self._connections[node_id] = self._client.open_connection(node_id)
        return connection

    def _request(self, wanted: dict[TopicPartition, Position], *, by_id: bool) -> FetchRequest:
        settings = self._client.settings
        topics = []
        for topic, numbers in by_topic(wanted).items():
            partitions = [
                FetchRequest.FetchPartition(
                    partition=number,
                    current_leader_epoch=self._partitions[topic, number].leader_epoch,
                    fetch_offset=wanted[topic, number].offset,
                    last_fetched_epoch=wanted[topic, number].leader_epoch,
                    partition_max_bytes=settings.max_partition_fetch_bytes,
                )
                for number in numbers
            ]
            topic_id = wanted[topic, numbers[0]].topic_id
            if by_id and topic_id is not None:
                topics.append(FetchRequest.FetchTopic(topic_id=topic_id, partitions=partitions))
            else:
                topics.append(FetchRequest.FetchTopic(topic=topic, partitions=partitions))
        return FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=max(settings.fetch_max_bytes, settings.max_partition_fetch_bytes),
            topics=topics,
        )

    def _receive(self, node_id: int) -> list[Result]:
        """Receive a response and send the next request to that broker."""
        sent = self._sent.pop(node_id)
        try:
            response = sent.connection.receive(
                FetchResponse, timeout_ms=self._client.settings.request_timeout_ms + FETCH_WAIT_MS
            )
        except ConnectionFailed as error:
            self._failed_at(node_id, error)
            return []
        found: list[Result] = []
        for topic in response.responses:
            name = topic.topic or sent.names.get(topic.topic_id, "")
            for each in topic.partitions:
                key = name, each.partition_index
                if key in sent.positions and self._is_current(key, sent.positions[key]):
                    result = self._result(key, each)
                    if result is not None:
                        found.append(result)
        if response.error_code:
            code = ErrorCode(response.error_code)
            for key in sent.positions:
                result = self._failed(key, BrokerError(f"Fetch from broker {node_id}: {code.name}", code))
                if result is not None:
                    found.append(result)
        elif found:
            found += self._send(node_id)
        return found

    def _is_current(self, key: TopicPartition, position: Position) -> bool:
        known = self._partitions.get(key)
        return known is not None and known.position == position and key not in self._stopped

    def _result(self, key: TopicPartition, data: PartitionData) -> Result | None:
        """Return the result of one partition, None without records or with an error that is retried."""
        code = ErrorCode(data.error_code)
        partition = self._partitions[key]
        if code:
            return self._failed(key, BrokerError(f"{key[0]}-{key[1]}: {code.name}", code))
        partition.checks, partition.failing_since = 0, None
        if data.diverging_epoch.epoch >= 0 or data.diverging_epoch.end_offset >= 0:
            self._stopped.add(key)
            return Diverged(key, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
        try:
            records, after = complete(memoryview(data.records or b""), partition.position, key)
        except CorruptBatch as error:
            self._stopped.add(key)
            return FetchError(key, error)
        if len(records):
            partition.position = after
            self._partitions[key] = self._partitions.pop(key)  # to the end of the next request
        return FetchedBatches(key, records, data.high_watermark, data.log_start_offset, after)

    def _failed(self, key: TopicPartition, error: BrokerError) -> Result | None:
        """Decide whether an error is retried; if not, stop the partition and return the error."""
        partition, code = self._partitions[key], ErrorCode(error.code)
        now = time.monotonic()
        if partition.failing_since is None:
            partition.failing_since = now
        is_over = now - partition.failing_since > self._client.settings.default_api_timeout_ms / 1000
        if code in MISSING:
            is_final = is_over or partition.checks >= METADATA_CHECKS
        else:
            is_final = is_over or not (code in STALE or code.retriable)
        partition.leader = None  # the next request waits for metadata, also if the caller continues after a final error
        if not is_final:
            return None
        self._stopped.add(key)
        return FetchError(key, error)

    # ---- leaders

    def _failed_at(self, node_id: int, error: ConnectionFailed) -> None:
        """Look up the leaders again. Raises the error if retries are useless."""
        if is_final(error):
            raise error
        self._client.failures.note(error)
        self._sent.pop(node_id, None)
        for each in self._partitions.values():
            if each.leader == node_id:
                each.leader = None

    def _find_leaders(self) -> list[Result]:
        """Ask for the leaders of partitions without one, at most once per retry.backoff.ms."""
        missing = [key for key, each in self._partitions.items() if each.leader is None and key not in self._stopped]
        if not missing:
            return []
        delay = self._metadata_due - time.monotonic()
        if delay > 0:
            if self._sent:  # other brokers go on meanwhile
                return []
            time.sleep(delay)
        self._metadata_due = time.monotonic() + self._backoff_s
        topics = self._client.metadata({topic for topic, _ in missing}).topics
        found = []
        for key in missing:
            error = self._use_metadata(key, topics.get(key[0]))
            result = None if error is None else self._failed(key, error)
            if result is not None:
                found.append(result)
        return found

    def _use_metadata(self, key: TopicPartition, topic: Topic | None) -> BrokerError | None:
        """Set a partition's leader; return why there is none."""
        partition, name = self._partitions[key], f"{key[0]}-{key[1]}"
        known = None if topic is None else topic.partitions.get(key[1])
        if topic is None or topic.error_code or known is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic is not None and topic.error_code:
                code = topic.error_code
            partition.checks += code in MISSING
            return BrokerError(f"{name}: {code.name}", code)
        expected = partition.position.topic_id
        if expected is not None and topic.topic_id not in (None, expected):
            partition.checks += 1
            what = f"{name}: topic {key[0]!r} was deleted and created again"
            return BrokerError(what, ErrorCode.UNKNOWN_TOPIC_ID)
        if known.leader < 0:
            return BrokerError(f"{name} has no leader", ErrorCode.LEADER_NOT_AVAILABLE)
        partition.leader, partition.leader_epoch = known.leader, known.leader_epoch
        partition.epoch_checked = False
        return None

    def _check_epochs(self, node_id: int, connection: BrokerConnection) -> list[Result]:
        """Ask a leader once where its log ends for the epochs of the positions, as Fetch does from version 12 on."""
        unchecked = {
            key: each
            for key, each in self._partitions.items()
            if each.leader == node_id and not each.epoch_checked and key not in self._stopped
        }
        wanted = {key: each for key, each in unchecked.items() if each.position.leader_epoch >= 0}
        for each in unchecked.values():
            each.epoch_checked = True
        if not wanted or connection.version_for(OFFSET_FOR_LEADER_EPOCH) < 2:
            return []
        request = OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                            partition=number,
                            current_leader_epoch=wanted[topic, number].leader_epoch,
                            leader_epoch=wanted[topic, number].position.leader_epoch,
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(wanted).items()
            ],
        )
        found: list[Result] = []
        for topic in connection.request(request, OffsetForLeaderEpochResponse).topics:
            for end in topic.partitions:
                key = topic.topic, end.partition
                position = wanted[key].position
                if end.error_code:
                    wanted[key].epoch_checked, wanted[key].leader = False, None
                elif end.end_offset < position.offset or end.leader_epoch < position.leader_epoch:
                    self._stopped.add(key)
                    found.append(Diverged(key, end.leader_epoch, end.end_offset))
        return found


def complete(records: memoryview, position: Position, key: TopicPartition) -> tuple[memoryview, Position]:
    """Return the complete batches and the position after them. Raises CorruptBatch for an impossible size."""
    last = end = 0
    for last, end in batch_spans(records):  # noqa: B007
        pass
    if not end:
        if len(records):
            parse_header(records, 0, 0, f"{key[0]}-{key[1]}")  # raises CorruptBatch for an impossible size
            what = f"the broker returned {len(records)} bytes of a larger batch at offset {position.offset}"
            what += "; brokers before 0.10.1 require a larger max.partition.fetch.bytes"
            raise CorruptBatch(what, 0, (), f"{key[0]}-{key[1]}")
        return records, position
    header = parse_header(records, last, last, f"{key[0]}-{key[1]}")
    assert header is not None  # of a complete batch
    if header.last_offset < position.offset:
        what = f"the broker returned batches that end before the fetch offset {position.offset}"
        raise CorruptBatch(what, last, (), f"{key[0]}-{key[1]}", (header.base_offset, header.last_offset))
    epoch = header.leader_epoch if header.magic >= 2 else -1
    return records[:end], Position(header.last_offset + 1, epoch, position.topic_id)
