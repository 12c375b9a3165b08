"""Fetch partitions of a cluster, each from its leader or the replica that it names: whole batches, in order.

    with Fetcher(client) as fetcher:
        fetcher.add(("orders", 0), Position(offset=0))
        for result in fetcher.poll(): ...   # FetchedBatches, Diverged or FetchError, one per partition in a response

It finds leaders and follows their changes, keeps a fetch session with each of them, and retries what can be retried.
With client.rack, it reads from replicas that leaders name (KIP-392); what fails there is asked of the leader.
What to do about records that the cluster lost, or deleted topics, is the caller's decision.
One request per broker is in flight, and the next one is sent before a response is returned, so that broker and caller
work at the same time. Partitions with data go to the end of the next request: none of them starves. Requests name the
leader epoch, so that a deposed leader refuses them, and the epoch of the last batch, so that a leader reports records
that it does not have (KIP-320, KIP-595).
Connections are taken from the client, which opens others for its own requests.
Memory: the responses of max_bytes that poll() returns and each broker prepares.
Source: kafka.server.AbstractFetcherThread of 3.9.1 and 4.4.0.
"""

from __future__ import annotations

import selectors
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kwire.client.broker_connection import BrokerConnection
from kwire.client.client import TOPIC_CHECKS, Client
from kwire.client.failures import is_final
from kwire.client.fetch_requests import (
    FETCH,
    FETCH_WAIT_MS,
    NO_SESSION,
    TRUNCATION_VERSION,
    Diverged,
    Fetched,
    FetchSession,
    Position,
    ReadReplica,
    Wanted,
    fetched_from,
)
from kwire.errors import BrokerError, ConnectionFailed, CorruptBatch, KwireError
from kwire.identifiers import TopicPartition, by_topic
from kwire.messages import FetchResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kwire.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from types import TracebackType

    from kwire.client.cluster import Topic
    from kwire.messages.fetch_response import PartitionData

__all__ = ["MISSING", "Diverged", "FetchError", "FetchedBatches", "Fetcher", "Position"]

OFFSET_FOR_LEADER_EPOCH = 23
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
SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class FetchedBatches(NamedTuple):
    """Batches of a partition, perhaps none. after: the position after them."""

    key: TopicPartition
    fetched: Fetched
    after: Position


class FetchError(NamedTuple):
    """An error that retries do not solve: BrokerError, or CorruptBatch for batches of impossible sizes.

    The partition is not fetched any more until seek() or add().
    """

    key: TopicPartition
    error: KwireError
    position: Position


Result = FetchedBatches | Diverged | FetchError


@dataclass(slots=True)
class Fetching:
    """A partition that is fetched, up to an end if it is not None.

    leader: node id, None if unknown. checks: how often metadata had no such topic.
    """

    position: Position
    end: int | None
    replica: ReadReplica
    leader: int | None = None
    leader_epoch: int = -1
    checks: int = 0
    failing_since: float | None = None
    epoch_checked: bool = False

    @property
    def source(self) -> int | None:
        """The broker to fetch from; None while the leader is unknown."""
        return self.leader if self.leader is None or self.replica.node_id is None else self.replica.node_id


@dataclass(slots=True)
class Source:
    """A broker that is fetched from. deadline: of the response in flight, None without one."""

    connection: BrokerConnection
    session: FetchSession = field(default_factory=FetchSession)
    deadline: float | None = None


class Fetcher:
    """Fetches partitions of one cluster, until close(). For one thread, like its client.

    max_bytes: of a response, at most fetch.max.bytes, which is the default.
    """

    def __init__(self, client: Client, *, isolation: str = "read_uncommitted", max_bytes: int | None = None) -> None:
        self._client, self._isolation, self._max_bytes = client, isolation, max_bytes
        self._partitions: dict[TopicPartition, Fetching] = {}
        self._stopped: set[TopicPartition] = set()
        self._sources: dict[int, Source] = {}
        self._was_redirected = False
        self._metadata_due = 0.0
        self._backoff_s = client.settings.retry_backoff_ms / 1000
        self._unreachable_since: float | None = None
        self._failure: ConnectionFailed | None = None

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Return the connections to the client, but for those with a response in flight: these are closed."""
        for node_id, source in self._sources.items():
            if source.deadline is None:
                self._client.return_connection(node_id, source.connection)
            else:
                source.connection.close()
        self._sources.clear()

    def add(self, key: TopicPartition, position: Position, *, end: int | None = None) -> None:
        """Fetch a partition from a position on. end: remove it once everything below this offset is fetched.

        Brokers need not keep sessions for partitions that all have an end.
        """
        self.remove(key)
        if end is None or position.offset < end:
            self._partitions[key] = Fetching(position, end, self._client.read_replica(key))

    def seek(self, key: TopicPartition, position: Position) -> None:
        """Continue at another position; a response to an earlier one is dropped."""
        partition = self._partitions[key]
        partition.position, partition.checks, partition.failing_since = position, 0, None
        self._stopped.discard(key)
        if partition.end is not None and position.offset >= partition.end:
            self.remove(key)

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
        self._raise_failure()
        self._was_redirected = True
        results: list[Result] = []
        while self._was_redirected and not results and self._failure is None:
            self._was_redirected = False
            results = self._find_leaders() or self._next_results()
        if self._failure is not None and not results:
            self._raise_failure()
        return results

    def _next_results(self) -> list[Result]:
        results: list[Result] = []
        for node_id in {each.source for key, each in self._partitions.items() if key not in self._stopped}:
            if node_id is not None and not self._is_waiting(node_id):
                results += self._send(node_id)
        ready = self._ready()
        now = time.monotonic()
        for node_id, source in list(self._sources.items()):
            if node_id in ready:
                results += self._receive(node_id, self._client.settings.request_timeout_ms)
            elif source.deadline is not None and source.deadline <= now:
                results += self._receive(node_id, 0)
        return results

    def _raise_failure(self) -> None:
        error, self._failure = self._failure, None
        if error is not None:
            raise error

    def _is_waiting(self, node_id: int) -> bool:
        source = self._sources.get(node_id)
        return source is not None and source.deadline is not None

    def _ready(self) -> set[int]:
        """Wait for responses; return the brokers that send one.

        It may be there for long, if the caller was busy: deadlines are for brokers that are silent.
        """
        deadlines = {node_id: each.deadline for node_id, each in self._sources.items() if each.deadline is not None}
        if not deadlines:
            if self._failure is None:
                time.sleep(self._backoff_s)
            return set()
        with selectors.DefaultSelector() as selector:
            for node_id in deadlines:
                selector.register(self._sources[node_id].connection, selectors.EVENT_READ, node_id)
            timeout_s = max(0.0, min(deadlines.values()) - time.monotonic())
            return {key.data for key, _ in selector.select(timeout_s)}

    def _send(self, node_id: int) -> list[Result]:
        """Send a request for the partitions of a broker. Returns positions that OffsetForLeaderEpoch rejects."""
        try:
            source = self._source(node_id)
            version = source.connection.version_for(FETCH)
            results = [] if version >= TRUNCATION_VERSION else self._check_epochs(node_id, source.connection)
            partitions = {
                key: each
                for key, each in self._partitions.items()
                if each.source == node_id and key not in self._stopped
            }
            if partitions:
                if all(each.end is not None for each in partitions.values()):
                    source.session = FetchSession(epoch=NO_SESSION)
                request, version = source.session.next_request(
                    {key: Wanted(each.position, each.leader_epoch) for key, each in partitions.items()},
                    version,
                    self._client.settings,
                    self._isolation,
                    self._max_bytes,
                    names_rack=not any(each.replica.is_paused for each in partitions.values()),
                )
                source.connection.send(request, version=version)
                timeout_ms = self._client.settings.request_timeout_ms + FETCH_WAIT_MS
                source.deadline = source.connection.deadline_after(timeout_ms)
            return results
        except ConnectionFailed as error:
            self._lose(node_id, error)
            return []

    def _source(self, node_id: int) -> Source:
        source = self._sources.get(node_id)
        if source is None:
            source = self._sources[node_id] = Source(self._client.take_connection(node_id))
        return source

    def _receive(self, node_id: int, timeout_ms: int) -> list[Result]:
        """Receive a response and send the next request to that broker."""
        source = self._sources[node_id]
        source.deadline = None
        try:
            response = source.connection.receive(FetchResponse, timeout_ms=timeout_ms)
        except ConnectionFailed as error:
            self._lose(node_id, error)
            return []
        self._unreachable_since = None
        results: list[Result] = []
        wanted = source.session.wanted
        for key, data in source.session.accept(response):
            if self._is_current(key, wanted[key].position):
                results += self._result(key, data, node_id)
        if response.error_code in SESSION_ERRORS:
            return results
        if response.error_code:
            code = ErrorCode(response.error_code)
            for key in wanted:
                if self._is_current(key, wanted[key].position):
                    results += self._failed(
                        key, BrokerError(f"Fetch from broker {node_id}: {code.name}", code), node_id
                    )
            return results
        for key in wanted:
            if key in self._partitions and self._partitions[key].replica.node_id == node_id:
                self._partitions[key].replica.answered(self._client.settings)
        if results:
            results += self._send(node_id)
        return results

    def _is_current(self, key: TopicPartition, position: Position) -> bool:
        known = self._partitions.get(key)
        return known is not None and known.position == position and key not in self._stopped

    def _result(self, key: TopicPartition, data: PartitionData, node_id: int) -> list[Result]:
        """Return the result of one partition, none for an error that is retried."""
        code = ErrorCode(data.error_code)
        partition = self._partitions[key]
        if code:
            return self._failed(key, BrokerError(f"{key[0]}-{key[1]}: {code.name}", code), node_id)
        try:
            if partition.replica.obey(data, node_id, key):
                self._was_redirected = True
                return []
        except BrokerError as error:
            return self._failed(key, error, node_id)
        partition.checks, partition.failing_since = 0, None
        try:
            result = fetched_from(data, key, partition.position)
        except CorruptBatch as error:
            self._stopped.add(key)
            return [FetchError(key, error, partition.position)]
        if isinstance(result, Diverged):
            if node_id != partition.leader:
                self._leave_replica(partition)  # it may lag behind
                return []
            self._stopped.add(key)
            return [result]
        fetched, after = result
        if len(fetched.records):
            partition.position = after
            del self._partitions[key]
            if partition.end is None or after.offset < partition.end:
                self._partitions[key] = partition  # to the end of the next request
        return [FetchedBatches(key, fetched, after)]

    def _leave_replica(self, partition: Fetching) -> None:
        partition.replica.fail(self._client.settings)
        partition.leader = None  # perhaps there is another one

    def _failed(self, key: TopicPartition, error: BrokerError, node_id: int | None = None) -> list[Result]:
        """Decide whether an error is retried; if not, stop the partition and return the error.

        node_id: of the broker that responded. The leader is asked before any error of a replica is believed.
        """
        partition, code = self._partitions[key], ErrorCode(error.code)
        if node_id is not None and node_id != partition.leader:
            self._leave_replica(partition)
            return []
        now = time.monotonic()
        if partition.failing_since is None:
            partition.failing_since = now
        is_over = now - partition.failing_since > self._client.settings.default_api_timeout_ms / 1000
        if code in MISSING:
            is_final = is_over or partition.checks >= TOPIC_CHECKS
        else:
            is_final = is_over or not (code in STALE or code.retriable)
        partition.leader = None  # the next request waits for metadata, also if the caller continues after a final error
        if not is_final:
            return []
        self._stopped.add(key)
        return [FetchError(key, error, partition.position)]

    # ---- leaders

    def _lose(self, node_id: int, error: ConnectionFailed) -> None:
        """Forget a broker that cannot be reached: its partitions may have other leaders now.

        poll() raises the error if retries are useless, or no broker has responded for long: after it has returned
        what other brokers sent, from which positions have advanced.
        """
        if node_id in self._sources:
            self._sources.pop(node_id).connection.close()
        for each in self._partitions.values():
            if each.source == node_id:
                if each.replica.node_id == node_id:
                    each.replica.fail(self._client.settings)
                each.leader = None
        now = time.monotonic()
        if is_final(error):
            self._failure = error
            return
        self._client.failures.note(error)
        if self._unreachable_since is None:
            self._unreachable_since = now
        elif now - self._unreachable_since > self._client.settings.default_api_timeout_ms / 1000:
            self._failure = error

    def _find_leaders(self) -> list[Result]:
        """Ask for the leaders of partitions without one, at most once per retry.backoff.ms."""
        missing = [key for key, each in self._partitions.items() if each.leader is None and key not in self._stopped]
        if not missing:
            return []
        delay = self._metadata_due - time.monotonic()
        if delay > 0:
            if any(each.deadline is not None for each in self._sources.values()):  # other brokers go on meanwhile
                return []
            time.sleep(delay)
        self._metadata_due = time.monotonic() + self._backoff_s
        topics = self._client.metadata({topic for topic, _ in missing}).topics
        results: list[Result] = []
        for key in missing:
            error = self._use_metadata(key, topics.get(key[0]))
            if error is not None:
                results += self._failed(key, error)
        return results

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
            if each.leader == each.source == node_id and not each.epoch_checked and key not in self._stopped
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
        results: list[Result] = []
        topics = connection.request(request, OffsetForLeaderEpochResponse).topics
        ends = {(topic.topic, each.partition): each for topic in topics for each in topic.partitions}
        for key, partition in wanted.items():
            position, end = partition.position, ends.get(key)
            if end is None or end.error_code:
                partition.epoch_checked, partition.leader = False, None
            elif end.end_offset < position.offset or end.leader_epoch < position.leader_epoch:
                self._stopped.add(key)
                results.append(Diverged(key, end.leader_epoch, end.end_offset, position))
        return results
