"""The topics and fetch sessions that a tap has seen in passing, for the conditions of faults."""

from __future__ import annotations

from collections import OrderedDict
from uuid import UUID

from kwire.messages import (
    DescribeTopicPartitionsResponse,
    FetchRequest,
    FetchResponse,
    MetadataResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kwire.messages.base import Message

__all__ = ["NO_SESSION", "SeenTopics", "TopicsAt"]

NO_SESSION = 0
CLOSING, OPENING = -1, 0
MAX_TOPICS = 100_000
MAX_SESSIONS = 10_000

Partitions = dict[tuple[str | UUID, int], None]


class SeenTopics:
    """Topics by name and id, from responses about metadata, and the partitions of fetch and share sessions.

    Each has a limit, beyond which the oldest are forgotten. The client of a session that is not known has to begin
    another.
    """

    def __init__(self) -> None:
        self._ids: OrderedDict[str, UUID | None] = OrderedDict()
        self._names: dict[UUID, str] = {}
        self._sessions: OrderedDict[tuple[int, int], Partitions] = OrderedDict()
        self._share_sessions: OrderedDict[tuple[int, str, str], dict[tuple[UUID, int], None]] = OrderedDict()

    def learn(self, body: Message) -> None:
        """Remember the topics in a response."""
        if isinstance(body, MetadataResponse | DescribeTopicPartitionsResponse):
            for topic in body.topics:
                if topic.name and not topic.error_code:
                    self._add(topic.name, topic.topic_id if topic.topic_id.int else None)

    def _add(self, name: str, topic_id: UUID | None) -> None:
        before = self._ids.pop(name, None)
        if topic_id is None:
            topic_id = before
        elif before is not None and before != topic_id:
            self._names.pop(before, None)
        self._ids[name] = topic_id
        if topic_id is not None:
            self._names[topic_id] = name
        if len(self._ids) > MAX_TOPICS:
            _, oldest = self._ids.popitem(last=False)
            if oldest is not None:
                self._names.pop(oldest, None)

    def name_of(self, topic_id: UUID) -> str | None:
        """Return the name of a topic, None for an unknown id."""
        return self._names.get(topic_id)

    def id_of(self, name: str) -> UUID | None:
        """Return the id of a topic, None for an unknown name."""
        return self._ids.get(name)

    def names(self) -> list[str]:
        """Return the names of all topics."""
        return list(self._ids)

    # Fetch sessions

    def fetched(self, port: int, session_id: int) -> list[tuple[str | UUID, int]]:
        """Return the partitions of a session at a listener."""
        return list(self._sessions.get((port, session_id), ()))

    def has_session(self, port: int, request: FetchRequest) -> bool:
        """Return whether the partitions of a request are known: those of its session, if it continues one."""
        continues = request.session_epoch not in (OPENING, CLOSING)
        return not continues or (port, request.session_id) in self._sessions

    def forget_sessions(self) -> None:
        """Forget the sessions, whose requests are not seen from now on."""
        self._sessions.clear()

    def follow(self, port: int, request: FetchRequest, response: FetchResponse) -> None:
        """Keep the partitions of a session up to date."""
        if request.session_id and request.session_epoch in (OPENING, CLOSING):
            self._sessions.pop((port, request.session_id), None)
        if response.error_code or not response.session_id:
            return
        key = port, response.session_id
        partitions: Partitions = {} if request.session_epoch == OPENING else self._sessions.get(key, {})
        for gone in request.forgotten_topics_data:
            for index in gone.partitions:
                partitions.pop((gone.topic or gone.topic_id, index), None)
        for topic in request.topics:
            for partition in topic.partitions:
                partitions[topic.topic or topic.topic_id, partition.partition] = None
        self._sessions[key] = partitions
        self._sessions.move_to_end(key)
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)

    # Share sessions

    def share_fetched(self, port: int, group_id: str, member_id: str) -> list[tuple[UUID, int]]:
        """Return the partitions of a member's session at a listener."""
        return list(self._share_sessions.get((port, group_id, member_id), ()))

    def has_share_session(self, port: int, request: ShareFetchRequest) -> bool:
        """Return whether the partitions of a request are known: those of its session, if it continues one."""
        continues = request.share_session_epoch not in (OPENING, CLOSING)
        return not continues or (port, request.group_id or "", request.member_id or "") in self._share_sessions

    def forget_share_sessions(self) -> None:
        """Forget the share sessions, whose requests are not seen from now on."""
        self._share_sessions.clear()

    def follow_share(self, port: int, request: ShareFetchRequest, response: ShareFetchResponse) -> None:
        """Keep the partitions of a share session up to date."""
        key, epoch = (port, request.group_id or "", request.member_id or ""), request.share_session_epoch
        if epoch in (OPENING, CLOSING) or response.error_code:
            self._share_sessions.pop(key, None)
        if epoch == CLOSING or response.error_code:
            return
        partitions = self._share_sessions.get(key, {})
        if epoch != OPENING and key not in self._share_sessions:
            return  # it began unseen
        for topic in request.topics:
            partitions.update(dict.fromkeys((topic.topic_id, each.partition_index) for each in topic.partitions))
        for gone in request.forgotten_topics_data:
            for index in gone.partitions:
                partitions.pop((gone.topic_id, index), None)
        self._share_sessions[key] = partitions
        self._share_sessions.move_to_end(key)
        if len(self._share_sessions) > MAX_SESSIONS:
            self._share_sessions.popitem(last=False)


class TopicsAt:
    """The topics as conditions of faults refer to them, at one listener; see TopicNames."""

    def __init__(self, topics: SeenTopics, port: int) -> None:
        self._topics, self._port = topics, port
        self.name_of, self.id_of, self.names = topics.name_of, topics.id_of, topics.names

    def fetched(self, session_id: int) -> list[tuple[str | UUID, int]]:
        """See TopicNames."""
        return self._topics.fetched(self._port, session_id)

    def share_fetched(self, group_id: str, member_id: str) -> list[tuple[UUID, int]]:
        """See TopicNames."""
        return self._topics.share_fetched(self._port, group_id, member_id)
