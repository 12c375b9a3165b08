"""Input and output of assignors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

import msgspec

from kwire.broker.groups.consumer_group import Assignment

__all__ = ["Assignor", "GroupToAssign", "MemberToAssign"]


class MemberToAssign(msgspec.Struct, frozen=True, kw_only=True):
    """A member. topic_ids: of existing topics it subscribes to, by topic name. target: its present target."""

    instance_id: str | None
    topic_ids: tuple[UUID, ...]
    target: Assignment


class GroupToAssign(msgspec.Struct, frozen=True, kw_only=True):
    """A group. members: by member id. partition_counts: of every topic that a member subscribes to."""

    members: Mapping[str, MemberToAssign]
    partition_counts: Mapping[UUID, int]

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        subscriptions = {frozenset(member.topic_ids) for member in self.members.values()}
        return len(subscriptions) <= 1


Assignor = Callable[[GroupToAssign], dict[str, Assignment]]
"""Target assignments by member id; missing members get no partitions."""
