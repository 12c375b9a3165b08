"""Follow partitions as records are written: one Fetch request per leader at a time, in a fetch session.

    follower = Follower(client, {("orders", 0): 4711})
    while True:
        for key, fetched in follower.poll(): ...

A session (KIP-227) sends what has changed since the last request: a partition that has no new records costs no byte in
either direction. Brokers before 1.1 have none; every request then names all partitions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.client.broker_connection import BrokerConnection
from kwire.client.client import (
    EARLIEST_TIMESTAMP,
    FETCH,
    FETCH_VERSION,
    FETCH_WAIT_MS,
    ISOLATION,
    LATEST_TIMESTAMP,
    TOPIC_CHECKS,
    TRUNCATION_VERSION,
    UNKNOWN_TOPIC,
    Client,
    Fetched,
    Position,
    position_after,
    raise_for,
    response_of,
)
from kwire.errors import BrokerError, ConnectionFailed, LogError, LogTruncated
from kwire.identifiers import TopicPartition
from kwire.messages import FetchRequest, FetchResponse
from kwire.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from kwire.messages.fetch_request import FetchPartition

__all__ = ["Follower"]

SESSION_VERSION = 7
SESSION_ERRORS = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
MAX_EPOCH = (1 << 31) - 1


@dataclass(slots=True)
class Session:
    """A fetch session with one broker. epoch: of the next request, 0 begins a new session.

    sent: what the broker knows of each partition.
    """

    session_id: int = 0
    epoch: int = 0
    sent: dict[TopicPartition, Position] = field(default_factory=dict)


class Follower:
    """Fetches the records of several partitions from given offsets on, without an end.

    positions: where each partition is fetched next; add or remove partitions between polls.
    lost: (partition, first offset, offset after the last one) that retention deleted before they were fetched.
    deleted: partitions of topics that were deleted, which are no longer followed.
    """

    def __init__(
        self, client: Client, offsets: Mapping[TopicPartition, int], *, isolation: str = "read_uncommitted"
    ) -> None:
        self._client, self._isolation = client, isolation
        self.positions = {key: Position(offset) for key, offset in offsets.items()}
        self.lost: list[tuple[TopicPartition, int, int]] = []
        self.deleted: list[TopicPartition] = []
        self._sessions: dict[int, Session] = {}
        self._failures: list[tuple[TopicPartition, BrokerError]] = []  # handled once no response is under way
        self._unreachable: ConnectionFailed | None = None
        self._last_response = time.monotonic()
        self._checks: dict[TopicPartition, int] = {}  # how often a topic was not found

    def poll(self) -> Iterator[tuple[TopicPartition, Fetched]]:
        """Fetch once from every leader; yield the responses with records as they arrive.

        Blocks for about half a second if there are none. The client is free for other requests between polls. Raises
        LogError for a log that was truncated, BrokerError that is not retriable, and ConnectionFailed without any
        response for default.api.timeout.ms; other failures are tried again by the next call.
        """
        waiting: list[tuple[int, BrokerConnection]] = []
        try:
            for node_id, keys in self._by_leader().items():
                try:
                    waiting.append((node_id, self._send(node_id, keys)))
                except ConnectionFailed as error:
                    self._forget(node_id, error)
            if not waiting:
                time.sleep(self._client.settings.retry_backoff_ms / 1000)
            while waiting:
                node_id, connection = waiting[0]
                try:
                    response = connection.receive(
                        FetchResponse, timeout_ms=self._client.settings.request_timeout_ms + FETCH_WAIT_MS
                    )
                except ConnectionFailed as error:
                    waiting.pop(0)
                    self._forget(node_id, error)
                    continue
                waiting.pop(0)
                self._last_response = time.monotonic()
                yield from self._received(node_id, response)
        finally:
            for node_id, connection in waiting:  # left early: these responses must not be taken for others
                connection.close()
                self._sessions.pop(node_id, None)
        failures, self._failures = self._failures, []
        for key, failure in failures:
            self._failed(key, failure)
        silent = time.monotonic() - self._last_response > self._client.settings.default_api_timeout_ms / 1000
        if silent and self._unreachable is not None:
            raise self._unreachable

    def _by_leader(self) -> dict[int, list[TopicPartition]]:
        found: dict[int, list[TopicPartition]] = {}
        for key in list(self.positions):
            try:
                found.setdefault(self._client.leader(key), []).append(key)
            except BrokerError as error:
                self._failures.append((key, error))
            except ConnectionFailed as error:
                self._unreachable = error
        return found

    def _send(self, node_id: int, keys: list[TopicPartition]) -> BrokerConnection:
        settings = self._client.settings
        connection = self._client.connection(node_id)
        version = min(connection.version_for(FETCH), FETCH_VERSION)
        session = self._sessions.setdefault(node_id, Session())
        changed = {key: self.positions[key] for key in keys if session.sent.get(key) != self.positions[key]}
        forgotten = [key for key in session.sent if key not in self.positions or key not in keys]
        request = FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=ISOLATION[self._isolation],
        )
        if version >= SESSION_VERSION:
            request.session_id, request.session_epoch = session.session_id, session.epoch
        topics: dict[str, list[FetchPartition]] = {}
        for (topic, partition), position in changed.items():
            each = FetchRequest.FetchPartition(
                partition=partition,
                fetch_offset=position.offset,
                partition_max_bytes=settings.max_partition_fetch_bytes,
            )
            if version >= TRUNCATION_VERSION:
                each.last_fetched_epoch = position.leader_epoch
            topics.setdefault(topic, []).append(each)
        request.topics = [FetchRequest.FetchTopic(topic=topic, partitions=found) for topic, found in topics.items()]
        left: dict[str, list[int]] = {}
        for topic, partition in forgotten:
            left.setdefault(topic, []).append(partition)
        request.forgotten_topics_data = [
            FetchRequest.ForgottenTopic(topic=topic, partitions=found) for topic, found in left.items()
        ]
        session.sent.update(changed)
        for key in forgotten:
            del session.sent[key]
        connection.send(request, version=version)
        return connection

    def _received(self, node_id: int, response: FetchResponse) -> Iterator[tuple[TopicPartition, Fetched]]:
        session = self._sessions[node_id]
        if response.error_code in SESSION_ERRORS:
            del self._sessions[node_id]
            return
        raise_for(response.error_code, "Fetch")
        session.session_id = response.session_id
        if response.session_id:
            session.epoch = 1 if session.epoch == MAX_EPOCH else session.epoch + 1
        else:  # no session: the next request names all partitions again
            del self._sessions[node_id]
        for topic in response.responses:
            for each in topic.partitions:
                key = topic.topic, each.partition_index
                if key not in self.positions:
                    continue
                try:
                    fetched = response_of(each, key, self.positions[key])
                except BrokerError as error:
                    session.sent[key] = Position(-1)  # sent again, or forgotten, by the next request
                    self._failures.append((key, error))
                    continue
                self._checks.pop(key, None)
                after = position_after(fetched.records, self.positions[key], f"{key[0]}-{key[1]}")
                if after is not None:
                    self.positions[key] = after
                    yield key, fetched._replace(next_offset=after.offset)

    def _failed(self, key: TopicPartition, error: BrokerError) -> None:
        """Handle the error of a partition: correct its position, or let the next poll try again."""
        name = f"{key[0]}-{key[1]}"
        if isinstance(error, LogTruncated):
            raise LogError(error.what, name) from error
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            position = self.positions[key]
            if position.leader_epoch >= 0:
                self.positions[key] = Position(position.offset)  # perhaps the leader does not know that epoch
                return
            first, last = (
                self._client.list_offsets({key: each})[key].offset for each in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
            )
            if first <= position.offset:
                what = f"the log ends at offset {last}, below offset {position.offset}, up to which it was read"
                raise LogError(f"{what}: it was truncated, or the topic was created again", name) from error
            self.lost.append((key, position.offset, first))
            self.positions[key] = Position(first)
            return
        if not ErrorCode(error.code).retriable:
            raise error
        self._client.forget_leader(key)
        if error.code in UNKNOWN_TOPIC and self._client.is_gone(key[0], None):
            self._checks[key] = self._checks.get(key, 0) + 1
            if self._checks[key] >= TOPIC_CHECKS:
                del self.positions[key]
                self.deleted.append(key)
        time.sleep(self._client.settings.retry_backoff_ms / 1000)

    def _forget(self, node_id: int, error: ConnectionFailed) -> None:
        """Forget a broker that cannot be reached: its partitions may have other leaders now."""
        self._unreachable = error
        session = self._sessions.pop(node_id, Session())
        for key in session.sent:
            self._client.forget_leader(key)
