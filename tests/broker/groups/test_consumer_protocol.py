"""Heartbeats of consumer groups follow KIP-848: joining, epochs, revoking and assigning partitions, leaving."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.internal_topics.metadata_records import metadata_record
from kwire.messages import ConsumerGroupHeartbeatRequest, RemoveTopicRecord
from kwire.protocol.error_codes import ErrorCode
from tests.broker.groups.harness import Bench, assignment


def owned(response: Any) -> dict[Any, set[int]]:
    """Return the assigned partitions of a response, by topic id."""
    return {topic.topic_id: set(topic.partitions) for topic in response.assignment.topic_partitions}


class Member:
    """A client of KIP-848 that applies its assignment with the next heartbeat."""

    def __init__(self, bench: Bench, group_id: str = "g", **fields: Any) -> None:
        self.bench, self.group_id, self.fields = bench, group_id, fields
        self.epoch, self.member_id = 0, ""
        self.owned: dict[Any, set[int]] = {}
        self.beat(**fields)

    def beat(self, **fields: Any) -> Any:
        """Send one heartbeat and apply the response."""
        topics = {t: p for t, p in self.owned.items() if p} if self.epoch else []
        fields.setdefault("topic_partitions", topics)
        if "instance_id" in self.fields:
            fields.setdefault("instance_id", self.fields["instance_id"])
        response = self.bench.beat(self.group_id, self.member_id, self.epoch, **fields)
        if isinstance(response, ErrorCode):
            return response
        self.member_id, self.epoch = response.member_id, response.member_epoch
        if response.assignment is not None:
            self.owned = owned(response)
        return response

    @property
    def partitions(self) -> set[int]:
        """Return the owned partitions."""
        return {number for numbers in self.owned.values() for number in numbers}


def settle(*members: Member, rounds: int = 6) -> None:
    """Send heartbeats of all members until the group is stable."""
    for _ in range(rounds):
        for member in members:
            member.beat()


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.topic("t", 4)
    return bench


def test_the_first_member_gets_every_partition_immediately(bench: Bench) -> None:
    response = bench.beat("g")
    assert (response.member_epoch, response.heartbeat_interval_ms) == (1, 5_000)
    assert owned(response) == {bench.topics.get("t").topic_id: {0, 1, 2, 3}}
    assert len(response.member_id) == 22
    assert bench.state("g") == "Stable"


def test_a_response_has_the_assignment_only_if_it_changed(bench: Bench) -> None:
    member = Member(bench)
    assert member.beat().assignment is None
    full = member.beat(rebalance_timeout_ms=1_000, subscribed_topic_names=["t"])
    assert owned(full) == member.owned


def test_a_second_member_gets_partitions_once_the_first_revoked_them(bench: Bench) -> None:
    first = Member(bench)
    second = Member(bench)
    assert (second.partitions, second.epoch) == (set(), 2)
    assert bench.state("g") == "Reconciling"
    reported = first.beat()
    assert (first.epoch, len(first.partitions)) == (1, 2)  # it is still at its epoch: it has to say that it gave up
    assert reported.assignment is not None
    second.beat()
    assert second.partitions == set()
    first.beat()
    assert first.epoch == 2
    second.beat()
    assert first.partitions | second.partitions == {0, 1, 2, 3}
    assert first.partitions & second.partitions == set()
    assert bench.state("g") == "Stable"


def test_a_member_that_does_not_revoke_in_time_is_fenced(bench: Bench) -> None:
    first = Member(bench, rebalance_timeout_ms=20_000)
    second = Member(bench)
    first.beat()
    for _ in range(4):
        bench.clock.advance(5_001)
        first.beat(topic_partitions=None)
        second.beat()
    assert first.beat() == ErrorCode.UNKNOWN_MEMBER_ID
    settle(second)
    assert second.partitions == {0, 1, 2, 3}


def test_a_session_timeout_removes_the_member(bench: Bench) -> None:
    first, second = Member(bench), Member(bench)
    settle(first, second)
    for _ in range(10):
        bench.clock.advance(5_000)
        second.beat()
    assert first.beat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert second.partitions == {0, 1, 2, 3}


def test_a_leaving_member_is_removed_immediately(bench: Bench) -> None:
    first, second = Member(bench), Member(bench)
    settle(first, second)
    left = bench.beat("g", first.member_id, -1)
    assert (left.member_epoch, left.heartbeat_interval_ms, left.assignment) == (-1, 0, None)
    settle(second)
    assert second.partitions == {0, 1, 2, 3}
    bench.beat("g", second.member_id, -1)
    assert bench.state("g") == "Empty"


def test_member_epochs_are_checked(bench: Bench) -> None:
    first = Member(bench)
    assert bench.beat("g", first.member_id, 2) == ErrorCode.FENCED_MEMBER_EPOCH
    second = Member(bench)
    settle(first, second)
    assert first.epoch == 2
    # the previous epoch is accepted, since a response may be lost, if the member owns nothing it must revoke
    assert bench.beat("g", first.member_id, 1, topic_partitions=first.owned).member_epoch == 2
    everything = {bench.topics.get("t").topic_id: {0, 1, 2, 3}}
    assert bench.beat("g", first.member_id, 1, topic_partitions=everything) == ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.beat("g", first.member_id, 1) == ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.beat("g", "nobody", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.beat("nothing", "nobody", 1) == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": []}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 1, "member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -2, "member_id": "m"}, ErrorCode.INVALID_REQUEST),
        ({"version": 1}, ErrorCode.INVALID_REQUEST),  # where clients make the member id
        ({"server_assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"version": 1, "member_id": "m", "subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_invalid_requests_are_rejected(bench: Bench, fields: dict[str, Any], code: ErrorCode) -> None:
    assert bench.beat("g", **fields) == code
    assert bench.state("g") == "Dead"


def test_group_consumer_max_size_limits_the_members_of_a_group() -> None:
    bench = Bench(group_consumer_max_size=1)
    member = Member(bench)
    assert bench.beat("g") == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert member.beat().member_epoch == 1


def test_a_changed_subscription_bumps_the_group_epoch(bench: Bench) -> None:
    bench.topic("u", 2)
    member = Member(bench)
    response = member.beat(subscribed_topic_names=["t", "u"])
    assert response.member_epoch == 2
    assert {len(partitions) for partitions in member.owned.values()} == {4, 2}
    response = member.beat(subscribed_topic_names=["u"])
    assert set(owned(response)) == {bench.topics.get("u").topic_id}


def test_new_partitions_and_new_topics_are_assigned_with_the_next_heartbeat(bench: Bench) -> None:
    member = Member(bench, subscribed_topic_names=["t", "later"])
    bench.topic("t", 6)
    assert member.beat().member_epoch == 2
    assert member.partitions == set(range(6))
    bench.topic("later", 1)
    assert member.beat().member_epoch == 3
    assert len(member.owned) == 2


def test_a_deleted_topic_is_removed_from_the_assignment(bench: Bench) -> None:
    bench.topic("u", 2)
    member = Member(bench, subscribed_topic_names=["t", "u"])
    removed = RemoveTopicRecord(topic_id=bench.topics.get("t").topic_id)
    bench.cluster.apply(metadata_record(removed, 0))
    bench.coordinator.topics_deleted(["t"])
    member.beat()
    assert set(member.owned) == {bench.topics.get("u").topic_id}


def test_the_assignor_is_the_one_with_most_votes(bench: Bench) -> None:
    bench.topic("u", 4)
    topics = {"subscribed_topic_names": ["t", "u"]}
    members = [Member(bench, server_assignor="range", **topics) for _ in range(2)]
    settle(*members)
    assert {frozenset(map(frozenset, member.owned.values())) for member in members} == {
        frozenset({frozenset({0, 1})}),
        frozenset({frozenset({2, 3})}),
    }


# --- static members ---


def test_a_static_member_that_leaves_temporarily_keeps_its_partitions(bench: Bench) -> None:
    first, other = Member(bench, instance_id="i"), Member(bench)
    settle(first, other)
    had, epoch = first.owned, first.epoch
    assert bench.beat("g", first.member_id, -2, instance_id="i").member_epoch == -2
    settle(other)
    assert other.partitions.isdisjoint({p for numbers in had.values() for p in numbers})
    back = Member(bench, instance_id="i")
    assert back.member_id != first.member_id
    assert (back.owned, back.epoch) == (had, epoch)
    assert bench.beat("g", first.member_id, epoch, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID


def test_an_active_instance_id_cannot_be_reused(bench: Bench) -> None:
    Member(bench, instance_id="i")
    assert bench.beat("g", instance_id="i") == ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_static_member_that_stays_away_too_long_loses_its_partitions(bench: Bench) -> None:
    first, other = Member(bench, instance_id="i"), Member(bench)
    settle(first, other)
    bench.beat("g", first.member_id, -2, instance_id="i")
    for _ in range(10):
        bench.clock.advance(5_000)
        other.beat()
    assert other.partitions == {0, 1, 2, 3}


def test_a_static_member_leaves_permanently(bench: Bench) -> None:
    member = Member(bench, instance_id="i")
    assert bench.beat("g", "other", -1, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID
    assert bench.beat("g", member.member_id, -1, instance_id="j") == ErrorCode.UNKNOWN_MEMBER_ID
    bench.beat("g", member.member_id, -1, instance_id="i")
    assert bench.state("g") == "Empty"


# --- regular expressions ---


def test_a_regex_subscription_follows_created_and_deleted_topics(bench: Bench) -> None:
    bench.topic("orders-1", 2)
    first = bench.beat("g", "m", 0, version=1, subscribed_topic_regex="orders-.*")
    assert [set(topic.partitions) for topic in first.assignment.topic_partitions] == [{0, 1}]
    bench.topic("orders-2", 1)
    held = {topic.topic_id: topic.partitions for topic in first.assignment.topic_partitions}
    second = bench.beat("g", "m", 1, version=1, topic_partitions=held)
    assert (second.member_epoch, len(second.assignment.topic_partitions)) == (2, 2)


def test_names_and_a_regex_combine_and_an_empty_regex_removes_it(bench: Bench) -> None:
    bench.topic("u", 1)
    fields = {"subscribed_topic_names": ["t"], "subscribed_topic_regex": "u|v"}
    first = bench.beat("g", "m", 0, version=1, **fields)
    assert len(first.assignment.topic_partitions) == 2
    second = bench.beat("g", "m", 1, version=1, subscribed_topic_regex="")
    assert [topic.topic_id for topic in second.assignment.topic_partitions] == [bench.topics.get("t").topic_id]
    assert bench.group("g").regexes == {}


def test_a_regex_matches_only_authorized_topics(bench: Bench) -> None:
    bench.topic("secret", 1)
    response = bench.coordinator.consumer_heartbeat(
        bench.context(1),
        ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            rebalance_timeout_ms=1_000,
            topic_partitions=[],
            subscribed_topic_regex=".*",
        ),
        lambda topic: topic != "secret",
    )
    assert [topic.topic_id for topic in response.assignment.topic_partitions] == [bench.topics.get("t").topic_id]


# --- across protocols, and failures ---


def test_an_empty_classic_group_converts_to_a_consumer_group_and_back_with_its_offsets(bench: Bench) -> None:
    [old] = bench.stable("g")
    bench.commit("g", {("t", 0): 7}, old, 1)
    bench.leave("g", old)
    member = Member(bench)
    assert bench.committed("g") == {("t", 0): 7}
    bench.restart()
    assert member.beat().member_epoch == 1
    bench.beat("g", member.member_id, -1)
    bench.stable("g")
    bench.restart()
    assert bench.state("g") == "Stable"
    assert bench.committed("g") == {("t", 0): 7}


def test_a_classic_group_with_members_is_rejected_unless_upgrades_are_enabled(bench: Bench) -> None:
    bench.stable("g")
    assert bench.beat("g") == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_failed_write_changes_nothing(bench: Bench) -> None:
    member = Member(bench)
    bench.topic("t", 6)
    bench.break_log()
    assert bench.beat("g") == ErrorCode.NOT_COORDINATOR
    assert member.beat() == ErrorCode.NOT_COORDINATOR
    assert bench.beat("h") == ErrorCode.NOT_COORDINATOR
    assert bench.state("h") == "Dead"
    bench.log.broken = None
    assert member.beat().member_epoch == 2
    assert member.partitions == set(range(6))


def test_a_member_is_fenced_later_if_its_fencing_cannot_be_written(bench: Bench) -> None:
    member = Member(bench)
    bench.break_log()
    bench.clock.advance(45_001)
    assert set(bench.group("g").members) == {member.member_id}
    bench.log.broken = None
    bench.clock.advance(45_001)
    assert bench.state("g") == "Empty"


def test_the_assignment_of_an_unknown_leader_is_ignored(bench: Bench) -> None:
    member = Member(bench)
    assert bench.sync("g", member.member_id, 1, {member.member_id: assignment(t=[0])}).one.code == (
        ErrorCode.UNKNOWN_MEMBER_ID
    )
    assert bench.heartbeat("g", member.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID
