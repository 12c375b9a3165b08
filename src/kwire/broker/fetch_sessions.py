"""Fetch sessions: the broker remembers a client's partitions, so that neither side repeats them (KIP-227).

    session id, epoch in a request    meaning
    0, -1                             no session wanted
    any, 0                            a full fetch that begins a session; the old one ends
    id, -1                            a full fetch that ends that session
    id, n                             changes since fetch n - 1; answered with what changed

A full answer names every partition; an incremental one those that have records, an error, or another high watermark or
log start offset than the client was told. Partitions that were answered with records move to the end, so that all
get their turn. Source: kafka.server.FetchSession, FetchManager 3.9.1.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kwire.broker.clock import Clock
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["NO_SESSION", "FetchSessions", "SessionPartition", "View"]

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
MAX_INT32 = 2**31 - 1
EVICTION_MS = 120_000
"""Kafka's min.incremental.fetch.session.eviction.ms."""

Key = tuple[str | UUID, int]


@dataclass(slots=True)
class SessionPartition:
    """A partition that a client fetches. topic: name, or id from version 13 on.

    request: what the client said last (FetchPartition). told_*: what the client knows.
    """

    topic: str | UUID
    index: int
    request: Any
    told_high_watermark: int = -1
    told_log_start_offset: int = -1

    @property
    def key(self) -> Key:
        """What tells it from others."""
        return self.topic, self.index


class Session:
    """One client's partitions, in the order in which they get their turn."""

    __slots__ = ("created_ms", "epoch", "last_used_ms", "partitions", "session_id", "uses_topic_ids")

    def __init__(self, session_id: int, uses_topic_ids: bool, now_ms: int) -> None:
        self.session_id, self.uses_topic_ids = session_id, uses_topic_ids
        self.epoch = 1
        self.partitions: dict[Key, SessionPartition] = {}
        self.created_ms = self.last_used_ms = now_ms


class View:
    """The partitions of one fetch request, and which of them the answer names."""

    __slots__ = ("_session", "partitions", "session_id")

    def __init__(self, partitions: list[SessionPartition], session_id: int, session: Session | None) -> None:
        self.partitions, self.session_id, self._session = partitions, session_id, session

    @property
    def is_incremental(self) -> bool:
        """Whether only what changed is answered."""
        return self._session is not None

    def has_news(self, partition: SessionPartition, answer: Any) -> bool:
        """Whether the client has to hear of this answer (PartitionData)."""
        return (
            self._session is None
            or bool(answer.records)
            or answer.error_code != 0
            or answer.high_watermark != partition.told_high_watermark
            or answer.log_start_offset != partition.told_log_start_offset
            or answer.diverging_epoch.epoch >= 0
            or answer.preferred_read_replica >= 0
        )

    def tell(self, partition: SessionPartition, answer: Any) -> None:
        """Note what the client is told. Watermarks that came with an error do not count as known."""
        partition.told_high_watermark = -1 if answer.error_code else answer.high_watermark
        partition.told_log_start_offset = answer.log_start_offset
        if self._session is not None and answer.records and partition.key in self._session.partitions:
            self._session.partitions[partition.key] = self._session.partitions.pop(partition.key)


class FetchSessions:
    """The sessions of one broker. limit: Kafka's max.incremental.fetch.session.cache.slots."""

    def __init__(self, clock: Clock, limit: int) -> None:
        self._clock, self._limit = clock, limit
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def view(self, request: Any, version: int) -> View:
        """The partitions that a request asks for. Raises BrokerError about its session."""
        asked = list(partitions_of(request.topics, version))
        session_id, epoch = (request.session_id, request.session_epoch) if version >= 7 else (NO_SESSION, FINAL_EPOCH)
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self._sessions.pop(session_id, None)
            if epoch == FINAL_EPOCH or not asked:
                return View(asked, NO_SESSION, None)
            return View(asked, self._create(asked, version), None)
        return self._continue(request, session_id, epoch, asked, version)

    def forget(self, session_id: int) -> None:
        """End a session."""
        self._sessions.pop(session_id, None)

    def _create(self, asked: list[SessionPartition], version: int) -> int:
        """Begin a session; NO_SESSION when there is no room for it."""
        now_ms = self._clock.now_ms()
        if len(self._sessions) >= self._limit and not self._evict(now_ms, len(asked)):
            return NO_SESSION
        while (session_id := secrets.randbelow(MAX_INT32) + 1) in self._sessions:
            pass
        session = self._sessions[session_id] = Session(session_id, version >= 13, now_ms)
        session.partitions = {partition.key: partition for partition in asked}
        return session_id

    def _evict(self, now_ms: int, size: int) -> bool:
        """Make room: of the session unused longest, or of a smaller one that is no longer new."""
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

    def _continue(self, request: Any, session_id: int, epoch: int, asked: list[SessionPartition], version: int) -> View:
        session = self._sessions.get(session_id)
        if session is None:
            raise refusal(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {session_id}")
        if session.epoch != epoch:
            what = f"fetch session {session_id} is at epoch {session.epoch}, not {epoch}"
            raise refusal(ErrorCode.INVALID_FETCH_SESSION_EPOCH, what)
        if session.uses_topic_ids != (version >= 13):
            raise refusal(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, f"fetch session {session_id} has topic ids or not")
        session.last_used_ms = self._clock.now_ms()
        for partition in asked:
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
            return View(asked, NO_SESSION, None)
        session.epoch = 1 if session.epoch == MAX_INT32 else session.epoch + 1
        return View(list(session.partitions.values()), session_id, session)


def partitions_of(topics: Iterable[Any], version: int) -> Iterator[SessionPartition]:
    """The partitions that a request names."""
    for topic in topics:
        key = topic.topic_id if version >= 13 else topic.topic
        for partition in topic.partitions:
            yield SessionPartition(key, partition.partition, partition)
