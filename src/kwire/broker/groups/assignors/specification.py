"""What an assignor is told and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from kwire.broker.groups.consumer_member import Assignment

__all__ = ["Assignor", "GroupToAssign", "MemberToAssign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberToAssign:
    """topic_ids: the existing topics that it subscribes to, in order of their names. target: what it was to have."""

    instance_id: str | None
    topic_ids: tuple[UUID, ...]
    target: Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupToAssign:
    """members: by member id. partition_counts: of every topic that a member subscribes to."""

    members: Mapping[str, MemberToAssign]
    partition_counts: Mapping[UUID, int]

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        subscriptions = {frozenset(member.topic_ids) for member in self.members.values()}
        return len(subscriptions) <= 1


Assignor = Callable[[GroupToAssign], dict[str, Assignment]]
"""What each member is to have; a member that is left out is to have nothing."""
