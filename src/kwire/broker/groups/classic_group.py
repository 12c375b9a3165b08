"""One group of the classic protocol: its members, their votes, and which of them are being waited for.

    state                 entered when                                     left when
    Empty                 the last member is gone; offsets may remain      a member joins
    PreparingRebalance    a member joins, leaves, or asks for a rebalance  all have joined again, or the time is over
    CompletingRebalance   a generation begins                              the leader's assignment is stored
    Stable                the assignment is stored                         as PreparingRebalance is entered

Kafka's fifth state, Dead, is what it calls a group that is not there; nothing is in it here.

Source: org.apache.kafka.coordinator.group.classic.ClassicGroup, ClassicGroupMember, ClassicGroupState.
"""

from __future__ import annotations

import enum
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kwire.broker.groups.answers import JoinAnswer, SyncAnswer
from kwire.broker.groups.embedded_protocol import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from kwire.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kwire.messages.sync_group_response import SyncGroupResponse
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["ClassicGroup", "ClassicMember", "ClassicState", "Protocols"]

Protocols = tuple[tuple[str, bytes], ...]
"""What a member offers, in its order of preference: (protocol's name, the member's metadata for it)."""


class ClassicState(enum.StrEnum):
    """By the names that DescribeGroups and ListGroups give."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicMember:
    """A member. awaiting_join, awaiting_sync: where its open request wants the answer, None without one.

    is_new: it has joined and waits for its first generation; until then its session is guarded by a longer timer,
    because a client that died in between will never come back for the member id.
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
    awaiting_join: JoinAnswer | None = None
    awaiting_sync: SyncAnswer | None = None

    def metadata(self, protocol: str | None) -> bytes:
        """What it said for this protocol; the members of a generation have all offered the one that was chosen."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether an expired session is to be forgiven: it waits for our answer, so it cannot send heartbeats."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicGroup:
    """See the module's head. Members keep the order in which they came; the first is the leader unless it was lost.

    state_since_ms: when the state was entered, -1 when a log of before Kafka 2.1 does not say.
    pending_joins: member ids that were given out with MEMBER_ID_REQUIRED and have not come back yet.
    pending_syncs: members of this generation whose SyncGroup has not come.
    subscribed_topics: of the generation; None when the protocol type is another, or metadata cannot be read.
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
        """Take a member in; it becomes the leader of a group without one."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Let a member go, or a member id that was only given out; another member becomes the leader if it was."""
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> ClassicMember:
        """The member of an instance under a new member id; whoever waits under the old one is fenced."""
        old = self.members.pop(old_id)
        fenced = int(ErrorCode.FENCED_INSTANCE_ID)
        self.answer_join(old, JoinGroupResponse(member_id=old_id, leader="", error_code=fenced))
        self.answer_sync(old, SyncGroupResponse(error_code=fenced))
        new = ClassicMember(
            member_id=new_id,
            instance_id=instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocol_type=old.protocol_type,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self.members[new_id] = new
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[instance_id] = new_id
        return new

    def new_member_id(self, client_id: str, instance_id: str | None) -> str:
        """An id that nobody has: who it is, and a random UUID."""
        return f"{client_id if instance_id is None else instance_id}-{uuid.uuid4()}"

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises BrokerError: UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID when the instance has another member id by now."""
        if instance_id is not None:
            existing = self.static_members.get(instance_id)
            if existing is None:
                raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id} has no instance {instance_id}")
            if existing != member_id:
                raise refusal(ErrorCode.FENCED_INSTANCE_ID, f"instance {instance_id} is member {existing} by now")
        if member_id not in self.members:
            raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id} has no member {member_id}")

    # --- waiting ---

    @property
    def joined_count(self) -> int:
        """How many members wait for their JoinGroup's answer."""
        return sum(member.awaiting_join is not None for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        """Whether nobody is missing: every member waits, and every id that was given out has come back."""
        return not self.pending_joins and all(m.awaiting_join is not None for m in self.members.values())

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse) -> bool:
        """Answer the member's JoinGroup, if one waits; returns whether one did."""
        answer, member.awaiting_join = member.awaiting_join, None
        if answer is None:
            return False
        answer(response)
        return True

    def answer_sync(self, member: ClassicMember, response: SyncGroupResponse) -> bool:
        """Answer the member's SyncGroup, if one waits; returns whether one did."""
        answer, member.awaiting_sync = member.awaiting_sync, None
        if answer is None:
            return False
        answer(response)
        return True

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a rebalance waits for members: the longest that any of them asked for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # --- generations ---

    def enter(self, state: ClassicState, now_ms: int) -> None:
        """Move to a state."""
        self.previous_state, self.state, self.state_since_ms = self.state, state, now_ms

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may begin: in every state but while one is being prepared."""
        return self.state is not ClassicState.PREPARING_REBALANCE

    def elect_joined_leader(self) -> bool:
        """Make a member that has joined again the leader, the one before if it has; False when there is none."""
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
        """The next generation, of the members that are there: CompletingRebalance, or Empty without any."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.find_subscribed_topics()
        self.enter(ClassicState.COMPLETING_REBALANCE if self.members else ClassicState.EMPTY, now_ms)
        self.pending_syncs.clear()

    def select_protocol(self) -> str:
        """What the members vote for among the protocols that all of them offer: each for the first in its list.

        Of several with as many votes the one that the earliest member named first; Kafka leaves that open.
        """
        offered = self._offers()
        votes = Counter(
            next(name for name, _ in member.protocols if offered[name] == len(self.members))
            for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols fits in."""
        if self.state is ClassicState.EMPTY:
            return protocol_type != "" and any(True for _ in names)
        offered = self._offers()
        return protocol_type == self.protocol_type and any(offered[name] == len(self.members) for name in names)

    def _offers(self) -> Counter[str]:
        """How many members offer each protocol."""
        return Counter(name for member in self.members.values() for name in {name for name, _ in member.protocols})

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers, whose metadata can be read here."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def find_subscribed_topics(self) -> frozenset[str] | None:
        """The topics that members of this generation read; see subscribed_topics."""
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        return subscribed_topics(member.metadata(self.protocol_name) for member in self.members.values())

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic; consumers whose metadata cannot be read may read any."""
        return self.uses_consumer_protocol if self.subscribed_topics is None else topic in self.subscribed_topics

    def joined_members(self) -> Sequence[JoinGroupResponseMember]:
        """What the leader is told of everybody."""
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.members.values()
        ]

    def joined_response(
        self, member_id: str, *, with_members: bool, skip_assignment: bool = False
    ) -> JoinGroupResponse:
        """The answer to a member that is in this generation."""
        return JoinGroupResponse(
            members=list(self.joined_members()) if with_members else [],
            member_id=member_id,
            generation_id=self.generation_id,
            protocol_name=self.protocol_name,
            protocol_type=self.protocol_type,
            leader=self.leader or "",
            skip_assignment=skip_assignment,
        )
