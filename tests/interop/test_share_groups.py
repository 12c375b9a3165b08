"""Share groups of ours and of a real Kafka 4.4.0: what its Java client sees, and what raw requests get, is the same.

A directory with a share group is taken over by the real broker and taken back.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.broker.shares.harness import (
    EARLIEST,
    Member,
    acquired,
    configure,
    create,
    produce,
    result,
    set_share_version,
)
from tests.broker.wire import RawClient
from tests.waiting import until
from tools import kafka

from kwire import messages as m
from kwire.broker import Broker
from kwire.identifiers import render_uuid
from kwire.internal_topics.coordinator_records import decode_share_state
from kwire.internal_topics.names import SHARE_STATE_TOPIC
from kwire.log.reading.log_directory import LogDirectory
from kwire.log.topics.history import read_history
from kwire.messages.base import ZERO_UUID, Message
from kwire.protocol.error_codes import ErrorCode

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

JAVA = Path(__file__).parent / "java"
RELEASE = "4.4.0"
KAFKA: dict[str, str | int] = {
    "group.share.heartbeat.interval.ms": 500,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.assignment.interval.ms": 0,
    "group.share.min.record.lock.duration.ms": 1000,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
}
OURS: dict[str, Any] = {name.replace(".", "_"): value for name, value in KAFKA.items()}


def java_sees(servers: str) -> list[str]:
    """Return what Java's share consumer and admin client see of a broker."""
    classes = kafka.compile_java(JAVA / "ShareScenarios.java", version=RELEASE)
    return kafka.java("ShareScenarios", servers, version=RELEASE, classes=classes, heap="256m").splitlines()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    with kafka.KafkaBroker(tmp_path_factory.mktemp("kafka"), version=RELEASE, heap="384m", **KAFKA) as real:
        theirs = java_sees(real.bootstrap_servers), observe(real)
    with Broker(**OURS) as broker:
        ours = java_sees(broker.bootstrap_servers), observe(broker)
    return ours, theirs


def test_java_sees_the_same_of_both(seen: tuple[Any, Any]) -> None:
    (ours, _), (theirs, _) = seen
    assert len(theirs) > 40
    assert ours == theirs


def test_raw_requests_get_the_same_of_both(seen: tuple[Any, Any]) -> None:
    (_, ours), (_, theirs) = seen
    assert ours.keys() == theirs.keys()
    assert {name: each for name, each in ours.items() if each != theirs[name]} == {
        name: each for name, each in theirs.items() if each != ours[name]
    }


def observe(broker: Any) -> dict[str, Any]:
    """Return what a broker responds to raw requests, by name."""
    seen: dict[str, Any] = {}
    with RawClient(broker) as client:
        topic_id = create(client, "t", 2)
        configure(client, "g", EARLIEST)
        produce(client, "t", 5)

        def note(name: str, request: Message, version: int) -> Any:
            response = client.ask(request, version)
            seen[name] = plain(response, version, topic_id)
            return response

        client.ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)  # creates the topic
        until(lambda: Member(client, "warm", "t", topic_id).heartbeat().error_code == 0)
        heartbeats(note)
        sessions(note, client, topic_id)
        acknowledgements(note, client, topic_id)
        states(note, topic_id)
        offsets(note, client, topic_id)
        others(note, topic_id)
        disabled(note, client, topic_id)
    return seen


def plain(response: Message, version: int, topic_id: UUID) -> Any:
    """Return a response without what differs between brokers and runs."""
    text = json.dumps(response.to_json(version=version), sort_keys=True)
    shown = json.loads(text.replace(render_uuid(topic_id), "T"))

    def normal(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: normal(v) for k, v in value.items() if k not in ("port", "host", "throttleTimeMs", "clientHost")}
        if isinstance(value, list):
            return sorted((normal(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
        return value

    return normal(shown)


Note = Callable[[str, Message, int], Any]


def heartbeats(note: Note) -> None:
    """Heartbeats that are refused, and descriptions."""
    cls = m.ShareGroupHeartbeatRequest
    for name, fields in {
        "no member id": {"member_id": ""},
        "a long member id": {"member_id": "m" * 37},
        "a blank rack": {"rack_id": " "},
        "no group id": {"group_id": ""},
        "no topics": {"subscribed_topic_names": None},
        "empty topics": {"subscribed_topic_names": []},
        "epoch -2": {"member_epoch": -2},
        "an unknown group": {"group_id": "nothing", "member_epoch": 1},
        "leaving an unknown group": {"group_id": "nothing", "member_epoch": -1},
        "an unknown topic": {"group_id": "h", "subscribed_topic_names": ["missing"]},
        "an unknown member": {"group_id": "h", "member_id": "x", "member_epoch": 1},
        "a greater epoch": {"group_id": "h", "member_epoch": 9},
        "leaving": {"group_id": "h", "member_epoch": -1},
        "leaving again": {"group_id": "h", "member_epoch": -1},
    }.items():
        given: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]}
        note(f"heartbeat: {name}", cls(**{**given, **fields}), 1)
    describe = m.ShareGroupDescribeRequest
    note("describe", describe(group_ids=["h", "nothing", ""], include_authorized_operations=True), 1)
    note("consumer describe", m.ConsumerGroupDescribeRequest(group_ids=["h"]), 1)
    note("classic describe", m.DescribeGroupsRequest(groups=["h"]), 6)


def joined(client: RawClient, topic_id: UUID, group: str = "g") -> Member:
    """Return a member with both partitions."""
    member = Member(client, group, "t", topic_id)
    member.heartbeat()
    assigned: list[int] = []

    def has_partitions() -> bool:
        got = member.heartbeat(topics=["t"]).assignment
        assigned[:] = [index for topic in got.topic_partitions for index in topic.partitions]
        return len(assigned) == 2

    until(has_partitions)
    return member


def sessions(note: Note, client: RawClient, topic_id: UUID) -> None:
    """Fetches that are refused or get errors."""
    joined(client, topic_id)
    cls = m.ShareFetchRequest
    unknown = cls.FetchTopic(topic_id=UUID(int=1 << 64), partitions=[cls.FetchPartition(partition_index=0)])
    one = cls.FetchTopic(topic_id=topic_id, partitions=[cls.FetchPartition(partition_index=0)])
    missing = cls.FetchTopic(topic_id=topic_id, partitions=[cls.FetchPartition(partition_index=7)])
    batch = cls.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    acks = cls.FetchTopic(
        topic_id=topic_id, partitions=[cls.FetchPartition(partition_index=0, acknowledgement_batches=[batch])]
    )
    for name, fields in {
        "no group": {"group_id": None},
        "no member": {"member_id": None},
        "an empty member": {"member_id": ""},
        "no session": {"share_session_epoch": 4},
        "the end of no session": {"share_session_epoch": -1},
        "acknowledgements first": {"topics": [acks]},
        "a renewal with limits": {"is_renew_ack": True},
        "an unknown topic": {"topics": [unknown]},
        "a missing partition": {"topics": [missing], "member_id": "n"},
        "a group without state": {"group_id": "stateless"},
        "a wrong epoch": {"share_session_epoch": 9, "member_id": "n"},
        "the end": {"share_session_epoch": -1, "member_id": "n", "topics": []},
    }.items():
        given: dict[str, Any] = {
            "group_id": "g",
            "member_id": "m2",
            "share_session_epoch": 0,
            "max_wait_ms": 100,
            "min_bytes": 1,
            "max_records": 10,
            "batch_size": 10,
            "topics": [one] if name == "a group without state" else [],
        }
        note(f"fetch: {name}", cls(**{**given, **fields}), 2)


def acknowledgements(note: Note, client: RawClient, topic_id: UUID) -> None:
    """Records that are acquired and acknowledged, and errors of that."""
    cls = m.ShareAcknowledgeRequest

    def acknowledge(name: str, epoch: int, batches: list[tuple[int, int, list[int]]], **fields: Any) -> None:
        given = [cls.AcknowledgementBatch(first_offset=a, last_offset=z, acknowledge_types=t) for a, z, t in batches]
        part = cls.AcknowledgePartition(partition_index=fields.pop("index", 0), acknowledgement_batches=given)
        topics = [cls.AcknowledgeTopic(topic_id=fields.pop("topic", topic_id), partitions=[part])]
        request = cls(**{"group_id": "g", "member_id": "m", "share_session_epoch": epoch, "topics": topics, **fields})
        note(f"acknowledge: {name}", request, 2)

    acknowledge("no session", 1, [(0, 0, [1])])
    member = Member(client, "g", "t", topic_id)
    until(lambda: acquired(member.fetch(epoch=0, max_wait_ms=500)) == [(0, 4, 1)])
    acknowledge("epoch 0", 0, [(0, 0, [1])])
    acknowledge("a wrong epoch", 7, [(0, 0, [1])])
    epoch = member.epoch
    for name, batches, fields in (
        ("no group", [], {"group_id": None}),
        ("nothing", [], {}),
        ("a reversed range", [(2, 1, [1])], {}),
        ("no types", [(0, 0, [])], {}),
        ("too few types", [(0, 2, [1, 1])], {}),
        ("an unknown type", [(0, 0, [9])], {}),
        ("a renewal", [(0, 0, [4])], {}),
        ("overlaps", [(0, 3, [1]), (2, 4, [1])], {}),
        ("an offset twice", [(0, 1, [1]), (1, 2, [1])], {}),
        ("past the end", [(0, 9, [1])], {}),
        ("far past the end", [(9, 9, [1])], {}),
        ("an unknown topic", [(0, 0, [1])], {"topic": UUID(int=1 << 64)}),
        ("a missing partition", [(0, 0, [1])], {"index": 7}),
        ("a partition that was not fetched", [(0, 0, [1])], {"index": 1}),
        ("a release", [(4, 4, [2])], {}),
        ("a released record", [(4, 4, [1])], {}),
        ("a rejection and a gap", [(2, 3, [3, 0])], {}),
        ("the rest", [(0, 1, [1])], {}),
        ("what is done", [(0, 3, [1])], {}),
    ):
        acknowledge(name, epoch, batches, **fields)
        if name != "no group":
            epoch += 1
    fetch = m.ShareFetchRequest
    request = fetch(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch,
        max_wait_ms=2000,
        min_bytes=1,
        max_records=9,
        batch_size=9,
    )
    note("fetch: a released record", request, 2)
    batch = fetch.AcknowledgementBatch(first_offset=4, last_offset=4, acknowledge_types=[4])
    part = fetch.FetchPartition(partition_index=0, acknowledgement_batches=[batch])
    renewal = fetch(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch + 1,
        max_bytes=0,
        is_renew_ack=True,
        topics=[fetch.FetchTopic(topic_id=topic_id, partitions=[part])],
    )
    note("fetch: a renewal", renewal, 2)
    acknowledge("the end", -1, [(4, 4, [1])])


def states(note: Note, topic_id: UUID) -> None:
    """Requests of brokers to the share coordinator."""

    def ask(name: str, kind: str, topic: UUID = topic_id, group: str = "s", **fields: Any) -> None:
        cls = getattr(m, f"{kind}Request")
        verb = kind.removesuffix("ShareGroupState").removesuffix("ShareGroupStateSummary")
        data = getattr(cls, f"{verb}State{'Summary' if kind.endswith('Summary') else ''}Data")
        part = cls.PartitionData(**{"partition": 0, **fields})
        version = {"WriteShareGroupState": 1, "ReadShareGroupStateSummary": 1}.get(kind, 0)
        note(f"state: {name}", cls(group_id=group, topics=[data(topic_id=topic, partitions=[part])]), version)

    read, write = "ReadShareGroupState", "WriteShareGroupState"
    ask("read nothing", read, leader_epoch=0)
    ask("summary of nothing", "ReadShareGroupStateSummary")
    ask("write nothing", write, leader_epoch=0, state_epoch=0, start_offset=0)
    ask("delete nothing", "DeleteShareGroupState")
    ask("initialize a negative partition", "InitializeShareGroupState", partition=-1, state_epoch=1, start_offset=0)
    ask("initialize a negative epoch", "InitializeShareGroupState", state_epoch=-1, start_offset=0)
    ask("initialize an unknown topic", "InitializeShareGroupState", UUID(int=1 << 64), state_epoch=1, start_offset=0)
    ask("initialize a missing partition", "InitializeShareGroupState", partition=9, state_epoch=1, start_offset=0)
    ask("initialize no group", "InitializeShareGroupState", group="", state_epoch=1, start_offset=0)
    ask("initialize", "InitializeShareGroupState", state_epoch=3, start_offset=2)
    ask("initialize an older epoch", "InitializeShareGroupState", state_epoch=2, start_offset=0)
    ask("read", read, leader_epoch=4)
    ask("read of an older leader", read, leader_epoch=3)
    ask("read a negative epoch", read, leader_epoch=-1)
    batch = m.WriteShareGroupStateRequest.StateBatch(first_offset=2, last_offset=3, delivery_state=2, delivery_count=1)
    written = {"start_offset": 2, "delivery_complete_count": 2, "state_batches": [batch]}
    ask("write of an older leader", write, leader_epoch=3, state_epoch=3, **written)
    ask("write of an older epoch", write, leader_epoch=4, state_epoch=2, **written)
    ask("write", write, leader_epoch=4, state_epoch=3, **written)
    ask("read again", read, leader_epoch=4)
    ask("summary", "ReadShareGroupStateSummary", leader_epoch=4)
    ask("delete", "DeleteShareGroupState")
    ask("read what was deleted", read, leader_epoch=4)
    for name, key in {"a key": f"s:{render_uuid(topic_id)}:0", "no key": "s", "another key": "s:x:0"}.items():
        while note(f"find {name}", find(key), 6).coordinators[0].error_code in (14, 15):  # the topic is being created
            time.sleep(0.1)


def find(key: str) -> Message:
    """Return a request for the coordinator of a share partition."""
    return m.FindCoordinatorRequest(key_type=2, coordinator_keys=[key])


def offsets(note: Note, client: RawClient, topic_id: UUID) -> None:
    """Offsets of groups, and groups that are deleted."""
    describe, alter, delete = m.DescribeShareGroupOffsetsRequest, m.AlterShareGroupOffsetsRequest, None
    delete = m.DeleteShareGroupOffsetsRequest
    group, topic = describe.DescribeShareGroupOffsetsRequestGroup, describe.DescribeShareGroupOffsetsRequestTopic

    def describe_both(name: str) -> None:
        chosen = [topic(topic_name="t", partitions=[0, 1]), topic(topic_name="missing", partitions=[0])]
        asked = [group(group_id=each, topics=None) for each in ("g", "nothing")]
        asked += [group(group_id="g", topics=[]), group(group_id="g", topics=chosen)]
        note(f"offsets {name}", describe(groups=asked), 1)
        note(f"old offsets {name}", describe(groups=asked), 0)

    def change(name: str, of: str = "g") -> None:
        part = alter.AlterShareGroupOffsetsRequestPartition
        parts = [part(partition_index=0, start_offset=3), part(partition_index=9, start_offset=0)]
        topics = [
            alter.AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=parts),
            alter.AlterShareGroupOffsetsRequestTopic(topic_name="missing", partitions=parts),
        ]
        note(f"alter {name}", alter(group_id=of, topics=topics), 0)

    def forget(name: str, of: str = "g") -> None:
        chosen = [delete.DeleteShareGroupOffsetsRequestTopic(topic_name=each) for each in ("t", "missing")]
        note(f"delete offsets {name}", delete(group_id=of, topics=chosen), 0)

    describe_both("with members")
    for name, of in {"with members": "g", "without a group id": ""}.items():
        change(name, of)
        forget(name, of)
    forget("of nothing", "nothing")
    note("delete with members", m.DeleteGroupsRequest(groups_names=["g"]), 3)
    member = Member(client, "g", "t", topic_id)
    assert member.heartbeat(-1).error_code == 0
    change("without members")
    describe_both("altered")
    forget("without members")
    forget("again")
    describe_both("deleted")
    change("of a new group", "new")
    note("list", m.ListGroupsRequest(types_filter=["Share"]), 5)
    note("delete", m.DeleteGroupsRequest(groups_names=["g", "new"]), 3)
    note("list after deletion", m.ListGroupsRequest(types_filter=["share"], states_filter=["Empty"]), 5)


def others(note: Note, topic_id: UUID) -> None:
    """Requests of other protocols for a share group."""
    beat = m.ConsumerGroupHeartbeatRequest
    note(
        "consumer heartbeat",
        beat(group_id="h", member_id="x", rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]),
        1,
    )
    join = m.JoinGroupRequest
    protocols = [join.JoinGroupRequestProtocol(name="range", metadata=b"")]
    note("join", join(group_id="h", session_timeout_ms=10_000, protocol_type="consumer", protocols=protocols), 5)
    note("classic heartbeat", m.HeartbeatRequest(group_id="h", member_id="x", generation_id=1), 4)
    commit = m.OffsetCommitRequest
    part = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [commit.OffsetCommitRequestTopic(name="t", partitions=[part])]
    note("commit", commit(group_id="h", generation_id_or_member_epoch=-1, topics=topics), 9)
    fetch = m.OffsetFetchRequest
    note("fetch offsets", fetch(groups=[fetch.OffsetFetchRequestGroup(group_id="h", topics=None)]), 9)
    gone = m.OffsetDeleteRequest
    asked = [gone.OffsetDeleteRequestTopic(name="t", partitions=[gone.OffsetDeleteRequestPartition(partition_index=0)])]
    note("delete committed offsets", gone(group_id="h", topics=asked), 0)
    assert topic_id != ZERO_UUID


def disabled(note: Note, client: RawClient, topic_id: UUID) -> None:
    """The feature goes to 0, which ends sessions, and back to 2."""
    configure(client, "ended", EARLIEST)
    member = joined(client, topic_id, "ended")
    until(lambda: acquired(member.fetch(max_wait_ms=500)) == [(0, 4, 1)])
    assert result(member.acknowledge([(0, 0, [1]), (1, 1, [2])])) == (0, None)
    fetch = m.ShareFetchRequest(group_id="ended", member_id="m", share_session_epoch=member.epoch, max_records=9)
    refused = ErrorCode.UNSUPPORTED_VERSION
    set_share_version(client, 0)
    until(lambda: member.heartbeat().error_code == refused)  # Kafka's broker follows its controller
    note("fetch when disabled", fetch, 2)
    set_share_version(client, 2)
    until(lambda: member.heartbeat().error_code != refused)
    note("fetch when enabled again", fetch, 2)
    records: list[tuple[int, int, int]] = []
    until(lambda: bool(records.extend(acquired(member.fetch(epoch=0, max_wait_ms=500))) or records))
    assert records == [(1, 1, 2), (2, 4, 1)]


def test_a_directory_is_taken_over_and_taken_back(tmp_path: Path) -> None:
    """What was acknowledged before a takeover is not delivered after it, with the counts of the other records."""
    directory = tmp_path / "data"
    with Broker(directory, **OURS) as broker, RawClient(broker) as client:
        set_share_version(client, 2)
        topic_id = create(client, "t", 2)
        configure(client, "g", EARLIEST)
        produce(client, "t", 5)
        member = joined(client, topic_id)
        assert acquired(member.fetch()) == [(0, 4, 1)]
        acknowledged = [(0, 1, [1]), (2, 2, [2]), (4, 4, [3])]
        assert result(member.acknowledge(acknowledged)) == (0, None)
        member.fetch(epoch=-1, partitions=())
    with contextlib.ExitStack() as cleanup:
        real = kafka.KafkaBroker(tmp_path, version=RELEASE, heap="384m", **KAFKA)
        cleanup.enter_context(real)
        client = cleanup.enter_context(RawClient(real))
        again = Member(client, "g", "t", topic_id)
        until(lambda: again.heartbeat(0).error_code == 0)
        records: list[tuple[int, int, int]] = []
        until(lambda: bool(records.extend(acquired(again.fetch(max_wait_ms=500))) or records))
        assert records == [(2, 3, 2)]
        assert result(again.acknowledge([(2, 2, [1]), (3, 3, [2])])) == (0, None)
        again.fetch(epoch=-1, partitions=())
    with Broker(directory, **OURS) as broker, RawClient(broker) as client:
        last = Member(client, "g", "t", topic_id)
        assert last.heartbeat(0).error_code == 0
        assert acquired(last.fetch()) == [(3, 3, 3)]


PRUNING: dict[str, str | int] = {
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.snapshot.update.records.per.snapshot": 2,
    "share.coordinator.state.topic.prune.interval.ms": 500,
    "share.coordinator.cold.partition.snapshot.interval.ms": 4000,
}


def kept_states(broker: Any, directory: Path) -> tuple[int, list[tuple[str, str]]]:
    """Write states of three groups, wait until they have been snapshotted; return what is kept of the topic.

    The first offset, and kinds and groups of the records from there on; those of one time are sorted.
    """
    with RawClient(broker) as client:
        topic_id = create(client, "t")
        while client.ask(find(f"a:{render_uuid(topic_id)}:0"), 6).coordinators[0].error_code:
            time.sleep(0.1)

        def state(group: str, count: int) -> None:
            begin, write = m.InitializeShareGroupStateRequest, m.WriteShareGroupStateRequest
            first = begin.PartitionData(partition=0, state_epoch=1, start_offset=0)
            topics = [begin.InitializeStateData(topic_id=topic_id, partitions=[first])]
            until(lambda: not code_of(client.ask(begin(group_id=group, topics=topics), 0)))
            for offset in range(count):
                ended = write.StateBatch(first_offset=offset, last_offset=offset, delivery_state=2, delivery_count=1)
                changed = write.PartitionData(
                    partition=0, leader_epoch=0, state_epoch=1, start_offset=offset, state_batches=[ended]
                )
                data = write.WriteStateData(topic_id=topic_id, partitions=[changed])
                assert code_of(client.ask(write(group_id=group, topics=[data]), 1)) == 0

        state("a", 0)
        state("b", 7)
        state("c", 1)
        gone = m.DeleteShareGroupStateRequest
        part = gone.PartitionData(partition=0)
        topics = [gone.DeleteStateData(topic_id=topic_id, partitions=[part])]
        assert code_of(client.ask(gone(group_id="b", topics=topics), 0)) == 0

        def log() -> Any:
            return LogDirectory(directory / "data")[SHARE_STATE_TOPIC, 0]

        until(lambda: log().log_end_offset >= 13)
        time.sleep(2)  # another snapshot of the same states would be a fault
    broker.stop()
    kept = log()
    records = [
        (record.kind, record.key.group_id)
        for record in read_history(kept, decode_share_state, start_offset=kept.log_start_offset)
    ]
    return kept.log_start_offset, sorted(records)


def code_of(response: Any) -> int:
    """Return the error code of the only partition in a response for states."""
    return int(response.results[0].partitions[0].error_code)


def test_old_states_are_deleted_as_by_kafka(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    with kafka.KafkaBroker(theirs, version=RELEASE, heap="384m", **{**KAFKA, **PRUNING}) as real:
        expected = kept_states(real, theirs)
    given = {name.replace(".", "_"): value for name, value in {**KAFKA, **PRUNING}.items()}
    with Broker(ours / "data", **given) as broker:  # type: ignore[arg-type]
        assert kept_states(broker, ours) == expected
    assert expected == (12, [("ShareSnapshot", "a"), ("ShareSnapshot", "c")])
