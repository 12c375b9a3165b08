"""Share sessions: the partitions that a member fetches, kept by the broker so that requests only contain changes.

    epoch    meaning
    0        the session begins, or begins again
    n        the changes since request n - 1
    -1       the session ends; its records are released

A session ends with its connection too, and all end when the feature share.version becomes 0. Fetches and
acknowledgements share the epochs.

Source: KIP-932; kafka.server.share.SharePartitionManager.newContext, org.apache.kafka.server.share.session 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import msgspec

from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["FINAL_EPOCH", "INITIAL_EPOCH", "ShareSession", "ShareSessions", "TopicIdPartition"]

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
MAX_INT32 = 2**31 - 1
TopicIdPartition = tuple[UUID, int]


class ShareSession(msgspec.Struct):
    """A member's session. epoch: of the next request. partitions: whether the next response must contain each."""

    epoch: int
    partitions: dict[TopicIdPartition, bool]
    connection_id: str


class ShareSessions:
    """The sessions of a node, by (group id, member id). limit: group.share.max.share.sessions."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: dict[tuple[str, str], ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, group_id: str, member_id: str) -> ShareSession | None:
        """Return a member's session, None without one."""
        return self._sessions.get((group_id, member_id))

    def begin(
        self, group_id: str, member_id: str, partitions: Iterable[TopicIdPartition], connection_id: str
    ) -> ShareSession:
        """Begin a session, in place of the member's former one. Raises BrokerError: SHARE_SESSION_LIMIT_REACHED."""
        self._sessions.pop((group_id, member_id), None)
        if len(self._sessions) >= self._limit:
            raise refusal(ErrorCode.SHARE_SESSION_LIMIT_REACHED, "The limit of share sessions has been reached.")
        session = ShareSession(INITIAL_EPOCH + 1, dict.fromkeys(partitions, False), connection_id)
        self._sessions[group_id, member_id] = session
        return session

    def proceed(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """Return the session of a request and move it to the next epoch, unless it ends.

        Raises BrokerError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise refusal(ErrorCode.SHARE_SESSION_NOT_FOUND, "The share session was not found.")
        if epoch != FINAL_EPOCH:
            if session.epoch != epoch:
                raise refusal(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "The share session epoch is invalid.")
            session.epoch = 1 if epoch == MAX_INT32 else epoch + 1
        return session

    def end(self, group_id: str, member_id: str) -> list[TopicIdPartition]:
        """End a session and return its partitions."""
        session = self._sessions.pop((group_id, member_id), None)
        return [] if session is None else list(session.partitions)

    def clear(self) -> None:
        """End all sessions."""
        self._sessions.clear()

    def of_connection(self, connection_id: str) -> list[tuple[str, str]]:
        """Return (group id, member id) of the sessions of a connection."""
        return [key for key, session in self._sessions.items() if session.connection_id == connection_id]

    def has_group(self, group_id: str) -> bool:
        """Return whether a member of a group has a session."""
        return any(key[0] == group_id for key in self._sessions)
