"""A group of the classic protocol: its members, their votes for a protocol, and the members it waits for.

    state                 entered when                                    left when
    Empty                 the last member leaves; offsets may remain      a member joins
    PreparingRebalance    a member joins, leaves or asks for a rebalance  all members joined again, or at the timeout
    CompletingRebalance   a generation begins                             the leader's assignment is stored
    Stable                the assignment is stored                        PreparingRebalance is entered

Kafka's fifth state, Dead, is the state of a group that does not exist.

Source: org.apache.kafka.coordinator.group.classic.ClassicGroup, ClassicGroupMember, ClassicGroupState.
"""

from __future__ import annotations

import enum
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kwire.broker.groups.responses import JoinCallback, SyncCallback
from kwire.errors import DecodeError
from kwire.internal_topics.consumer_protocol import PROTOCOL_TYPE, stored_version
from kwire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kwire.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kwire.messages.sync_group_response import SyncGroupResponse
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["ClassicGroup", "ClassicMember", "ClassicState", "Protocols"]

Protocols = tuple[tuple[str, bytes], ...]
"""The protocols of a member in its order of preference, each with the member's metadata."""


class ClassicState(enum.StrEnum):
    """State names in the responses of DescribeGroups and ListGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicMember:
    """A member of a classic group.

    awaiting_join, awaiting_sync: receive the response of the member's open request, None without one.
    is_new: the member joined and waits for its first generation. Until then a longer timer guards its session, because
    a client that dies in between never uses its member id.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    awaiting_join: JoinCallback | None = None
    awaiting_sync: SyncCallback | None = None

    def metadata(self, protocol: str | None) -> bytes:
        """Return the metadata for a protocol; all members of a generation support the selected one."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether an expired session is excused: a member that waits for a response sends no heartbeats."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicGroup:
    """A classic group. Members are in the order in which they joined; the first is the leader unless it left.

    state_since_ms: when the state was entered, -1 if a log from before Kafka 2.1 has no time. pending_joins: member ids
    that were returned with MEMBER_ID_REQUIRED and have not joined yet. pending_syncs: members of the generation whose
    SyncGroup has not arrived. subscribed_topics: of the generation; None for other protocol types and for metadata that
    cannot be read.
    """

    group_id: str
    state: ClassicState = ClassicState.EMPTY
    previous_state: ClassicState | None = None
    state_since_ms: int = -1
    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    pending_joins: set[str] = field(default_factory=set)
    pending_syncs: set[str] = field(default_factory=set)
    new_member_added: bool = False
    subscribed_topics: frozenset[str] | None = None

    # --- members ---

    def add(self, member: ClassicMember) -> None:
        """Add a member; it becomes the leader of a group without one."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member id, and elect another leader if it was the leader."""
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> ClassicMember:
        """Give the member of an instance a new member id, and fence requests that wait under the old one."""
        old = self.members.pop(old_id)
        fenced = int(ErrorCode.FENCED_INSTANCE_ID)
        self.complete_join(old, JoinGroupResponse(member_id=old_id, leader="", error_code=fenced))
        self.complete_sync(old, SyncGroupResponse(error_code=fenced))
        new = self.members[new_id] = replace(old, member_id=new_id, is_new=False)
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[instance_id] = new_id
        return new

    def new_member_id(self, client_id: str, instance_id: str | None) -> str:
        """Return a new member id: the instance or client id, and a random UUID."""
        return f"{client_id if instance_id is None else instance_id}-{uuid.uuid4()}"

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Check that a member belongs to the group.

        Raises BrokerError: UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID if the instance has another member id.
        """
        if instance_id is not None:
            existing = self.static_members.get(instance_id)
            if existing is None:
                raise refusal(
                    ErrorCode.UNKNOWN_MEMBER_ID, f"instance '{instance_id}' is not a member of group '{self.group_id}'"
                )
            if existing != member_id:
                raise refusal(ErrorCode.FENCED_INSTANCE_ID, f"instance '{instance_id}' belongs to member '{existing}'")
        if member_id not in self.members:
            raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"'{member_id}' is not a member of group '{self.group_id}'")

    # --- waiting ---

    @property
    def joined_count(self) -> int:
        """The number of members that wait for a JoinGroup response."""
        return sum(member.awaiting_join is not None for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        """Whether every member waits for its response and no member id is pending."""
        return not self.pending_joins and all(m.awaiting_join is not None for m in self.members.values())

    def complete_join(self, member: ClassicMember, response: JoinGroupResponse) -> bool:
        """Complete a member's JoinGroup; return whether it was waiting."""
        respond, member.awaiting_join = member.awaiting_join, None
        if respond is None:
            return False
        respond(response)
        return True

    def complete_sync(self, member: ClassicMember, response: SyncGroupResponse) -> bool:
        """Complete a member's SyncGroup; return whether it was waiting."""
        respond, member.awaiting_sync = member.awaiting_sync, None
        if respond is None:
            return False
        respond(response)
        return True

    @property
    def rebalance_timeout_ms(self) -> int:
        """Time that a rebalance waits for members: the longest timeout of any of them."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # --- generations ---

    def enter(self, state: ClassicState, now_ms: int) -> None:
        """Move to a state."""
        self.previous_state, self.state, self.state_since_ms = self.state, state, now_ms

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may begin: in every state except PreparingRebalance."""
        return self.state is not ClassicState.PREPARING_REBALANCE

    def elect_joined_leader(self) -> bool:
        """Elect a member that joined again, the present leader if it did. Return False if no member did."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader = member.member_id
                return True
        return False

    def begin_generation(self, now_ms: int) -> None:
        """Begin the next generation: CompletingRebalance, or Empty if no member joined."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.find_subscribed_topics()
        self.enter(ClassicState.COMPLETING_REBALANCE if self.members else ClassicState.EMPTY, now_ms)
        self.pending_syncs.clear()

    def select_protocol(self) -> str:
        """Return the protocol with most votes: each member votes for the first in its list that all members support.

        Of protocols with equal votes, the one that the earliest member voted for wins; Kafka leaves that open.
        """
        offered = self._offers()
        votes = Counter(
            next(name for name, _ in member.protocols if offered[name] == len(self.members))
            for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a member with these protocols can join."""
        if self.state is ClassicState.EMPTY:
            return protocol_type != "" and any(True for _ in names)
        offered = self._offers()
        return protocol_type == self.protocol_type and any(offered[name] == len(self.members) for name in names)

    def _offers(self) -> Counter[str]:
        """Count the members that support each protocol."""
        return Counter(name for member in self.members.values() for name in {name for name, _ in member.protocols})

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers, whose metadata is readable here."""
        return self.protocol_type == PROTOCOL_TYPE

    def find_subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics that the members of this generation subscribe to; see subscribed_topics."""
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        return subscribed_topics(member.metadata(self.protocol_name) for member in self.members.values())

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads a topic; consumers with unreadable metadata may read any."""
        return self.uses_consumer_protocol if self.subscribed_topics is None else topic in self.subscribed_topics

    def joined_response(
        self, member_id: str, *, with_members: bool, skip_assignment: bool = False
    ) -> JoinGroupResponse:
        """Return the JoinGroup response of a member of this generation. with_members: for the leader."""
        return JoinGroupResponse(
            members=[
                JoinGroupResponseMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    metadata=member.metadata(self.protocol_name),
                )
                for member in (self.members.values() if with_members else ())
            ],
            member_id=member_id,
            generation_id=self.generation_id,
            protocol_name=self.protocol_name,
            protocol_type=self.protocol_type,
            leader=self.leader or "",
            skip_assignment=skip_assignment,
        )


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics of these subscriptions, None if one cannot be read. Only fields of version 0 are read."""
    topics: set[str] = set()
    try:
        for data in metadata:
            stored_version(data)
            topics.update(ConsumerProtocolSubscription.decode_from(data, 2, version=0)[0].topics)
    except DecodeError:
        return None
    return frozenset(topics)
