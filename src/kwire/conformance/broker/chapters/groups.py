"""Consumer groups: the classic protocol, static members, fencing, the consumer protocol, committed offsets."""

from __future__ import annotations

import time
import uuid
from typing import Any, NamedTuple

from kwire.conformance.broker.bench import Address, Bench
from kwire.conformance.broker.checks import Chapter
from kwire.conformance.broker.requests import error_name, request

__all__ = ["chapter"]

chapter = Chapter("Groups and committed offsets")
SOURCE = "GroupMetadataManager"
CLASSIC = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "LeaveGroup": 3, "FindCoordinator": -1}
COMMITS = {"OffsetCommit": 2, "OffsetFetch": 1, "FindCoordinator": -1, "Topics": -1}
CONSUMER = {"ConsumerGroupHeartbeat": 0, "ConsumerGroupDescribe": 0, "Topics": -1}
SESSION_MS, REBALANCE_MS = 10_000, 10_000


class Member(NamedTuple):
    """A member of a classic group."""

    group: str
    at: Address
    member_id: str
    generation: int
    body: Any


def _join(
    bench: Bench, group: str, *, member_id: str = "", instance: str | None = None, version: int = 5, **fields: Any
) -> Any:
    options: dict[str, Any] = {
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"m"}],
        **fields,
    }
    at = bench.coordinator(group)
    names = {"group_id": group, "member_id": member_id, "group_instance_id": instance}
    return bench.until(lambda: bench.ask("JoinGroup", version, at=at, **names, **options), 14, 15, 16)


def _member(bench: Bench, group: str, *, instance: str | None = None, **fields: Any) -> Member:
    """Join a group as its only member, twice if the broker asks for the member id it has given."""
    body = _join(bench, group, instance=instance, **fields)
    if error_name(body.error_code) == "MEMBER_ID_REQUIRED":
        body = _join(bench, group, member_id=body.member_id, instance=instance, **fields)
    at = bench.coordinator(group)
    who = {"member_id": "" if instance else body.member_id, "group_instance_id": instance}
    bench.at_end(lambda: bench.ask("LeaveGroup", 3, at=at, group_id=group, members=[who]))
    return Member(group, at, body.member_id, body.generation_id, body)


def _sync(bench: Bench, member: Member, **fields: Any) -> Any:
    assignments = [{"member_id": member.member_id, "assignment": b"plan"}]
    options = {"generation_id": member.generation, "member_id": member.member_id, "assignments": assignments, **fields}
    return bench.ask("SyncGroup", 3, at=member.at, group_id=member.group, **options)


def _heartbeat(bench: Bench, member: Member, **fields: Any) -> str:
    options = {"generation_id": member.generation, "member_id": member.member_id, **fields}
    return error_name(bench.ask("Heartbeat", 3, at=member.at, group_id=member.group, **options).error_code)


@chapter.check("GROUP-001", "KIP-394", uses=CLASSIC)
def member_id_required(bench: Bench) -> Any:
    """A new member joins with the member id that the broker gives it.

    Send JoinGroup 5 without a member id, then with the one of the response.
    The first has MEMBER_ID_REQUIRED; the second is generation 1, and the member is its leader.
    """
    group = bench.group()
    first = _join(bench, group)
    member = _member(bench, group)
    body = member.body
    return {
        "first": error_name(first.error_code),
        "second": error_name(body.error_code),
        "generation": body.generation_id,
        "leads": body.leader == body.member_id,
        "protocol": body.protocol_name,
        "members": len(body.members),
    }


@chapter.check("GROUP-002", SOURCE, uses=CLASSIC)
def synced(bench: Bench) -> Any:
    """The leader's assignment comes back to the member.

    Join, send SyncGroup with an assignment, then a heartbeat.
    The response has the assignment; the heartbeat has no error.
    """
    member = _member(bench, bench.group())
    body = _sync(bench, member)
    assignment = bytes(body.assignment).decode(errors="replace")
    return {"error": error_name(body.error_code), "assignment": assignment, "heartbeat": _heartbeat(bench, member)}


@chapter.check("GROUP-003", SOURCE, uses=CLASSIC)
def wrong_generation(bench: Bench) -> Any:
    """Another generation than the current one is refused.

    Join and sync; send a heartbeat and SyncGroup with the generation after it.
    Both have ILLEGAL_GENERATION.
    """
    member = _member(bench, bench.group())
    _sync(bench, member)
    beat = _heartbeat(bench, member, generation_id=member.generation + 1)
    return {"heartbeat": beat, "sync": error_name(_sync(bench, member, generation_id=99).error_code)}


@chapter.check("GROUP-004", SOURCE, uses=CLASSIC)
def unknown_member(bench: Bench) -> Any:
    """A member that the group does not have is refused.

    Join and sync; send a heartbeat, SyncGroup and JoinGroup with another member id.
    All have UNKNOWN_MEMBER_ID.
    """
    member = _member(bench, bench.group())
    _sync(bench, member)
    return {
        "heartbeat": _heartbeat(bench, member, member_id="stranger"),
        "sync": error_name(_sync(bench, member, member_id="stranger").error_code),
        "join": error_name(_join(bench, member.group, member_id="stranger").error_code),
    }


@chapter.check("GROUP-005", SOURCE, uses=CLASSIC)
def other_protocol(bench: Bench) -> Any:
    """A member without a protocol of the group is refused.

    Join with the protocol range; join with a protocol that the first member does not have, and with another type.
    Both have INCONSISTENT_GROUP_PROTOCOL.
    """
    member = _member(bench, bench.group())
    _sync(bench, member)
    other = _join(bench, member.group, protocols=[{"name": "other", "metadata": b""}])
    kind = _join(bench, member.group, protocol_type="connect")
    return {"protocol": error_name(other.error_code), "type": error_name(kind.error_code)}


@chapter.check("GROUP-006", SOURCE, uses=CLASSIC)
def session_timeouts(bench: Bench) -> Any:
    """Session timeouts outside of the broker's limits are refused.

    Join with a session timeout of 1 ms, and with the largest int32.
    Both have INVALID_SESSION_TIMEOUT.
    """
    found = [_join(bench, bench.group(), session_timeout_ms=each) for each in (1, 2**31 - 1)]
    return {"errors": [error_name(each.error_code) for each in found]}


@chapter.check("GROUP-007", SOURCE, uses=CLASSIC)
def empty_group_id(bench: Bench) -> Any:
    """An empty group id is refused.

    Send JoinGroup, Heartbeat and SyncGroup with an empty group id.
    All have INVALID_GROUP_ID.
    """
    member = Member("", bench.session.address, "m", 1, None)
    fields: dict[str, Any] = {"session_timeout_ms": SESSION_MS, "protocol_type": "consumer"}
    joined = bench.ask("JoinGroup", 5, group_id="", protocols=[{"name": "range", "metadata": b""}], **fields)
    beat, body = _heartbeat(bench, member), _sync(bench, member)
    return {"join": error_name(joined.error_code), "heartbeat": beat, "sync": error_name(body.error_code)}


@chapter.check("GROUP-008", SOURCE, uses=CLASSIC)
def rebalance(bench: Bench) -> Any:
    """A second member makes the first one join again.

    One member joins and syncs; a second one joins on another connection.
    The first gets REBALANCE_IN_PROGRESS from its heartbeat, joins again, and both are in generation 2.
    """
    first = _member(bench, bench.group())
    _sync(bench, first)
    wanted = _join(bench, first.group)
    protocols = [{"name": "range", "metadata": b"m"}]
    times: dict[str, Any] = {"session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": REBALANCE_MS}
    names: dict[str, Any] = {"group_id": first.group, "member_id": wanted.member_id, "protocol_type": "consumer"}
    second = bench.connect(first.at)
    second.send(request("JoinGroup", 5, **names, **times, protocols=protocols), 5)
    beat = ""
    for _ in range(200):
        beat = _heartbeat(bench, first)
        if beat != "NONE":
            break
        time.sleep(0.02)
    again = _join(bench, first.group, member_id=first.member_id)
    joined = second.receive()
    leave = [{"member_id": wanted.member_id}]
    bench.at_end(lambda: bench.ask("LeaveGroup", 3, at=first.at, group_id=first.group, members=leave))
    return {
        "heartbeat": beat,
        "generations": [again.generation_id, joined.generation_id],
        "members that the leader sees": sorted([len(again.members), len(joined.members)]),
    }


@chapter.check("GROUP-009", SOURCE, uses=CLASSIC)
def leaves(bench: Bench) -> Any:
    """A member that left is unknown.

    Join and sync, send LeaveGroup, then a heartbeat.
    The heartbeat has UNKNOWN_MEMBER_ID.
    """
    member = _member(bench, bench.group())
    _sync(bench, member)
    body = bench.ask("LeaveGroup", 3, at=member.at, group_id=member.group, members=[{"member_id": member.member_id}])
    errors = [error_name(body.error_code), *(error_name(each.error_code) for each in body.members)]
    return {"leave": errors, "heartbeat": _heartbeat(bench, member)}


@chapter.check("GROUP-010", "KIP-345", uses=CLASSIC)
def static_member(bench: Bench) -> Any:
    """A static member that comes back replaces itself, without a rebalance.

    Join with a group instance id and sync; join again with the instance id and no member id.
    The generation stays, and the member id is a new one.
    """
    member = _member(bench, bench.group(), instance="one")
    _sync(bench, member)
    again = _join(bench, member.group, instance="one")
    return {
        "errors": [error_name(member.body.error_code), error_name(again.error_code)],
        "generation": again.generation_id - member.generation,
        "new id": again.member_id != member.member_id,
    }


@chapter.check("GROUP-011", "KIP-345", uses=CLASSIC)
def static_member_fenced(bench: Bench) -> Any:
    """The former member of a group instance id is fenced.

    Join with an instance id and sync, join again with it, then send a heartbeat and SyncGroup with the old member id.
    Both have FENCED_INSTANCE_ID.
    """
    member = _member(bench, bench.group(), instance="one")
    _sync(bench, member)
    _join(bench, member.group, instance="one")
    beat = _heartbeat(bench, member, group_instance_id="one")
    return {"heartbeat": beat, "sync": error_name(_sync(bench, member, group_instance_id="one").error_code)}


@chapter.check("GROUP-012", "KIP-345", uses=CLASSIC)
def leave_by_instance(bench: Bench) -> Any:
    """A static member can be removed by its group instance id.

    Join with an instance id, then send LeaveGroup with it and an unknown one.
    The first has no error, the second UNKNOWN_MEMBER_ID.
    """
    member = _member(bench, bench.group(), instance="one")
    _sync(bench, member)
    members = [{"member_id": "", "group_instance_id": name} for name in ("one", "two")]
    body = bench.ask("LeaveGroup", 3, at=member.at, group_id=member.group, members=members)
    return {"errors": [error_name(each.error_code) for each in body.members]}


@chapter.check("GROUP-013", SOURCE, uses={**CLASSIC, "DescribeGroups": 0, "ListGroups": 0})
def described(bench: Bench) -> Any:
    """A group is described with its state, protocol and members.

    Join and sync, then send DescribeGroups and ListGroups.
    The group is Stable, with one member and its assignment, and it is listed.
    """
    member = _member(bench, bench.group())
    _sync(bench, member)
    found = bench.ask("DescribeGroups", at=member.at, groups=[member.group]).groups[0]
    listed = {each.group_id: each.protocol_type for each in bench.ask("ListGroups", at=member.at).groups}
    return {
        "state": found.group_state,
        "protocol": [found.protocol_type, found.protocol_data],
        "assignments": [bytes(each.member_assignment).decode(errors="replace") for each in found.members],
        "listed": listed.get(member.group),
    }


@chapter.check("GROUP-014", SOURCE, uses={**CLASSIC, "DeleteGroups": 0})
def not_empty(bench: Bench) -> Any:
    """A group with members cannot be deleted; an empty one can, once.

    Join and sync, and delete the group; leave, and delete it twice.
    The errors are NON_EMPTY_GROUP, none, and GROUP_ID_NOT_FOUND.
    """
    member = _member(bench, bench.group())
    _sync(bench, member)
    errors = []
    for attempt in range(3):
        if attempt == 1:
            who = [{"member_id": member.member_id}]
            bench.ask("LeaveGroup", 3, at=member.at, group_id=member.group, members=who)
        body = bench.ask("DeleteGroups", at=member.at, groups_names=[member.group])
        errors.append(error_name(body.results[0].error_code))
    return {"errors": errors}


@chapter.check("GROUP-015", SOURCE, uses={"FindCoordinator": 4})
def coordinators(bench: Bench) -> Any:
    """FindCoordinator takes several keys, and an empty key is refused.

    Send FindCoordinator 4 for two groups, and for an empty one.
    The groups have the same errors as alone; the empty key has the error of the release.
    """
    bench.coordinator(bench.name("a"))
    body = bench.ask("FindCoordinator", 4, key_type=0, coordinator_keys=[bench.name("a"), bench.name("b"), ""])
    return {"errors": [error_name(each.error_code) for each in body.coordinators]}


# Committed offsets


def _commit(bench: Bench, group: str, topic: str, offset: int, *, version: int = 7, **fields: Any) -> str:
    part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": fields.pop("metadata", "note")}
    topics = [{"name": topic, "partitions": [part]}]
    options: dict[str, Any] = {"generation_id_or_member_epoch": -1, "member_id": "", **fields}
    at = bench.coordinator(group)
    body = bench.ask(
        "OffsetCommit", min(version, bench.best("OffsetCommit", 9)), at=at, group_id=group, topics=topics, **options
    )
    return error_name(body.topics[0].partitions[0].error_code)


def _committed(bench: Bench, group: str, topic: str) -> dict[str, Any]:
    topics = [{"name": topic, "partition_indexes": [0]}]
    version = bench.best("OffsetFetch", 5)
    body = bench.ask("OffsetFetch", version, at=bench.coordinator(group), group_id=group, topics=topics)
    part = body.topics[0].partitions[0]
    return {"error": error_name(part.error_code), "offset": part.committed_offset, "metadata": part.metadata}


@chapter.check("COMMIT-001", SOURCE, uses=COMMITS)
def simple_commit(bench: Bench) -> Any:
    """A consumer without a group protocol commits offsets.

    Commit offset 5 with generation -1 and no member id, and fetch it.
    It is 5, with its metadata.
    """
    group, topic = bench.group(), bench.topic().name
    return {"commit": _commit(bench, group, topic, 5), **_committed(bench, group, topic)}


@chapter.check("COMMIT-002", SOURCE, uses=COMMITS)
def nothing_committed(bench: Bench) -> Any:
    """A partition without a committed offset has -1 and no error.

    Fetch the offset of a group that has committed nothing.
    It is -1, with empty metadata.
    """
    return _committed(bench, bench.group(), bench.topic().name)


@chapter.check("COMMIT-003", SOURCE, uses=COMMITS)
def last_wins(bench: Bench) -> Any:
    """A later commit replaces an earlier one, also with a smaller offset.

    Commit the offsets 5 and 3.
    The committed offset is 3.
    """
    group, topic = bench.group(), bench.topic().name
    return {"commits": [_commit(bench, group, topic, each) for each in (5, 3)], **_committed(bench, group, topic)}


@chapter.check("COMMIT-004", SOURCE, uses=COMMITS)
def metadata_too_large(bench: Bench) -> Any:
    """Metadata above offset.metadata.max.bytes is refused.

    Commit an offset with 5,000 letters of metadata.
    The error is OFFSET_METADATA_TOO_LARGE, and nothing is committed.
    """
    group, topic = bench.group(), bench.topic().name
    return {"commit": _commit(bench, group, topic, 5, metadata="x" * 5000), **_committed(bench, group, topic)}


@chapter.check("COMMIT-005", SOURCE, uses={**COMMITS, **CLASSIC})
def wrong_generation_of_a_commit(bench: Bench) -> Any:
    """A commit of another generation or member is refused.

    Join and sync; commit with the next generation, with another member id, with none, then as the member.
    The last is the only one without an error.
    """
    member, topic = _member(bench, bench.group()), bench.topic().name
    _sync(bench, member)
    who: dict[str, Any] = {"member_id": member.member_id, "generation_id_or_member_epoch": member.generation}
    tries: list[dict[str, Any]] = [
        {**who, "generation_id_or_member_epoch": 9},
        {**who, "member_id": "stranger"},
        {},
        who,
    ]
    return {"errors": [_commit(bench, member.group, topic, 1, **fields) for fields in tries]}


@chapter.check("COMMIT-006", SOURCE, uses={**COMMITS, "OffsetFetch": 2})
def all_topics(bench: Bench) -> Any:
    """Null topics select all committed offsets.

    Commit an offset, and send OffsetFetch 2 with null topics.
    The response has this one offset.
    """
    group, topic = bench.group(), bench.topic().name
    _commit(bench, group, topic, 5)
    body = bench.ask("OffsetFetch", 2, at=bench.coordinator(group), group_id=group, topics=None)
    found = [(part.partition_index, part.committed_offset) for each in body.topics for part in each.partitions]
    return {
        "error": error_name(body.error_code),
        "offsets": found,
        "topic": [each.name == topic for each in body.topics],
    }


@chapter.check("COMMIT-007", "KIP-496", uses={**COMMITS, "OffsetDelete": 0})
def delete_offsets(bench: Bench) -> Any:
    """OffsetDelete removes a committed offset.

    Commit an offset, delete it, and fetch it.
    There is no error, and the offset is -1.
    """
    group, topic = bench.group(), bench.topic().name
    _commit(bench, group, topic, 5)
    topics = [{"name": topic, "partitions": [{"partition_index": 0}]}]
    body = bench.ask("OffsetDelete", at=bench.coordinator(group), group_id=group, topics=topics)
    code = error_name(body.topics[0].partitions[0].error_code) if body.topics else error_name(body.error_code)
    return {"delete": code, **_committed(bench, group, topic)}


@chapter.check("COMMIT-008", SOURCE, uses=COMMITS)
def unknown_partition(bench: Bench) -> Any:
    """An offset of a topic that does not exist cannot be committed.

    Commit an offset of a missing topic.
    The error is UNKNOWN_TOPIC_OR_PARTITION.
    """
    return {"commit": _commit(bench, bench.group(), bench.name("missing"), 5)}


@chapter.check("COMMIT-009", "KIP-709", uses={**COMMITS, "OffsetFetch": 8})
def several_groups(bench: Bench) -> Any:
    """OffsetFetch 8 takes several groups.

    Commit offsets in two groups, and fetch both in one request.
    Each has its own.
    """
    topic = bench.topic().name
    groups = [bench.group("a"), bench.group("b")]
    for i, group in enumerate(groups):
        _commit(bench, group, topic, 10 + i)
    topics = [{"name": topic, "partition_indexes": [0]}]
    asked = [{"group_id": group, "topics": topics} for group in groups]
    body = bench.ask("OffsetFetch", bench.best("OffsetFetch", 9), at=bench.coordinator(groups[0]), groups=asked)
    return {"offsets": [part.committed_offset for g in body.groups for t in g.topics for part in t.partitions]}


# The consumer protocol (KIP-848)


def _beat(bench: Bench, group: str, member_id: str, epoch: int, **fields: Any) -> Any:
    at = bench.coordinator(group)
    names: dict[str, Any] = {"group_id": group, "member_id": member_id, "member_epoch": epoch}
    return bench.ask("ConsumerGroupHeartbeat", at=at, **names, rebalance_timeout_ms=REBALANCE_MS, **fields)


def _assigned(body: Any) -> int | None:
    if body.assignment is None:
        return None
    return sum(len(each.partitions) for each in body.assignment.topic_partitions)


@chapter.check("CONSUMER-001", "KIP-848", uses=CONSUMER)
def joins(bench: Bench) -> Any:
    """A member joins with epoch 0 and is assigned all partitions.

    Send ConsumerGroupHeartbeat with epoch 0 and a subscription, then with the epoch of the response.
    The epoch is 1 or more, all three partitions are assigned, and the second response has no assignment.
    """
    group, topic, member = bench.group(), bench.topic(partitions=3), str(uuid.uuid4())
    first = _beat(bench, group, member, 0, subscribed_topic_names=[topic.name], topic_partitions=[])
    bench.at_end(lambda: _beat(bench, group, member, -1))
    count, epoch = _assigned(first), first.member_epoch
    for _ in range(200):
        if count:
            break
        time.sleep(0.02)
        body = _beat(bench, group, member, epoch, topic_partitions=[])
        count, epoch = _assigned(body), body.member_epoch
    owned = [{"topic_id": topic.topic_id, "partitions": [0, 1, 2]}]
    last = _beat(bench, group, member, epoch, topic_partitions=owned)
    return {
        "errors": [error_name(first.error_code), error_name(last.error_code)],
        "joined": epoch >= 1,
        "assigned": count,
        "again": _assigned(last),
        "interval": first.heartbeat_interval_ms > 0,
    }


@chapter.check("CONSUMER-002", "KIP-848", uses=CONSUMER)
def fenced_epoch(bench: Bench) -> Any:
    """A member with an epoch that it never had is fenced.

    Join, then send a heartbeat with epoch 100.
    The error is FENCED_MEMBER_EPOCH.
    """
    group, topic, member = bench.group(), bench.topic(), str(uuid.uuid4())
    _beat(bench, group, member, 0, subscribed_topic_names=[topic.name], topic_partitions=[])
    bench.at_end(lambda: _beat(bench, group, member, -1))
    return {"error": error_name(_beat(bench, group, member, 100).error_code)}


@chapter.check("CONSUMER-003", "KIP-848", uses=CONSUMER)
def left(bench: Bench) -> Any:
    """A member leaves with epoch -1, and is unknown after that.

    Join, leave, and send a heartbeat with the old epoch.
    The error is UNKNOWN_MEMBER_ID.
    """
    group, topic, member = bench.group(), bench.topic(), str(uuid.uuid4())
    first = _beat(bench, group, member, 0, subscribed_topic_names=[topic.name], topic_partitions=[])
    gone = _beat(bench, group, member, -1)
    after = _beat(bench, group, member, first.member_epoch)
    return {"left": [error_name(gone.error_code), gone.member_epoch], "after": error_name(after.error_code)}


@chapter.check("CONSUMER-004", "KIP-848", uses=CONSUMER)
def wrong_requests(bench: Bench) -> Any:
    """Heartbeats that make no sense are refused.

    Send an empty group id; epoch 0 without a subscription; an unknown assignor.
    The errors are those of the release.
    """
    group, member = bench.group(), str(uuid.uuid4())
    names: dict[str, Any] = {"subscribed_topic_names": [bench.topic().name], "topic_partitions": []}
    fields: dict[str, Any] = {"member_id": member, "member_epoch": 0, "rebalance_timeout_ms": REBALANCE_MS}
    empty = bench.ask("ConsumerGroupHeartbeat", group_id="", **fields, **names)
    without = _beat(bench, group, member, 0, topic_partitions=[])
    assignor = _beat(bench, group, member, 0, server_assignor="no-such", **names)
    return {"errors": [error_name(each.error_code) for each in (empty, without, assignor)]}


@chapter.check("CONSUMER-005", "KIP-848", uses=CONSUMER)
def described_consumer_group(bench: Bench) -> Any:
    """A group of the consumer protocol is described by its own API.

    Join, and send ConsumerGroupDescribe.
    The group has one member with its subscription, an assignor, and a positive epoch.
    """
    group, topic, member = bench.group(), bench.topic(), str(uuid.uuid4())
    _beat(bench, group, member, 0, subscribed_topic_names=[topic.name], topic_partitions=[])
    bench.at_end(lambda: _beat(bench, group, member, -1))
    found = bench.ask("ConsumerGroupDescribe", at=bench.coordinator(group), group_ids=[group]).groups[0]
    return {
        "error": error_name(found.error_code),
        "epoch": found.group_epoch > 0,
        "assignor": found.assignor_name,
        "members": [[each.member_id == member, each.subscribed_topic_names == [topic.name]] for each in found.members],
    }


@chapter.check("CONSUMER-006", "KIP-848", uses={**CONSUMER, **COMMITS, "OffsetCommit": 9})
def commit_of_a_member(bench: Bench) -> Any:
    """A commit has the epoch of its member.

    Join, and commit with the member's epoch and with the one after it.
    The first has no error, the second STALE_MEMBER_EPOCH.
    """
    group, topic, member = bench.group(), bench.topic(), str(uuid.uuid4())
    first = _beat(bench, group, member, 0, subscribed_topic_names=[topic.name], topic_partitions=[])
    bench.at_end(lambda: _beat(bench, group, member, -1))
    epochs = (first.member_epoch, first.member_epoch + 5)
    fields = [{"member_id": member, "generation_id_or_member_epoch": epoch} for epoch in epochs]
    return {"errors": [_commit(bench, group, topic.name, 1, version=9, **each) for each in fields]}


@chapter.check("CONSUMER-007", "KIP-848", uses={**CONSUMER, **CLASSIC})
def classic_join(bench: Bench) -> Any:
    """A classic consumer may not join with a protocol that the group cannot use.

    Join with the consumer protocol, then with JoinGroup and metadata that is no subscription.
    The error is that of the release.
    """
    group, topic, member = bench.group(), bench.topic(), str(uuid.uuid4())
    _beat(bench, group, member, 0, subscribed_topic_names=[topic.name], topic_partitions=[])
    bench.at_end(lambda: _beat(bench, group, member, -1))
    return {"error": error_name(_join(bench, group, protocol_type="connect").error_code)}
