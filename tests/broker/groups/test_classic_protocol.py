"""Requests of classic groups follow Kafka's rules (KIP-345, KIP-394, KIP-814)."""

from __future__ import annotations

import pytest

from kwire.protocol.error_codes import ErrorCode
from tests.broker.groups.harness import Bench, subscription


def test_a_member_without_an_id_gets_one_and_must_rejoin_with_it() -> None:
    bench = Bench()
    first = bench.join("g").one
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id.startswith("c-")
    again = bench.join("g", first.member_id)
    bench.clock.advance(0)
    assert (again.one.error_code, again.one.generation_id, again.one.leader) == (0, 1, first.member_id)
    assert [member.member_id for member in again.one.members] == [first.member_id]


def test_before_version_4_a_member_joins_without_an_id() -> None:
    bench = Bench()
    joined = bench.join("g", version=3)
    bench.clock.advance(0)
    assert joined.one.generation_id == 1


def test_only_the_leader_receives_the_list_of_members() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=100)
    (leader, first), (_, second) = bench.new_member("g"), bench.new_member("g")
    bench.clock.advance(200)
    assert first.one.leader == second.one.leader == leader
    assert len(first.one.members) == 2
    assert second.one.members == []
    assert first.one.protocol_name == "range"
    assert first.one.protocol_type == "consumer"


def test_followers_wait_for_the_leaders_assignment() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=100)
    (leader, _), (follower, _) = bench.new_member("g"), bench.new_member("g")
    bench.clock.advance(200)
    waiting = bench.sync("g", follower, 1)
    assert waiting == []
    assert bench.sync("g", leader, 1, {leader: b"a", follower: b"b"}).one.assignment == b"a"
    assert waiting.one.assignment == b"b"
    assert bench.state("g") == "Stable"
    assert bench.sync("g", follower, 1).one.assignment == b"b"  # a retry after a lost response


def test_a_member_missing_from_the_assignment_gets_an_empty_one() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=100)
    (leader, _), (follower, _) = bench.new_member("g"), bench.new_member("g")
    bench.clock.advance(200)
    waiting = bench.sync("g", follower, 1)
    bench.sync("g", leader, 1, {leader: b"a"})
    assert (waiting.one.error_code, waiting.one.assignment) == (0, b"")


def test_the_protocol_is_the_common_one_with_most_votes() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=100)
    data = subscription("t")
    for names in (["x", "range", "sticky"], ["sticky", "range"], ["sticky", "range", "x"]):
        bench.new_member("g", protocols=dict.fromkeys(names, data))
    bench.clock.advance(300)
    assert bench.group("g").protocol_name == "sticky"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"protocols": {"other": b""}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "nobody", "group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_rejected_joins_have_kafkas_error_codes(fields: dict[str, object], code: ErrorCode) -> None:
    bench = Bench()
    bench.stable("g")
    assert bench.join("g", **fields).one.code == code


def test_an_empty_group_id_is_invalid() -> None:
    bench = Bench()
    assert bench.join("").one.code == ErrorCode.INVALID_GROUP_ID
    assert bench.heartbeat("", "m", 1) == ErrorCode.INVALID_GROUP_ID


def test_a_member_of_a_missing_group_is_unknown() -> None:
    bench = Bench()
    assert bench.join("g", "m").one.code == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.sync("g", "m", 1).one.code == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat("g", "m", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.state("g") == "Dead"


def test_group_max_size_limits_the_members_of_a_group() -> None:
    bench = Bench(group_max_size=2)
    [old] = bench.stable("g", 1)
    joins = [bench.new_member("g")[1] for _ in range(2)]  # while it rebalances, those that join first are in
    refused = bench.join("g").one
    assert (refused.error_code, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert bench.join("g", old).one.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    bench.clock.advance(60_000)
    assert [responses.one.generation_id for responses in joins] == [2, 2]


@pytest.mark.parametrize("version", [3, 9])
def test_a_full_stable_group_refuses_new_members_and_stays_stable(version: int) -> None:
    bench = Bench(group_max_size=2, group_initial_rebalance_delay_ms=10)
    leader, follower = bench.stable("g", 2)
    refused = bench.join("g", version=version).one
    assert (refused.error_code, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert bench.join("g", follower).one.generation_id == 1
    assert bench.state("g") == "Stable"
    assert bench.leave("g", follower) == [0]
    bench.join("g", leader)
    bench.clock.advance(60_000)
    assert bench.join("g").one.error_code == ErrorCode.MEMBER_ID_REQUIRED  # one less has room


def test_heartbeats_are_checked_against_member_and_generation() -> None:
    bench = Bench()
    [member] = bench.stable("g")
    assert bench.heartbeat("g", member, 1) == ErrorCode.NONE
    assert bench.heartbeat("g", member, 2) == ErrorCode.ILLEGAL_GENERATION
    assert bench.heartbeat("g", "other", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    bench.new_member("g")
    assert bench.heartbeat("g", member, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_sync_is_checked_against_generation_and_protocol() -> None:
    bench = Bench()
    [member] = bench.stable("g")
    assert bench.sync("g", member, 7).one.code == ErrorCode.ILLEGAL_GENERATION
    wrong = bench.sync("g", member, 1, protocol_type="consumer", protocol_name="sticky")
    assert wrong.one.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    right = bench.sync("g", member, 1, protocol_type="consumer", protocol_name="range")
    assert right.one.assignment == b"for 0"
    bench.new_member("g")
    assert bench.sync("g", member, 1).one.code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_rejoin_of_the_leader_rebalances_an_unchanged_follower_does_not() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    leader, follower = bench.stable("g", 2)
    assert bench.join("g", follower).one.generation_id == 1
    assert bench.state("g") == "Stable"
    assert bench.join("g", leader) == []
    assert bench.state("g") == "PreparingRebalance"


def test_a_changed_subscription_of_a_follower_triggers_a_rebalance() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    _, follower = bench.stable("g", 2)
    assert bench.join("g", follower, protocols={"range": subscription("t", "u")}) == []
    assert bench.state("g") == "PreparingRebalance"


def test_a_repeated_join_gets_the_same_response() -> None:
    bench = Bench()
    member, _ = bench.new_member("g")
    bench.clock.advance(0)
    again = bench.join("g", member).one
    assert (again.generation_id, len(again.members)) == (1, 1)
    assert bench.state("g") == "CompletingRebalance"


def test_a_rebalance_makes_members_in_sync_group_rejoin() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    (_, _), (follower, _) = bench.new_member("g"), bench.new_member("g")
    bench.clock.advance(20)
    waiting = bench.sync("g", follower, 1)
    bench.new_member("g")
    assert waiting.one.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_batch_of_leaving_members_has_one_result_each() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    first, second, _ = bench.stable("g", 3)
    pending = bench.join("g").one.member_id
    codes = bench.leave("g", first, "nobody", pending, ("", "no instance"), second)
    assert codes == [0, ErrorCode.UNKNOWN_MEMBER_ID, 0, ErrorCode.UNKNOWN_MEMBER_ID, 0]
    assert len(bench.group("g").members) == 1


def test_the_last_member_leaves_an_empty_group_with_a_new_generation() -> None:
    bench = Bench()
    [member] = bench.stable("g")
    assert bench.leave("g", member) == [0]
    group = bench.group("g")
    assert (bench.state("g"), group.generation_id, group.protocol_type, group.protocol_name) == (
        "Empty",
        2,
        "consumer",
        None,
    )


# --- static members ---


def static(bench: Bench, group_id: str = "g", instance_id: str = "i", **fields: object) -> str:
    """Create a stable group of one static member and return its member id."""
    joined = bench.join(group_id, group_instance_id=instance_id, **fields)
    bench.clock.advance(bench.settings.group_initial_rebalance_delay_ms)
    member_id = joined.one.member_id
    bench.sync(group_id, member_id, joined.one.generation_id, {member_id: b"mine"})
    return str(member_id)


def test_a_returning_static_member_keeps_its_assignment() -> None:
    bench = Bench()
    old = static(bench)
    back = bench.join("g", group_instance_id="i").one
    assert back.member_id.startswith("i-")
    assert back.member_id != old
    assert (back.generation_id, back.skip_assignment, back.leader) == (1, True, back.member_id)
    assert len(back.members) == 1
    assert bench.state("g") == "Stable"
    assert bench.sync("g", back.member_id, 1, group_instance_id="i").one.assignment == b"mine"
    assert bench.heartbeat("g", old, 1, "i") == ErrorCode.FENCED_INSTANCE_ID
    assert bench.sync("g", old, 1, group_instance_id="i").one.code == ErrorCode.FENCED_INSTANCE_ID
    assert bench.join("g", old, group_instance_id="i").one.code == ErrorCode.FENCED_INSTANCE_ID


def test_before_version_9_a_returning_leader_gets_its_old_member_id_as_leader() -> None:
    bench = Bench()
    old = static(bench)
    back = bench.join("g", group_instance_id="i", version=8).one
    assert (back.leader, back.skip_assignment, back.members) == (old, False, [])


def test_a_static_member_that_returns_with_another_protocol_triggers_a_rebalance() -> None:
    bench = Bench()
    static(bench, protocols={"range": subscription("t"), "sticky": subscription("t")})
    back = bench.join("g", group_instance_id="i", protocols={"sticky": subscription("t")})
    assert back.one.generation_id == 2  # the only member, so the rebalance completes immediately
    assert bench.state("g") == "CompletingRebalance"


def test_a_waiting_static_member_is_fenced_by_its_new_member_id() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=100)
    waiting = bench.join("g", group_instance_id="i")
    assert waiting == []
    bench.join("g", group_instance_id="i")
    assert waiting.one.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_can_leave_by_its_instance_id_only() -> None:
    bench = Bench()
    member = static(bench)
    assert bench.leave("g", ("wrong", "i")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert bench.leave("g", ("", "i")) == [0]
    assert bench.heartbeat("g", member, 1, "i") == ErrorCode.UNKNOWN_MEMBER_ID


# --- when nothing can be written ---


def test_a_group_that_cannot_be_written_is_not_created() -> None:
    bench = Bench()
    bench.break_log()
    assert bench.join("g").one.code == ErrorCode.NOT_COORDINATOR
    assert bench.state("g") == "Dead"


def test_an_assignment_that_cannot_be_written_is_not_sent() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    (leader, _), (follower, _) = bench.new_member("g"), bench.new_member("g")
    bench.clock.advance(20)
    waiting = bench.sync("g", follower, 1)
    bench.break_log()
    assert bench.sync("g", leader, 1, {leader: b"a", follower: b"b"}).one.error_code == ErrorCode.NOT_COORDINATOR
    assert waiting.one.error_code == ErrorCode.NOT_COORDINATOR
    assert bench.state("g") == "PreparingRebalance"


def test_a_static_member_keeps_its_old_id_if_its_return_cannot_be_written() -> None:
    bench = Bench()
    old = static(bench)
    bench.break_log()
    assert bench.join("g", group_instance_id="i").one.code == ErrorCode.NOT_COORDINATOR
    assert bench.heartbeat("g", old, 1, "i") == ErrorCode.NONE
    assert bench.sync("g", old, 1, group_instance_id="i").one.assignment == b"mine"
