"""Timeouts of classic groups."""

from __future__ import annotations

from kwire.protocol.error_codes import ErrorCode
from tests.broker.groups.harness import Bench


def test_the_initial_rebalance_delay_is_extended_by_new_members() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=3_000)
    _, first = bench.new_member("g")
    bench.clock.advance(2_000)
    _, second = bench.new_member("g")
    bench.clock.advance(1_500)  # 3.5 s after the first: the second one prolonged it
    assert (first, second) == ([], [])
    bench.clock.advance(2_500)
    assert (first.one.generation_id, second.one.generation_id) == (1, 1)


def test_the_initial_rebalance_delay_ends_at_the_rebalance_timeout() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=3_000)
    _, first = bench.new_member("g", rebalance_timeout_ms=7_000)
    for _ in range(4):
        bench.clock.advance(1_900)
        if not first:
            bench.new_member("g", rebalance_timeout_ms=7_000)
    assert first.one.generation_id == 1


def test_members_that_do_not_rejoin_in_time_are_removed() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    leader, follower = bench.stable("g", 2, rebalance_timeout_ms=30_000)
    _, new = bench.new_member("g", rebalance_timeout_ms=30_000)
    bench.join("g", leader, rebalance_timeout_ms=30_000)
    for _ in range(29):
        bench.clock.advance(1_000)
        bench.heartbeat("g", follower, 1)
    assert new == []
    bench.clock.advance(1_001)
    assert new.one.generation_id == 2
    assert follower not in bench.group("g").members
    assert bench.heartbeat("g", follower, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_does_not_rejoin_stays_until_its_session_times_out() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    joined = bench.join("g", group_instance_id="i", session_timeout_ms=60_000, rebalance_timeout_ms=20_000)
    bench.clock.advance(10)
    static_id = joined.one.member_id
    bench.sync("g", static_id, 1, {static_id: b"x"})
    _, new = bench.new_member("g", rebalance_timeout_ms=20_000)
    bench.clock.advance(20_001)
    assert new.one.generation_id == 2
    assert set(bench.group("g").members) == {static_id, new.one.member_id}
    assert new.one.leader == new.one.member_id  # the leader was missing and could not assign


def test_a_group_whose_members_are_all_missing_waits_for_them() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    joined = bench.join("g", group_instance_id="i", session_timeout_ms=600_000, rebalance_timeout_ms=20_000)
    bench.clock.advance(10)
    static_id = joined.one.member_id
    bench.sync("g", static_id, 1, {static_id: b"x"})
    new_id, _ = bench.new_member("g", rebalance_timeout_ms=20_000)
    bench.leave("g", new_id)
    bench.clock.advance(25_000)
    assert bench.state("g") == "PreparingRebalance"
    assert bench.join("g", static_id, group_instance_id="i").one.generation_id == 2


def test_a_session_timeout_removes_the_member_and_rebalances_the_group() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    leader, follower = bench.stable("g", 2, session_timeout_ms=10_000)
    for _ in range(3):
        bench.clock.advance(3_000)
        assert bench.heartbeat("g", follower, 1) == ErrorCode.NONE
    bench.clock.advance(1_500)
    assert bench.heartbeat("g", leader, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat("g", follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.group("g").leader == follower


def test_a_member_waiting_for_a_response_needs_no_heartbeats() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    leader, follower = bench.stable("g", 2, session_timeout_ms=6_000, rebalance_timeout_ms=60_000)
    waiting = bench.join("g", leader, session_timeout_ms=6_000, rebalance_timeout_ms=60_000)
    for _ in range(8):
        bench.clock.advance(5_000)
        assert bench.heartbeat("g", follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    bench.join("g", follower, session_timeout_ms=6_000)
    assert waiting.one.generation_id == 2


def test_a_new_member_without_a_response_is_removed_after_five_minutes() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    [old] = bench.stable("g", session_timeout_ms=1_800_000, rebalance_timeout_ms=1_800_000)
    new, responses = bench.new_member("g", rebalance_timeout_ms=1_800_000)
    bench.clock.advance(300_001)
    assert responses.one.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert set(bench.group("g").members) == {old}
    assert new not in bench.group("g").members


def test_a_pending_member_id_expires_after_the_session_timeout() -> None:
    bench = Bench()
    given = bench.join("g", session_timeout_ms=6_000).one.member_id
    bench.clock.advance(6_001)
    assert bench.join("g", given).one.code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_pending_members() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    [member] = bench.stable("g", session_timeout_ms=10_000)
    bench.join("g", session_timeout_ms=6_000)
    rejoined = bench.join("g", member)
    assert rejoined == []
    bench.clock.advance(6_001)
    assert rejoined.one.generation_id == 2


def test_members_that_do_not_sync_are_removed() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    (leader, _), (follower, _) = (bench.new_member("g", rebalance_timeout_ms=20_000) for _ in range(2))
    bench.clock.advance(20)
    bench.sync("g", leader, 1, {leader: b"x"})
    assert bench.state("g") == "Stable"
    for _ in range(5):
        bench.clock.advance(4_100)
        bench.heartbeat("g", leader, 1)
        bench.heartbeat("g", follower, 1)
    assert follower not in bench.group("g").members
    assert bench.state("g") == "PreparingRebalance"


def test_a_stable_group_has_only_session_and_expiry_timers() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    members = bench.stable("g", 3)
    assert bench.clock.timers.pending == len(members) + 1
    bench.leave("g", *members)
    assert bench.clock.timers.pending == 1
