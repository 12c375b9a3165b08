"""Fetch sessions: the broker keeps the partitions that a client fetches, so requests only contain changes (KIP-227).

    session id, epoch in a request    meaning
    0, -1                             sessionless full fetch
    any, 0                            full fetch that creates a session; the given session is closed
    id, -1                            full fetch that closes the session
    id, n                             incremental fetch: changes since fetch n - 1

A full response contains every partition. An incremental response contains the partitions that have records, an error,
or a high watermark or log start offset different from the last response. Partitions returned with records move to the
end of the session, so that every partition gets its turn.

Source: kafka.server.FetchSession, FetchManager 3.9.1.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from kwire.broker.clock import Clock
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.messages import FetchRequest
    from kwire.messages.fetch_request import FetchPartition, FetchTopic
    from kwire.messages.fetch_response import PartitionData

__all__ = ["NO_SESSION", "FetchSessions", "SessionPartition", "View"]

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
MAX_INT32 = 2**31 - 1
EVICTION_MS = 120_000
"""Kafka's min.incremental.fetch.session.eviction.ms."""

Key = tuple[str | UUID, int]


class SessionPartition(msgspec.Struct):
    """A partition that a client fetches. topic: name, or id from version 13 on.

    request: the client's last request for it. sent_*: values of the last response, -1 for none.
    """

    topic: str | UUID
    index: int
    request: FetchPartition
    sent_high_watermark: int = -1
    sent_log_start_offset: int = -1

    @property
    def key(self) -> Key:
        """Topic and partition index."""
        return self.topic, self.index


class Session:
    """The partitions of one client, in the order in which they are read."""

    __slots__ = ("created_ms", "epoch", "last_used_ms", "partitions", "session_id", "uses_topic_ids")

    def __init__(self, session_id: int, uses_topic_ids: bool, now_ms: int) -> None:
        self.session_id, self.uses_topic_ids = session_id, uses_topic_ids
        self.epoch = 1
        self.partitions: dict[Key, SessionPartition] = {}
        self.created_ms = self.last_used_ms = now_ms


class View:
    """The partitions of one fetch request. session: for an incremental fetch."""

    __slots__ = ("_session", "partitions", "session_id")

    def __init__(self, partitions: list[SessionPartition], session_id: int, session: Session | None) -> None:
        self.partitions, self.session_id, self._session = partitions, session_id, session

    @property
    def is_incremental(self) -> bool:
        """Whether the response only contains changed partitions."""
        return self._session is not None

    def has_changed(self, partition: SessionPartition, response: PartitionData) -> bool:
        """Return whether the response has to contain a partition."""
        return (
            self._session is None
            or bool(response.records)
            or response.error_code != 0
            or response.high_watermark != partition.sent_high_watermark
            or response.log_start_offset != partition.sent_log_start_offset
            or response.diverging_epoch.epoch >= 0
            or response.preferred_read_replica >= 0
        )

    def mark_sent(self, partition: SessionPartition, response: PartitionData) -> None:
        """Record the values sent to the client. The high watermark of an error response is not recorded."""
        partition.sent_high_watermark = -1 if response.error_code else response.high_watermark
        partition.sent_log_start_offset = response.log_start_offset
        if self._session is not None and response.records and partition.key in self._session.partitions:
            self._session.partitions[partition.key] = self._session.partitions.pop(partition.key)


class FetchSessions:
    """The sessions of one broker. limit: max.incremental.fetch.session.cache.slots."""

    def __init__(self, clock: Clock, limit: int) -> None:
        self._clock, self._limit = clock, limit
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def view(self, request: FetchRequest, version: int) -> View:
        """Return the partitions of a request. Raises BrokerError for an invalid session."""
        requested = list(partitions_of(request.topics, version))
        session_id, epoch = (request.session_id, request.session_epoch) if version >= 7 else (NO_SESSION, FINAL_EPOCH)
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self._sessions.pop(session_id, None)
            if epoch == FINAL_EPOCH or not requested:
                return View(requested, NO_SESSION, None)
            return View(requested, self._create(requested, version), None)
        return self._continue(request, session_id, epoch, requested, version)

    def partitions(self, session_id: int) -> list[Key]:
        """Return the partitions of a session, none for an unknown one."""
        session = self._sessions.get(session_id)
        return [] if session is None else list(session.partitions)

    def close(self, session_id: int) -> None:
        """Close a session."""
        self._sessions.pop(session_id, None)

    def _create(self, requested: list[SessionPartition], version: int) -> int:
        """Create a session; returns its id, or NO_SESSION if the limit is reached."""
        now_ms = self._clock.elapsed_ms()
        if len(self._sessions) >= self._limit and not self._evict(now_ms, len(requested)):
            return NO_SESSION
        while (session_id := secrets.randbelow(MAX_INT32) + 1) in self._sessions:
            pass
        session = self._sessions[session_id] = Session(session_id, version >= 13, now_ms)
        session.partitions = {partition.key: partition for partition in requested}
        return session_id

    def _evict(self, now_ms: int, size: int) -> bool:
        """Evict the least recently used session, or an older, smaller one. Returns whether a session was evicted."""
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: session.last_used_ms)
        if now_ms - oldest.last_used_ms <= EVICTION_MS:
            old = [s for s in self._sessions.values() if now_ms - s.created_ms > EVICTION_MS]
            if not old:
                return False
            oldest = min(old, key=lambda session: len(session.partitions))
            if len(oldest.partitions) >= size:
                return False
        del self._sessions[oldest.session_id]
        return True

    def _continue(
        self, request: FetchRequest, session_id: int, epoch: int, requested: list[SessionPartition], version: int
    ) -> View:
        session = self._sessions.get(session_id)
        if session is None:
            raise refusal(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"unknown fetch session {session_id}")
        if session.epoch != epoch:
            what = f"fetch session {session_id} is at epoch {session.epoch}, not {epoch}"
            raise refusal(ErrorCode.INVALID_FETCH_SESSION_EPOCH, what)
        if session.uses_topic_ids != (version >= 13):
            raise refusal(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                f"fetch session {session_id} uses topic {'ids' if session.uses_topic_ids else 'names'}",
            )
        session.last_used_ms = self._clock.elapsed_ms()
        for partition in requested:
            known = session.partitions.get(partition.key)
            if known is None:
                session.partitions[partition.key] = partition
            else:
                known.request = partition.request
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                session.partitions.pop((topic.topic_id if version >= 13 else topic.topic, index), None)
        if not session.partitions:
            del self._sessions[session_id]
            return View(requested, NO_SESSION, None)
        session.epoch = 1 if session.epoch == MAX_INT32 else session.epoch + 1
        return View(list(session.partitions.values()), session_id, session)


def partitions_of(topics: Iterable[FetchTopic], version: int) -> Iterator[SessionPartition]:
    """Yield the partitions of a request."""
    for topic in topics:
        key = topic.topic_id if version >= 13 else topic.topic
        for partition in topic.partitions:
            yield SessionPartition(key, partition.partition, partition)
