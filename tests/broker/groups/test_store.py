"""Groups are restored from their log after any sequence of events."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.broker.groups.classic_group import ClassicGroup
from kwire.broker.groups.consumer_group import ConsumerGroup, group_topics
from kwire.broker.transactions import NO_PRODUCER
from kwire.protocol.error_codes import ErrorCode
from tests.broker.groups.harness import Bench, logged
from tests.broker.groups.test_consumer_protocol import Member


def consumer_state(group: ConsumerGroup) -> dict[str, Any]:
    """Return the state of a consumer group that its records define."""
    names = ("epoch", "assignment_epoch", "members", "topics", "regexes")
    return {name: getattr(group, name) for name in names}


def classic_state(group: ClassicGroup) -> tuple[Any, ...]:
    """Return the state of a stable group that survives a restart."""
    members = [
        (m.member_id, m.instance_id, m.client_host, m.session_timeout_ms, m.rebalance_timeout_ms, m.assignment)
        for m in group.members.values()
    ]
    return (
        group.state,
        group.state_since_ms,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader,
        members,
        group.subscribed_topics,
    )


def test_a_stable_classic_group_is_restored() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=10)
    members = bench.stable("g", 3)
    before = classic_state(bench.group("g"))
    bench.clock.advance(5_000)
    bench.restart()
    after = classic_state(bench.group("g"))
    assert after[0:1] + after[2:] == before[0:1] + before[2:]
    assert [bench.heartbeat("g", member, 1) for member in members] == [0, 0, 0]
    bench.clock.advance(9_999)
    assert bench.state("g") == "Stable"
    bench.clock.advance(2)
    assert bench.state("g") == "Empty"  # nobody was heard of since


def test_a_group_in_a_rebalance_is_restored_empty() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=1_000)
    member, _ = bench.new_member("g")
    bench.restart()
    assert bench.state("g") == "Empty"
    assert bench.join("g", member).one.code == ErrorCode.UNKNOWN_MEMBER_ID


def test_unreadable_records_are_skipped() -> None:
    bench = Bench()
    bench.commit("g", {("t", 0): 1})
    log = bench.log.partitions[bench.coordinator.store.partition_of("g")]
    for key, value in ((b"", b""), (b"\x00\x01", b"\x00"), (b"\x00\x63", b"x"), (b"\x7f\xff\x00", None)):
        log.append(logged(0, len(log), key, value, NO_PRODUCER))
    bench.commit("g", {("t", 1): 2})
    bench.restart()
    assert bench.committed("g") == {("t", 0): 1, ("t", 1): 2}


class Script:
    """Members that join, leave, change and time out, as a list of numbers determines."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.members, self.count = bench, [], 0
        self.members: list[Member]

    def step(self, what: int, which: int) -> None:
        member = self.members[which % len(self.members)] if self.members else None
        match what:
            case 0:
                self.count += 1
                instance = {"instance_id": f"i{self.count}"} if which % 3 == 0 else {}
                assignor = {"server_assignor": "range"} if which % 5 == 0 else {}
                topics = [["t"], ["t", "u"], ["u"]][which % 3 if which % 2 else 0]
                self.members.append(Member(self.bench, subscribed_topic_names=topics, **instance, **assignor))
            case 1 if member is not None:
                epoch = -2 if "instance_id" in member.fields and which % 2 else -1
                self.bench.beat("g", member.member_id, epoch, instance_id=member.fields.get("instance_id"))
                self.members.remove(member)
            case 2 if member is not None:
                member.beat(subscribed_topic_names=[["t"], ["u"], ["t", "u"]][which % 3])
            case 3:
                self.bench.clock.advance(1_000 * (which % 40))
            case 4:
                self.bench.topic("u", 1 + which % 5)
            case 5:
                self.bench.restart()
            case _ if member is not None:
                if isinstance(member.beat(), ErrorCode):
                    self.members.remove(member)

    def check(self) -> None:
        """Check that no partition has two owners and that the log replays to the coordinator's state."""
        group = self.bench.group("g")
        if group is None:
            return
        held = [
            (each.topic_id, partition)
            for member in group.members.values()
            for each in (*member.assigned, *member.revoking)
            for partition in each.partitions
        ]
        assert len(held) == len(set(held))
        before = consumer_state(group)
        twin = self.bench.start()
        assert consumer_state(twin.store.find("g")) == before
        twin.store.timers.cancel_all()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 59)), max_size=40))
def test_random_events_never_give_a_partition_two_owners_and_replay_to_the_same_state(
    steps: list[tuple[int, int]],
) -> None:
    bench = Bench()
    bench.topic("t", 5)
    script = Script(bench)
    for what, which in steps:
        script.step(what, which)
    script.check()
    for _ in range(25):  # those that are left go on: the group settles, and everything is somebody's
        for member in list(script.members):
            if isinstance(member.beat(), ErrorCode):
                script.members.remove(member)
        bench.clock.advance(4_000)
    script.check()
    group = bench.group("g")
    if script.members:
        assert bench.state("g") == "Stable"
        subscribed = group_topics(group.members.values(), group.regexes)
        everything = {(t.topic_id, p) for name in subscribed if (t := bench.topics.get(name)) for p in t.partitions}
        assert {
            (t, p) for member in script.members for t, numbers in member.owned.items() for p in numbers
        } == everything
