"""Offset commits: permitted members, open transactions, expiry."""

from __future__ import annotations

import pytest

from kwire.broker.transactions import ProducerIdAndEpoch
from kwire.errors import BrokerError
from kwire.protocol.error_codes import ErrorCode
from tests.broker.groups.harness import Bench, subscription
from tests.broker.groups.test_consumer_protocol import Member

P0, P1, U0 = ("t", 0), ("t", 1), ("u", 0)
DAY_MS = 86_400_000


def test_a_simple_consumer_commits_without_a_group() -> None:
    bench = Bench()
    assert bench.commit("g", {P0: 5}) == ErrorCode.NONE
    assert bench.state("g") == "Empty"
    assert bench.commit("", {P0: 6}) == ErrorCode.NONE
    bench.restart()
    assert (bench.committed("g"), bench.committed("")) == ({P0: 5}, {P0: 6})


def test_members_of_a_classic_group_commit_within_their_generation() -> None:
    bench = Bench()
    [member] = bench.stable("g")
    assert bench.commit("g", {P0: 1}, member, 1) == ErrorCode.NONE
    assert bench.commit("g", {P0: 2}, member, 2) == ErrorCode.ILLEGAL_GENERATION
    assert bench.commit("g", {P0: 2}, "other", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.commit("g", {P0: 2}) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.commit("g", {P0: 2}, member, 1, instance_id="i") == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.committed("g") == {P0: 1}


def test_commits_are_rejected_until_a_generation_is_assigned() -> None:
    bench = Bench()
    member, _ = bench.new_member("g")
    bench.clock.advance(0)
    assert bench.commit("g", {P0: 1}, member, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_commits_are_accepted_while_a_rebalance_is_prepared() -> None:
    bench = Bench()
    [member] = bench.stable("g")
    bench.new_member("g")
    assert bench.commit("g", {P0: 1}, member, 1) == ErrorCode.NONE


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_the_error_of_a_missing_group_depends_on_the_version(version: int, code: ErrorCode) -> None:
    assert Bench().commit("g", {P0: 1}, "m", 3, version=version) == code


def test_members_of_a_consumer_group_commit_at_their_epoch() -> None:
    bench = Bench()
    bench.topic("t", 2)
    member = Member(bench)
    assert bench.commit("g", {P0: 1}, member.member_id, 1) == ErrorCode.NONE
    assert bench.commit("g", {P0: 2}, member.member_id, 0) == ErrorCode.STALE_MEMBER_EPOCH
    assert bench.commit("g", {P0: 2}, member.member_id, 1, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert bench.commit("g", {P0: 2}) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.committed("g") == {P0: 1}
    fetch = bench.coordinator.offsets.check_fetch
    assert fetch("g", member.member_id, 1)
    assert fetch("g", None, -1)
    for member_id, epoch, code in (
        (member.member_id, 0, ErrorCode.STALE_MEMBER_EPOCH),
        ("other", 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with pytest.raises(BrokerError) as refused:
            fetch("g", member_id, epoch)
        assert refused.value.code == code


def test_a_commit_that_cannot_be_written_changes_nothing() -> None:
    bench = Bench()
    bench.commit("g", {P0: 1})
    bench.break_log()
    assert bench.commit("g", {P0: 2, P1: 2}) == ErrorCode.NOT_COORDINATOR
    assert bench.committed("g") == {P0: 1}


def test_the_length_of_metadata_is_javas() -> None:
    offsets = Bench(offset_metadata_max_bytes=4).coordinator.offsets
    assert not offsets.is_too_large(None)
    assert not offsets.is_too_large("éééé")
    assert offsets.is_too_large("ééééé")
    assert not offsets.is_too_large("\N{GRINNING FACE}" * 2)
    assert offsets.is_too_large("\N{GRINNING FACE}" * 3)


# --- transactions ---


def test_transactional_offsets_apply_at_commit() -> None:
    bench = Bench()
    bench.commit("g", {P0: 1})
    producer = ProducerIdAndEpoch(7, 0)
    assert bench.commit("g", {P0: 5, P1: 6}, producer=producer) == ErrorCode.NONE
    state = bench.coordinator.store.state
    assert bench.committed("g") == {P0: 1}
    assert state.pending_partitions("g") == {P0, P1}
    bench.restart()
    assert P0 in bench.coordinator.store.state.pending_partitions("g")
    bench.coordinator.complete_transaction(7, commit=True)
    assert bench.committed("g") == {P0: 5, P1: 6}
    assert P0 not in bench.coordinator.store.state.pending_partitions("g")


def test_transactional_offsets_are_dropped_at_abort() -> None:
    bench = Bench()
    bench.commit("g", {P0: 5}, producer=ProducerIdAndEpoch(7, 0))
    bench.coordinator.complete_transaction(7, commit=False)
    bench.coordinator.complete_transaction(8, commit=True)  # of somebody else: nothing of ours
    assert bench.committed("g") == {}


def test_a_transaction_does_not_overwrite_a_later_commit() -> None:
    bench = Bench()
    bench.commit("g", {P0: 5}, producer=ProducerIdAndEpoch(7, 0))
    bench.commit("g", {P0: 9})
    partition = bench.coordinator.store.partition_of("g")
    bench.log.append_marker(partition, 7, commit=True)
    bench.coordinator.complete_transaction(7, commit=True)
    assert bench.committed("g") == {P0: 9}
    bench.restart()
    assert bench.committed("g") == {P0: 9}


def test_a_marker_ends_the_transaction_only_in_its_partition() -> None:
    bench = Bench()
    groups = ["g", "h", "i", "j"]
    partitions = {group: bench.coordinator.store.partition_of(group) for group in groups}
    one = "g"
    other = next(group for group in groups if partitions[group] != partitions[one])
    for group in (one, other):
        bench.commit(group, {P0: 5}, producer=ProducerIdAndEpoch(7, 0))
    bench.log.append_marker(partitions[one], 7, commit=True)
    bench.coordinator.complete_transaction(7, commit=True, partitions=[partitions[one]])
    assert (bench.committed(one), bench.committed(other)) == ({P0: 5}, {})
    bench.restart()
    assert (bench.committed(one), bench.committed(other)) == ({P0: 5}, {})


def test_transactional_commits_check_generations() -> None:
    bench = Bench()
    [member] = bench.stable("g")
    producer = ProducerIdAndEpoch(7, 0)
    assert bench.commit("g", {P0: 1}, member, 1, producer=producer) == ErrorCode.NONE
    assert bench.commit("g", {P0: 1}, member, 2, producer=producer) == ErrorCode.ILLEGAL_GENERATION
    assert bench.commit("g", {P0: 1}, producer=producer) == ErrorCode.NONE  # older clients say nothing of it
    assert bench.commit("h", {P0: 1}, "m", 4, producer=producer) == ErrorCode.ILLEGAL_GENERATION


# --- deleting ---


def test_offsets_of_unsubscribed_topics_can_be_deleted() -> None:
    bench = Bench()
    [member] = bench.stable("g")
    bench.commit("g", {P0: 1, U0: 2}, member, 1)
    assert bench.coordinator.offsets.check_delete("g").is_subscribed_to("t")
    bench.coordinator.offsets.delete("g", [U0, ("u", 7)])
    assert bench.committed("g") == {P0: 1}
    bench.stable("other", protocol_type="connect", protocols={"x": b"?"})
    for group, code in (("nothing", ErrorCode.GROUP_ID_NOT_FOUND), ("other", ErrorCode.NON_EMPTY_GROUP)):
        with pytest.raises(BrokerError) as refused:
            bench.coordinator.offsets.check_delete(group)
        assert refused.value.code == code


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    bench = Bench()
    bench.topic("t", 1)
    [member] = bench.stable("g")
    consumer = Member(bench, "h")
    bench.commit("g", {P0: 1}, member, 1)
    bench.commit("g", {U0: 1}, producer=ProducerIdAndEpoch(7, 0))
    for group in ("g", "h"):
        with pytest.raises(BrokerError) as refused:
            bench.coordinator.delete(group)
        assert refused.value.code == ErrorCode.NON_EMPTY_GROUP
    bench.leave("g", member)
    bench.beat("h", consumer.member_id, -1)
    bench.coordinator.delete("g")
    bench.coordinator.delete("h")
    for _ in range(2):
        assert (bench.state("g"), bench.state("h"), bench.committed("g")) == ("Dead", "Dead", {})
        assert not bench.coordinator.store.state.pending_partitions("g")
        bench.restart()


def test_offsets_of_a_deleted_topic_are_removed() -> None:
    bench = Bench()
    bench.commit("g", {P0: 1, U0: 2})
    bench.commit("h", {P1: 1}, producer=ProducerIdAndEpoch(7, 0))
    bench.coordinator.topics_deleted(["t"])
    bench.coordinator.complete_transaction(7, commit=True)
    assert (bench.committed("g"), bench.committed("h")) == ({U0: 2}, {})


# --- forgetting ---


def test_offsets_of_a_simple_consumer_expire_one_by_one_then_the_group() -> None:
    bench = Bench()
    bench.commit("g", {P0: 1})
    bench.clock.advance(DAY_MS)
    bench.commit("g", {P1: 1})
    bench.clock.advance(6 * DAY_MS + 600_000)
    assert bench.committed("g") == {P1: 1}
    bench.clock.advance(DAY_MS)
    assert (bench.committed("g"), bench.state("g")) == ({}, "Dead")
    bench.restart()
    assert bench.state("g") == "Dead"


def test_offsets_expire_a_week_after_the_last_member_left() -> None:
    bench = Bench()
    [member] = bench.stable("g", session_timeout_ms=1_800_000)
    bench.commit("g", {P0: 1}, member, 1)
    for _ in range(9 * 24 * 3):
        bench.clock.advance(1_200_000)
        bench.heartbeat("g", member, 1)
    assert bench.committed("g") == {P0: 1}
    bench.leave("g", member)
    bench.clock.advance(6 * DAY_MS)
    assert bench.committed("g") == {P0: 1}
    bench.clock.advance(DAY_MS + 600_000)
    assert bench.state("g") == "Dead"


def test_offsets_of_topics_without_a_subscription_expire() -> None:
    bench = Bench(offsets_retention_minutes=1, offsets_retention_check_interval_ms=10_000)
    [member] = bench.stable("g", session_timeout_ms=1_800_000, protocols={"range": subscription("t")})
    bench.commit("g", {P0: 1, U0: 2}, member, 1)
    bench.clock.advance(90_000)
    assert bench.committed("g") == {P0: 1}


def test_offsets_of_a_group_with_unreadable_members_do_not_expire() -> None:
    bench = Bench(offsets_retention_minutes=1, offsets_retention_check_interval_ms=10_000)
    [member] = bench.stable("g", session_timeout_ms=1_800_000, protocol_type="connect", protocols={"x": b"?"})
    bench.commit("g", {P0: 1}, member, 1)
    bench.clock.advance(90_000)
    assert bench.committed("g") == {P0: 1}


def test_a_commit_with_an_expiry_time_expires_at_that_time() -> None:
    bench = Bench(offsets_retention_check_interval_ms=1_000)
    bench.commit("g", {P0: 1}, expire_ms=bench.clock.now_ms() + 5_000)
    bench.clock.advance(4_000)
    bench.restart()
    assert bench.committed("g") == {P0: 1}
    bench.clock.advance(2_000)
    assert bench.committed("g") == {}


@pytest.mark.parametrize(("passed_ms", "is_left"), [(59_999, True), (60_000, False)])
@pytest.mark.parametrize("expires", [False, True])
def test_offsets_expire_when_their_time_has_passed_not_later(passed_ms: int, is_left: bool, expires: bool) -> None:
    """As OffsetExpirationConditionImpl: also at the very millisecond."""
    bench = Bench(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000_000)
    bench.commit("g", {P0: 1}, **({"expire_ms": bench.clock.now_ms() + 60_000} if expires else {}))
    bench.clock.advance(passed_ms)
    bench.coordinator.offsets.expire()
    assert (P0 in bench.committed("g")) is is_left


def test_a_group_stays_while_a_transaction_commits_its_only_other_offset() -> None:
    bench = Bench(offsets_retention_minutes=1, offsets_retention_check_interval_ms=10_000)
    bench.commit("g", {P0: 1})
    bench.commit("g", {P1: 2}, producer=ProducerIdAndEpoch(7, 0))
    bench.clock.advance(90_000)
    assert (bench.committed("g"), bench.state("g")) == ({}, "Empty")
    bench.coordinator.complete_transaction(7, commit=True)
    assert bench.committed("g") == {P1: 2}
    bench.clock.advance(90_000)
    assert bench.state("g") == "Dead"


def test_offsets_in_an_open_transaction_do_not_expire() -> None:
    bench = Bench(offsets_retention_minutes=1, offsets_retention_check_interval_ms=10_000)
    bench.commit("g", {P0: 1})
    bench.commit("g", {P0: 2}, producer=ProducerIdAndEpoch(7, 0))
    bench.clock.advance(90_000)
    assert bench.committed("g") == {P0: 1}
    bench.coordinator.complete_transaction(7, commit=True)
    bench.clock.advance(20_000)
    assert bench.state("g") == "Dead"


def test_consumer_protocol_groups_expire() -> None:
    bench = Bench(offsets_retention_minutes=1, offsets_retention_check_interval_ms=10_000)
    bench.topic("t", 1)
    member = Member(bench)
    bench.commit("g", {P0: 1, U0: 1}, member.member_id, 1)
    for _ in range(4):
        bench.clock.advance(30_000)
        member.beat()
    assert bench.committed("g") == {P0: 1}
    bench.beat("g", member.member_id, -1)
    bench.clock.advance(90_000)
    assert bench.state("g") == "Dead"


def test_a_group_without_members_and_offsets_expires() -> None:
    bench = Bench(offsets_retention_check_interval_ms=10_000)
    bench.join("g")
    bench.clock.advance(20_000)
    assert bench.state("g") == "Dead"
