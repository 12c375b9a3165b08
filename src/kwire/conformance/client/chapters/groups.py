"""Members of consumer groups: joining, heartbeats, commits, and what they do when they are no longer members."""

from __future__ import annotations

from typing import Any

from kwire.conformance.check import Verdict
from kwire.conformance.client.chapters.consumer import numbered, stored
from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.judging import consumed, obeyed_throttle, reported, retried
from kwire.conformance.client.scenario import Chapter, Steps, expect
from kwire.conformance.client.stage import Stage
from kwire.conformance.client.task import consume

__all__ = ["chapter"]

chapter = Chapter("Groups")


def committed_offset(s: Stage, group: str, topic: str, partition: int = 0) -> int:
    """Return the offset that the broker has for a group."""
    return s.committed(group).get((topic, partition), -1)


def later_records(s: Stage, empty: int = 6) -> None:
    """Return no records for a while, in which heartbeats are sent."""
    s.script.add("Fetch", times=empty, change=lambda exchange, body: setattr(body, "responses", []))
    s.script.delay("Fetch", 0.2, times=empty)


@chapter.scenario("MEMBER-001", "KIP-62; ConsumerCoordinator")
def plain(s: Stage) -> Steps:
    """A member reads its partitions and commits.

    The client joins alone, reads three records and commits.
    The broker has offset 3 for the group: that of the next record.
    """
    topic, group = stored(s, 3), s.name("group")
    out = yield consume(topic, 3, group=group, commit=True)
    consumed(out, numbered(3))
    expect(out.committed, f"the offset was not committed: {out.complaints[:1]}")
    found = committed_offset(s, group, topic)
    expect(found == 3, f"the committed offset is {found} instead of 3")


@chapter.scenario("MEMBER-002", "ConsumerCoordinator")
def resumes(s: Stage) -> Steps:
    """A member resumes at the committed offset.

    The group has committed offset 5 of 8 records.
    """
    topic, group = stored(s, 8), s.name("group")
    s.commit(group, topic, 5)
    out = yield consume(topic, 3, group=group, commit=True)
    consumed(out, numbered(3, 5))
    found = committed_offset(s, group, topic)
    expect(found == 8, f"the committed offset is {found} instead of 8")


@chapter.scenario("MEMBER-003", "ConsumerCoordinator")
def commits_what_was_read(s: Stage) -> Steps:
    """What was fetched and not delivered is not committed.

    The client reads records of one partition of three; it commits one more than the last offset of each.
    """
    group = s.name("group")
    topic = s.topic(partitions=3)
    for partition, count in enumerate((2, 3, 0)):
        for number in range(count):
            s.write(topic, f"v{number}".encode(), partition=partition)
    out = yield consume(topic, 5, group=group, commit=True)
    consumed(out, numbered(2), 0)
    consumed(out, numbered(3), 1)
    found = [committed_offset(s, group, topic, each) for each in range(3)]
    expect(found[:2] == [2, 3] and found[2] in (-1, 0), f"committed offsets {found} instead of [2, 3, 0 or none]")


@chapter.scenario("MEMBER-004", "KIP-394")
def member_id_required(s: Stage) -> Steps:
    """A member joins again with the id that the coordinator has given it.

    JoinGroup 4 and later get MEMBER_ID_REQUIRED with an id, as kwire's broker and Kafka respond.
    """
    topic, group = stored(s, 3), s.name("group")
    out = yield consume(topic, 3, group=group)
    consumed(out, numbered(3))
    joins = s.exchanges("JoinGroup", lambda each: each.version >= 4)
    expect(joins, "the client uses JoinGroup 3 or older", Verdict.UNSUPPORTED)
    expect(len(joins) >= 2, "the client sent one JoinGroup request, though it got MEMBER_ID_REQUIRED")
    given = joins[0].response.member_id
    expect(joins[1].body.member_id == given, "the second JoinGroup does not have the member id of the first")


@chapter.scenario("MEMBER-005", "ConsumerCoordinator")
def no_offset(s: Stage) -> Steps:
    """A missing offset is reported without a reset policy.

    The group has no offset, and auto.offset.reset is none.
    """
    topic, group = stored(s, 3), s.name("group")
    out = yield consume(topic, 3, group=group, auto_offset_reset="none")
    expect(not out.received, "records are delivered from an offset that nobody has chosen")
    reported(out, "the missing offset")


@chapter.scenario("MEMBER-006", "KIP-62")
def heartbeats(s: Stage) -> Steps:
    """Heartbeats go on while there is nothing to read.

    For more than a second, Fetch responses are empty; heartbeat.interval.ms is 200.
    """
    topic = stored(s, 3)
    later_records(s)
    out = yield consume(topic, 3, group=s.name("group"))
    consumed(out, numbered(3))
    count = len(s.exchanges("Heartbeat")) + len(s.exchanges("ConsumerGroupHeartbeat"))
    expect(count >= 2, f"{count} heartbeats in more than a second")


@chapter.scenario("MEMBER-007", "ConsumerCoordinator")
def rebalance(s: Stage) -> Steps:
    """A rebalance loses and doubles nothing.

    After the first two records, heartbeats get REBALANCE_IN_PROGRESS once; then the other records follow.
    """
    topic, group = stored(s, 2, 2), s.name("group")

    def first_batch(exchange: Exchange, body: Any) -> None:
        for part in (part for topic in body.responses for part in topic.partitions):
            joined = s.exchanges("JoinGroup", lambda each: each.response is not None and not each.response.error_code)
            if part.records and len(joined) < 2:
                data = bytes(part.records)
                whole = data[: int.from_bytes(data[8:12], "big") + 12]
                at = exchange.body.topics[0].partitions[0].fetch_offset
                part.records = whole if at == 0 else b""

    s.script.change("Fetch", first_batch)
    s.script.fail("Heartbeat", "REBALANCE_IN_PROGRESS", times=1)
    out = yield consume(topic, 4, group=group, commit=True)
    doubled = {line["offset"] for line in out.received}
    expect(doubled == {0, 1, 2, 3}, f"offsets {sorted(doubled)} instead of 0 to 3{out.complaints[:1]}")
    found = committed_offset(s, group, topic)
    expect(found == 4, f"the committed offset is {found} instead of 4")


@chapter.scenario("MEMBER-008", "KIP-345")
def static_member(s: Stage) -> Steps:
    """A static member names its instance, and does not leave.

    group.instance.id is set; JoinGroup has it, and no LeaveGroup is sent at the end.
    """
    topic, group = stored(s, 3), s.name("group")
    out = yield consume(topic, 3, group=group, group_instance_id="instance-1")
    consumed(out, numbered(3))
    joins = s.exchanges("JoinGroup", lambda each: each.version >= 5)
    named = [each for each in joins if each.body.group_instance_id == "instance-1"]
    expect(named, "JoinGroup does not have group.instance.id", Verdict.UNSUPPORTED)
    expect(not s.exchanges("LeaveGroup"), "a static member has left the group when it was closed")


@chapter.scenario("MEMBER-009", "ConsumerCoordinator")
def leaves(s: Stage) -> Steps:
    """A member leaves when it is closed.

    LeaveGroup is sent, so that others do not wait for the session timeout.
    """
    topic, group = stored(s, 3), s.name("group")
    out = yield consume(topic, 3, group=group)
    consumed(out, numbered(3))
    expect(s.exchanges("LeaveGroup"), "no LeaveGroup: others wait for the session timeout", Verdict.DEVIATION)


@chapter.scenario("MEMBER-010", "NetworkClient")
def silent_coordinator(s: Stage) -> Steps:
    """A coordinator that is silent is given up after the request timeout.

    The broker does not respond to the first OffsetFetch.
    """
    topic = stored(s, 3)
    s.script.silence("OffsetFetch")
    out = yield consume(topic, 3, group=s.name("group"), commit=True)
    consumed(out, numbered(3))
    retried(s, "OffsetFetch")


@chapter.scenario("MEMBER-011", "NetworkClient")
def closing_coordinator(s: Stage) -> Steps:
    """A coordinator that closes connections is asked again.

    The connection is closed at the first JoinGroup, SyncGroup and OffsetCommit.
    """
    topic = stored(s, 3)
    for api in ("JoinGroup", "SyncGroup", "OffsetCommit"):
        s.script.close(api)
    out = yield consume(topic, 3, group=s.name("group"), commit=True)
    consumed(out, numbered(3))
    expect(out.committed, f"the offset was not committed: {out.complaints[:1]}")


@chapter.scenario("MEMBER-012", "KIP-219")
def throttled(s: Stage) -> Steps:
    """A throttle time of a coordinator is obeyed.

    The response to OffsetFetch has a throttle time of 300 ms.
    """
    topic = stored(s, 3)
    s.script.throttle("OffsetFetch", 300, when=lambda each: each.version >= 4)
    out = yield consume(topic, 3, group=s.name("group"), commit=True)
    consumed(out, numbered(3))
    obeyed_throttle(s, "OffsetFetch", 300)


@chapter.scenario("MEMBER-013", "KIP-62")
def lost_membership(s: Stage) -> Steps:
    """A member that the coordinator has forgotten joins as a new one.

    The coordinator forgets the member before its next heartbeat, which gets UNKNOWN_MEMBER_ID, as does JoinGroup with
    the id.
    The member joins with no member id, or with the one that it is given then.
    """
    topic, group = stored(s, 3), s.name("group")
    later_records(s)
    forgotten: list[str] = []

    def forget(heartbeat: Exchange) -> None:
        forgotten.append(heartbeat.body.member_id)
        s.forget(group, heartbeat.body.member_id)

    s.script.add("Heartbeat", times=1, then=forget)
    out = yield consume(topic, 3, group=group, commit=True)
    consumed(out, numbered(3))
    expect(out.committed, f"the offset was not committed: {out.complaints[:1]}")
    failed = [each for each in s.exchanges("Heartbeat") if getattr(each.response, "error_code", 0) == 25]
    expect(failed, "the client sent no heartbeat while it waited for records")
    joined = [each.body.member_id for each in s.exchanges("JoinGroup") if each.at > failed[0].at]
    expect(set(joined) - set(forgotten), "the member did not join again as a new one")
    first = "the first JoinGroup has the id that the coordinator has forgotten: one request more"
    expect(joined[0] not in forgotten, first, Verdict.DEVIATION)


@chapter.scenario("MEMBER-014", "KIP-848", since="4.0")
def new_protocol(s: Stage) -> Steps:
    """A member of the consumer protocol reads its partitions and commits.

    group.protocol is consumer, and the assignment comes from the coordinator.
    """
    topic, group = stored(s, 3), s.name("group")
    out = yield consume(topic, 3, group=group, commit=True, group_protocol="consumer")
    used = s.exchanges("ConsumerGroupHeartbeat")
    expect(used, "the client does not have the consumer protocol", Verdict.UNSUPPORTED)
    consumed(out, numbered(3))
    found = committed_offset(s, group, topic)
    expect(found == 3, f"the committed offset is {found} instead of 3")
