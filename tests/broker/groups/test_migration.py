"""Members of both protocols in one group: upgrade, coexistence, downgrade (KIP-848)."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.internal_topics.consumer_protocol import read_assignment
from kwire.messages.leave_group_request import LeaveGroupRequest
from kwire.protocol.error_codes import ErrorCode
from tests.broker.groups.harness import Bench, assignment, subscription
from tests.broker.groups.test_consumer_protocol import Member

COOPERATIVE = "cooperative-sticky"


class ClassicClient:
    """A classic consumer that revokes partitions one rebalance before others get them."""

    def __init__(self, bench: Bench, member_id: str, generation: int, owned: list[int]) -> None:
        self.bench, self.member_id, self.generation, self.owned = bench, member_id, generation, owned

    def heartbeat(self) -> ErrorCode:
        """Send a heartbeat, and rejoin if the response requires it."""
        code = self.bench.heartbeat("g", self.member_id, self.generation)
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.rejoin()
        return code

    def rejoin(self) -> None:
        data = subscription("t", owned={"t": self.owned} if self.owned else None)
        joined = self.bench.join("g", self.member_id, protocols={COOPERATIVE: data}).one
        assert joined.error_code == 0
        self.generation = joined.generation_id
        synced = self.bench.sync("g", self.member_id, self.generation).one
        topics = read_assignment(synced.assignment).assigned_partitions
        self.owned = [number for topic in topics for number in topic.partitions]


def upgraded(**settings: Any) -> tuple[Bench, ClassicClient, Member]:
    """Create a classic group of one and add a member of the consumer protocol."""
    bench = Bench(**settings)
    bench.topic("t", 4)
    member_id, joined = bench.new_member("g", protocols={COOPERATIVE: subscription("t")})
    bench.clock.advance(0)
    bench.sync("g", member_id, joined.one.generation_id, {member_id: assignment(t=[0, 1, 2, 3])})
    return bench, ClassicClient(bench, member_id, 1, [0, 1, 2, 3]), Member(bench)


def test_a_classic_group_is_upgraded_while_its_members_are_active() -> None:
    bench, classic, member = upgraded()
    assert bench.state("g") == "Reconciling"
    assert (member.epoch, member.partitions) == (2, set())
    for _ in range(4):
        classic.heartbeat()
        member.beat()
    assert bench.state("g") == "Stable"
    assert len(member.partitions) == len(classic.owned) == 2
    assert member.partitions.isdisjoint(classic.owned)
    assert classic.heartbeat() == ErrorCode.NONE


def test_a_mixed_group_survives_a_restart() -> None:
    bench, classic, member = upgraded()
    for _ in range(4):
        classic.heartbeat()
        member.beat()
    bench.restart()
    assert classic.heartbeat() == ErrorCode.NONE
    assert member.beat().member_epoch == 2
    assert bench.state("g") == "Stable"


def test_the_group_is_downgraded_when_the_last_consumer_protocol_member_leaves() -> None:
    bench, classic, member = upgraded()
    for _ in range(4):
        classic.heartbeat()
        member.beat()
    bench.beat("g", member.member_id, -1)
    assert bench.state("g") == "PreparingRebalance"
    assert bench.heartbeat("g", classic.member_id, classic.generation + 1) == ErrorCode.ILLEGAL_GENERATION
    rejoined = bench.join("g", classic.member_id, protocols={COOPERATIVE: subscription("t")}).one
    assert (rejoined.generation_id, rejoined.leader) == (classic.generation + 1, classic.member_id)
    bench.sync("g", classic.member_id, rejoined.generation_id, {classic.member_id: assignment(t=[0, 1, 2, 3])})
    bench.restart()
    assert bench.state("g") == "Stable"


def test_members_of_the_classic_protocol_join_a_consumer_group() -> None:
    bench, classic, member = upgraded()
    member_id, joined = bench.new_member("g", protocols={COOPERATIVE: subscription("t")})
    assert (joined.one.generation_id, joined.one.protocol_name, joined.one.members) == (3, COOPERATIVE, [])
    other = ClassicClient(bench, member_id, 3, [])
    for _ in range(6):
        classic.heartbeat()
        other.heartbeat()
        member.beat()
    assert sorted([*classic.owned, *other.owned, *member.partitions]) == [0, 1, 2, 3]
    assert bench.state("g") == "Stable"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"range": subscription("t")}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {COOPERATIVE: b"?"}, "member_id": "m"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (
            {"protocols": {COOPERATIVE: subscription("t")}, "member_id": "m", "group_instance_id": "i"},
            ErrorCode.UNKNOWN_MEMBER_ID,
        ),
    ],
)
def test_rejected_joins_have_kafkas_error_codes(fields: dict[str, Any], code: ErrorCode) -> None:
    bench, _, _ = upgraded()
    assert bench.join("g", **fields).one.code == code


def test_classic_requests_are_checked_in_a_consumer_group() -> None:
    bench, classic, member = upgraded()
    assert bench.heartbeat("g", "nobody", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat("g", member.member_id, 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat("g", classic.member_id, 9) == ErrorCode.ILLEGAL_GENERATION
    assert bench.sync("g", classic.member_id, 9).one.code == ErrorCode.ILLEGAL_GENERATION
    assert bench.sync("g", classic.member_id, 1).one.code == ErrorCode.REBALANCE_IN_PROGRESS
    classic.heartbeat()
    wrong = bench.sync("g", classic.member_id, classic.generation, protocol_name="range")
    assert wrong.one.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.leave("g", "nobody") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert bench.commit("g", {("t", 0): 1}, classic.member_id, 99) == ErrorCode.ILLEGAL_GENERATION
    assert bench.commit("g", {("t", 0): 1}, classic.member_id, classic.generation, version=7) == ErrorCode.NONE


def test_classic_members_can_leave_a_consumer_group() -> None:
    bench, classic, member = upgraded()
    assert bench.leave("g", classic.member_id) == [0]
    member.beat()
    assert member.partitions == {0, 1, 2, 3}


def test_administrators_remove_members_of_the_consumer_protocol() -> None:
    bench = Bench()
    bench.topic("t", 2)
    static, dynamic = Member(bench, instance_id="i"), Member(bench)
    fenced = ("other", "i")
    named = [("", "unknown"), fenced, ("", "i"), ("", "i"), dynamic.member_id]
    codes = [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, 0, 0, 0]
    assert bench.leave("g", *named) == codes
    assert bench.state("g") == "Empty"
    assert static.beat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_result_of_a_static_member_names_it_as_the_request_does() -> None:
    bench = Bench()
    bench.topic("t", 2)
    Member(bench, instance_id="i")
    identity = LeaveGroupRequest.MemberIdentity(group_instance_id="i")
    result = bench.coordinator.leave(LeaveGroupRequest(group_id="g", members=[identity])).members[0]
    assert (result.member_id, result.group_instance_id, result.error_code) == ("", "i", 0)


def test_the_group_is_downgraded_when_all_members_of_the_consumer_protocol_are_removed() -> None:
    bench, classic, member = upgraded()
    other = Member(bench)
    assert bench.leave("g", member.member_id, other.member_id) == [0, 0]
    assert bench.state("g") == "PreparingRebalance"
    assert set(bench.group("g").members) == {classic.member_id}


@pytest.mark.parametrize("what", ["silence", "no JoinGroup", "no SyncGroup"])
def test_a_classic_member_that_does_not_rejoin_or_sync_is_fenced(what: str) -> None:
    bench, classic, member = upgraded()
    if what == "no SyncGroup":
        data = subscription("t", owned={"t": classic.owned})
        bench.join("g", classic.member_id, protocols={COOPERATIVE: data}, rebalance_timeout_ms=20_000)
    for _ in range(20):
        bench.clock.advance(4_000)
        member.beat()
        if what == "no JoinGroup":
            bench.heartbeat("g", classic.member_id, 1)
        if what == "no SyncGroup":
            bench.heartbeat("g", classic.member_id, bench.group("g").members[classic.member_id].epoch) if (
                classic.member_id in bench.group("g").members
            ) else None
    assert set(bench.group("g").members) == {member.member_id}
    member.beat()
    assert member.partitions == {0, 1, 2, 3}


def test_an_upgrade_makes_waiting_members_rejoin() -> None:
    bench = Bench(group_consumer_migration_policy="upgrade", group_initial_rebalance_delay_ms=10)
    bench.topic("t", 4)
    first, _ = bench.stable("g", 2, protocols={COOPERATIVE: subscription("t")})
    for member in bench.group("g").members.values():
        member.assignment = assignment(t=[0])
    waiting = bench.join("g", first, protocols={COOPERATIVE: subscription("t", "u")})
    assert waiting == []
    assert not isinstance(bench.beat("g"), ErrorCode)
    assert waiting.one.error_code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("policy", "upgrades", "downgrades"),
    [
        ("disabled", False, False),
        ("upgrade", True, False),
        ("downgrade", False, True),
        ("BIDIRECTIONAL", True, True),
    ],
)
def test_the_migration_policy_allows_or_rejects_conversions(policy: str, upgrades: bool, downgrades: bool) -> None:
    bench = Bench(group_consumer_migration_policy=policy)
    bench.topic("t", 1)
    bench.stable("classic", protocols={COOPERATIVE: subscription("t")})
    for member in bench.group("classic").members.values():
        member.assignment = assignment(t=[0])
    assert isinstance(bench.beat("classic"), ErrorCode) != upgrades
    new = Member(bench, "new")
    bench.new_member("new", protocols={COOPERATIVE: subscription("t")})
    bench.beat("new", new.member_id, -1)
    assert (bench.state("new") == "PreparingRebalance") == downgrades


def test_a_group_with_unreadable_members_stays_classic() -> None:
    bench = Bench()
    bench.stable("g", protocols={COOPERATIVE: b"?"})
    assert bench.beat("g") == ErrorCode.GROUP_ID_NOT_FOUND
    bench.stable("h", protocol_type="connect")
    assert bench.beat("h") == ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.state("g") == bench.state("h") == "Stable"
