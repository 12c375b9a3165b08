"""Handlers of groups and offsets: the response of every version, through encoded requests and responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from kwire.broker.apis import SERVED, handler
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.clock import ManualClock
from kwire.broker.configs.settings import Settings
from kwire.broker.context import Peer, RequestContext
from kwire.broker.dispatch import Call
from kwire.broker.groups.offsets import group_tombstones
from kwire.broker.injection import respond
from kwire.broker.node import Node
from kwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    registry,
)
from kwire.messages.base import ZERO_UUID
from kwire.protocol.error_codes import ErrorCode

APIS = {key: api for key, api in SERVED.items() if 8 <= key <= 16 or key in (28, 42, 47, 68, 69)}


class Denying:
    """An authorizer that allows everything except the given operations."""

    def __init__(self, *denied: tuple[Operation, ResourceType, str]) -> None:
        self.denied = denied

    def may(self, context: RequestContext, operation: Operation, kind: ResourceType, name: str) -> bool:
        return (operation, kind, name) not in self.denied


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node on a directory; shared because it takes long to create."""
    clock = ManualClock()
    node = Node(
        Settings(offsets_topic_num_partitions=2),
        tmp_path_factory.mktemp("node") / "data",
        {"PLAINTEXT": ("localhost", 9092)},
        clock,
        clock.timers,
    )
    for name in ("t", "u"):
        node.controller.create_topic(name, 2)
    yield node
    node.close()


@pytest.fixture
def node(started: Node) -> Iterator[Node]:
    """The node without groups, with its initial configs."""
    security = started.security
    yield started
    started.security, started.configs.settings = security, started.configs.given
    store = started.groups.store
    for group in store.groups():
        tombstones = [*started.groups.offsets.all_tombstones(group.group_id), *group_tombstones(group)]
        store.write(group.group_id, tombstones)


def context_of(api_key: int, version: int) -> RequestContext:
    """Return the context of a request of client "c"."""
    peer = Peer(connection_id="", host="10.0.0.1", port=1, listener="PLAINTEXT")
    return RequestContext(
        peer=peer, api_key=api_key, api_version=version, correlation_id=0, client_id="c", request_bytes=0
    )


def ask(node: Node, request: Any, version: int) -> Any:
    """Encode and handle a request in this version, and decode the response."""
    sent = type(request).decode(request.encode(version=version), version=version)
    response = respond(node, Call(handler(request.API_KEY), context_of(request.API_KEY, version), sent, True, version))
    cls = registry.response(request.API_KEY)
    assert isinstance(response, cls), response
    return cls.decode(response.encode(version=version), version=version)


def topic_id(node: Node, name: str) -> UUID:
    """Return a topic's id, or the zero id for a missing topic."""
    topic = node.topics.get(name)
    return ZERO_UUID if topic is None else topic.topic_id


def commit(
    node: Node, group_id: str, offsets: dict[tuple[str, int], int], version: int = 8, **fields: Any
) -> dict[tuple[str, int], int]:
    """Send OffsetCommit and return error codes by partition."""
    partition = OffsetCommitRequest.OffsetCommitRequestPartition
    metadata = fields.pop("metadata", "")
    names = sorted({name for name, _ in offsets})
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=name,
                topic_id=topic_id(node, name),
                partitions=[
                    partition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
                    for (topic, index), offset in offsets.items()
                    if topic == name
                ],
            )
            for name in names
        ],
        **fields,
    )
    response = ask(node, request, version)
    return {
        (name, p.partition_index): p.error_code
        for name, topic in zip(names, response.topics, strict=True)
        for p in topic.partitions
    }


def fetch(node: Node, group_id: str, asked: dict[str, list[int]] | None, version: int, **fields: Any) -> Any:
    """Send OffsetFetch; return offsets by partition, error codes by partition and the error code of the group."""
    require_stable = fields.pop("require_stable", False)
    if version >= 8:
        topics = None
        if asked is not None:
            topics = [
                OffsetFetchRequest.OffsetFetchRequestTopics(
                    name=name, topic_id=topic_id(node, name), partition_indexes=indexes
                )
                for name, indexes in asked.items()
            ]
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=topics, **fields)
        response = ask(node, OffsetFetchRequest(groups=[group], require_stable=require_stable), version)
        found, code = response.groups[0].topics, response.groups[0].error_code
    else:
        old = None
        if asked is not None:
            old = [
                OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in asked.items()
            ]
        response = ask(node, OffsetFetchRequest(group_id=group_id, topics=old, require_stable=require_stable), version)
        found, code = response.topics, response.error_code
    by_id = {topic.topic_id: topic.name for topic in node.topics}
    rows = [
        ((by_id.get(topic.topic_id, "") if version >= 10 else topic.name, p.partition_index), p)
        for topic in found
        for p in topic.partitions
    ]
    return {k: p.committed_offset for k, p in rows}, {k: p.error_code for k, p in rows}, code


def join(node: Node, group_id: str, version: int = 9, **fields: Any) -> Any:
    """Send JoinGroup as the only member and advance the clock to the response."""
    responses: list[Any] = []
    request = JoinGroupRequest(
        group_id=group_id,
        protocol_type="consumer",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"?")],
        **fields,
    )
    sent = JoinGroupRequest.decode(request.encode(version=version), version=version)
    if version == 0:
        sent.rebalance_timeout_ms = sent.session_timeout_ms
    node.groups.join(context_of(11, version), sent, responses.append)
    node.clock.advance(0)  # type: ignore[attr-defined]
    return responses[0]


def member(node: Node, group_id: str, **fields: Any) -> str:
    """Create a stable group of one classic member."""
    first = join(node, group_id, **fields)
    member_id = first.member_id
    if first.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        first = join(node, group_id, member_id=member_id, **fields)
    given = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine")
    request = SyncGroupRequest(
        group_id=group_id, member_id=member_id, generation_id=first.generation_id, assignments=[given]
    )
    assert ask(node, request, 4).assignment == b"mine"
    return str(member_id)


def test_all_versions_up_to_the_newest_are_served() -> None:
    for api_key, api in APIS.items():
        versions = registry.request(api_key).VALID_VERSIONS
        assert (versions.lowest, versions.highest) == (api.lowest, api.highest), api.module


@pytest.mark.parametrize("version", range(11))
def test_offsets_committed_in_any_version_are_fetched_in_every_version(node: Node, version: int) -> None:
    assert commit(node, "g", {("t", 0): 5, ("t", 1): 7}, version) == {("t", 0): 0, ("t", 1): 0}
    for fetching in range(11):
        offsets, errors, code = fetch(node, "g", {"t": [0, 1], "u": [0]}, fetching)
        assert offsets == {("t", 0): 5, ("t", 1): 7, ("u", 0): -1}
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if fetching == 0 else 0
        assert (errors[("t", 0)], errors[("u", 0)], code) == (0, missing, 0)
        if fetching >= 2:
            assert fetch(node, "g", None, fetching)[0] == {("t", 0): 5, ("t", 1): 7}


@pytest.mark.parametrize("version", [8, 10])
def test_commits_are_rejected_per_partition(node: Node, version: int) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version == 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    codes = commit(node, "g", {("t", 0): 1, ("t", 9): 1, ("nothing", 0): 1}, version)
    assert codes == {("t", 0): 0, ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ("nothing", 0): unknown}
    assert commit(node, "g", {("t", 0): 2}, metadata="x" * 4097) == {("t", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert fetch(node, "g", None, 8)[0] == {("t", 0): 1}


def test_an_unauthorized_commit_is_rejected_for_every_partition(node: Node) -> None:
    codes = commit(node, "g", {("t", 0): 1, ("t", 1): 1}, generation_id_or_member_epoch=3, member_id="m")
    assert set(codes.values()) == {ErrorCode.ILLEGAL_GENERATION}


def test_unauthorized_topics_and_groups_are_unchanged(node: Node) -> None:
    commit(node, "g", {("t", 0): 1, ("u", 0): 2})
    node.security = Denying(
        (Operation.READ, ResourceType.TOPIC, "u"),
        (Operation.DESCRIBE, ResourceType.TOPIC, "u"),
        (Operation.READ, ResourceType.GROUP, "secret"),
        (Operation.DESCRIBE, ResourceType.GROUP, "secret"),
        (Operation.DELETE, ResourceType.GROUP, "secret"),
    )
    assert commit(node, "g", {("t", 0): 3, ("u", 0): 4}) == {
        ("t", 0): 0,
        ("u", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    assert fetch(node, "g", None, 8)[0] == {("t", 0): 3}
    assert fetch(node, "g", {"u": [0]}, 8)[1] == {("u", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert set(commit(node, "secret", {("t", 0): 1}).values()) == {denied}
    assert fetch(node, "secret", {"t": [0]}, 8)[2] == denied
    assert fetch(node, "secret", {"t": [0]}, 1)[1] == {("t", 0): denied}
    assert ask(node, HeartbeatRequest(group_id="secret"), 4).error_code == denied
    assert ask(node, JoinGroupRequest(group_id="secret", member_id="m"), 9).error_code == denied
    assert ask(node, SyncGroupRequest(group_id="secret"), 4).error_code == denied
    assert ask(node, LeaveGroupRequest(group_id="secret"), 5).error_code == denied
    assert ask(node, OffsetDeleteRequest(group_id="secret"), 0).error_code == denied
    assert ask(node, DescribeGroupsRequest(groups=["secret"]), 5).groups[0].error_code == denied
    assert ask(node, DeleteGroupsRequest(groups_names=["secret"]), 2).results[0].error_code == denied
    assert ask(node, ConsumerGroupHeartbeatRequest(group_id="secret"), 0).error_code == denied
    assert ask(node, ConsumerGroupDescribeRequest(group_ids=["secret"]), 0).groups[0].error_code == denied
    assert ask(node, FindCoordinatorRequest(coordinator_keys=["secret", "g"]), 4).coordinators[0].error_code == denied
    assert ask(node, FindCoordinatorRequest(key="secret"), 3).error_code == denied


@pytest.mark.parametrize("version", range(7))
def test_the_broker_is_the_coordinator_of_every_group_and_transaction(node: Node, version: int) -> None:
    for key_type in (0, 1) if version else (0,):
        if version >= 4:
            response = ask(node, FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a", "b"]), version)
            assert [found.key for found in response.coordinators] == ["a", "b"]
            found = response.coordinators[0]
        else:
            found = ask(node, FindCoordinatorRequest(key="a", key_type=key_type), version)
        assert (found.node_id, found.host, found.port, found.error_code) == (1, "localhost", 9092, 0)
    if version >= 4:
        shared = ask(node, FindCoordinatorRequest(key_type=2, coordinator_keys=["a"]), version).coordinators[0]
        assert (shared.error_code, shared.node_id) == (ErrorCode.INVALID_REQUEST, -1)


@pytest.mark.parametrize("version", range(10))
def test_every_version_of_join_group_works(node: Node, version: int) -> None:
    first = join(node, "g", version)
    if version >= 4:
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        first = join(node, "g", version, member_id=first.member_id)
    assert (first.error_code, first.generation_id, first.leader) == (0, 1, first.member_id)


def test_a_rejected_join_returns_the_member_id_of_the_request(node: Node) -> None:
    for version in range(10):
        response = ask(node, JoinGroupRequest(group_id="g", member_id="m", session_timeout_ms=10_000), version)
        assert (response.error_code, response.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "m")
        assert response.protocol_name == (None if version >= 7 else "")


def test_sync_group_from_version_5_checks_the_protocol(node: Node) -> None:
    member_id = member(node, "g")
    request = SyncGroupRequest(group_id="g", member_id=member_id, generation_id=1)
    for version in range(6):
        expected = ErrorCode.INCONSISTENT_GROUP_PROTOCOL if version >= 5 else 0
        assert ask(node, request, version).error_code == expected
    request.protocol_type, request.protocol_name = "consumer", "range"
    response = ask(node, request, 5)
    assert (response.assignment, response.protocol_type, response.protocol_name) == (b"mine", "consumer", "range")


def test_every_version_of_heartbeat_works(node: Node) -> None:
    member_id = member(node, "g")
    for version in range(5):
        assert ask(node, HeartbeatRequest(group_id="g", member_id=member_id, generation_id=1), version).error_code == 0


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_leave_group_works(node: Node, version: int) -> None:
    member_id = member(node, "g")
    request = LeaveGroupRequest(group_id="g")
    for expected in (0, ErrorCode.UNKNOWN_MEMBER_ID):
        if version >= 3:
            request.members = [LeaveGroupRequest.MemberIdentity(member_id=member_id)]
            response = ask(node, request, version)
            assert (response.error_code, [m.error_code for m in response.members]) == (0, [expected])
        else:
            request.member_id = member_id
            assert ask(node, request, version).error_code == expected
    request.group_id = "nothing"
    response = ask(node, request, version)
    assert (response.members[0] if version >= 3 else response).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(7))
def test_classic_groups_are_described(node: Node, version: int) -> None:
    member_id = member(node, "g", group_instance_id="i")
    request = DescribeGroupsRequest(groups=["g", "nothing"])
    if version >= 3:
        request.include_authorized_operations = True
    group, nothing = ask(node, request, version).groups
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    described = group.members[0]
    assert (described.member_id, described.client_id, described.client_host) == (member_id, "c", "/10.0.0.1")
    assert (described.member_metadata, described.member_assignment) == (b"?", b"mine")
    assert described.group_instance_id == ("i" if version >= 4 else None)
    if version >= 3:
        assert group.authorized_operations == 1 << 3 | 1 << 6 | 1 << 8
    assert nothing.group_state == "Dead"
    assert nothing.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)


def test_groups_are_listed_by_state_and_type(node: Node) -> None:
    member(node, "classic")
    commit(node, "simple", {("t", 0): 1})
    beat(node, "consumer")

    def listed(version: int, **filters: Any) -> set[tuple[str, str, str, str]]:
        groups = ask(node, ListGroupsRequest(**filters), version).groups
        return {(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in groups}

    everything = {
        ("classic", "consumer", "Stable", "classic"),
        ("simple", "", "Empty", "classic"),
        ("consumer", "consumer", "Stable", "consumer"),
    }
    assert listed(5) == everything
    assert {row[0] for row in listed(0)} == {"classic", "simple", "consumer"}
    assert {row[0] for row in listed(4, states_filter=["stable"])} == {"classic", "consumer"}
    assert {row[0] for row in listed(5, states_filter=["Stable"], types_filter=["Consumer"])} == {"consumer"}
    assert listed(5, types_filter=["nothing"]) == set()
    node.security = Denying(
        (Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster"), (Operation.DESCRIBE, ResourceType.GROUP, "simple")
    )
    assert {row[0] for row in listed(5)} == {"classic", "consumer"}


@pytest.mark.parametrize("version", range(4))
def test_empty_groups_are_deleted(node: Node, version: int) -> None:
    member(node, "busy")
    commit(node, "g", {("t", 0): 1})
    results = ask(node, DeleteGroupsRequest(groups_names=["g", "busy", "nothing", "g"]), version).results
    assert {r.group_id: r.error_code for r in results} == {
        "g": 0,
        "busy": ErrorCode.NON_EMPTY_GROUP,
        "nothing": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert fetch(node, "g", None, 8)[0] == {}


def test_committed_offsets_are_deleted(node: Node) -> None:
    commit(node, "g", {("t", 0): 1, ("t", 1): 1, ("u", 0): 1})
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    partition = OffsetDeleteRequest.OffsetDeleteRequestPartition
    request = OffsetDeleteRequest(
        group_id="g",
        topics=[
            topic(name="t", partitions=[partition(partition_index=0), partition(partition_index=9)]),
            topic(name="nothing", partitions=[partition(partition_index=0)]),
        ],
    )
    response = ask(node, request, 0)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [[p.error_code for p in topic.partitions] for topic in response.topics] == [[0, unknown], [unknown]]
    assert fetch(node, "g", None, 8)[0] == {("t", 1): 1, ("u", 0): 1}
    request.group_id = "nothing"
    assert ask(node, request, 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    beat(node, "busy")
    commit(node, "g2", {("t", 0): 1})
    request.group_id = "busy"
    response = ask(node, request, 0)
    assert response.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def beat(node: Node, group_id: str, version: int = 0, **fields: Any) -> Any:
    """Send the first heartbeat of a consumer."""
    fields.setdefault("subscribed_topic_names", ["t"])
    fields.setdefault("rebalance_timeout_ms", 60_000)
    request = ConsumerGroupHeartbeatRequest(group_id=group_id, topic_partitions=[], **fields)
    return ask(node, request, version)


@pytest.mark.parametrize("version", [0, 1])
def test_a_consumer_group_is_described_after_its_first_heartbeat(node: Node, version: int) -> None:
    joined = beat(node, "g", version, member_id="m" if version else "")
    assert (joined.error_code, joined.member_epoch) == (0, 1)
    assert [sorted(topic.partitions) for topic in joined.assignment.topic_partitions] == [[0, 1]]
    request = ConsumerGroupDescribeRequest(group_ids=["g", "nothing"], include_authorized_operations=True)
    group, nothing = ask(node, request, version).groups
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == (
        "Stable",
        1,
        1,
        "uniform",
    )
    assert group.authorized_operations == 1 << 3 | 1 << 6 | 1 << 8
    described = group.members[0]
    assert (described.member_id, described.client_host, described.subscribed_topic_names) == (
        joined.member_id,
        "/10.0.0.1",
        ["t"],
    )
    assert described.assignment == described.target_assignment
    assert [(t.topic_name, t.partitions) for t in described.assignment.topic_partitions] == [("t", [0, 1])]
    assert described.member_type == (1 if version else -1)
    assert nothing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert nothing.error_message == "Group nothing not found."


def test_rejected_consumer_group_heartbeats_have_an_error_message(node: Node) -> None:
    response = beat(node, "g", 0, server_assignor="sticky")
    assert response.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert response.error_message == "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
    node.security = Denying((Operation.DESCRIBE, ResourceType.TOPIC, "t"))
    assert beat(node, "g").error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    node.security = Denying()
    beat(node, "g")
    node.security = Denying((Operation.DESCRIBE, ResourceType.TOPIC, "t"))
    group = ask(node, ConsumerGroupDescribeRequest(group_ids=["g"]), 0).groups[0]
    assert (group.error_code, group.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])


def test_the_consumer_protocol_can_be_disabled(node: Node) -> None:
    node.configs.settings = node.settings.replace(group_coordinator_rebalance_protocols="classic")
    assert beat(node, "g").error_code == ErrorCode.UNSUPPORTED_VERSION
    group = ask(node, ConsumerGroupDescribeRequest(group_ids=["g"]), 0).groups[0]
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_offsets_of_consumer_groups_are_checked_by_epoch(node: Node) -> None:
    joined = beat(node, "g")
    fields = {"member_id": joined.member_id, "generation_id_or_member_epoch": 1}
    assert commit(node, "g", {("t", 0): 1}, 9, **fields) == {("t", 0): 0}
    assert commit(node, "g", {("t", 0): 1}, 8, **fields) == {("t", 0): ErrorCode.UNSUPPORTED_VERSION}
    assert fetch(node, "g", {"t": [0]}, 9, member_id=joined.member_id, member_epoch=1)[0] == {("t", 0): 1}
    assert (
        fetch(node, "g", {"t": [0]}, 9, member_id=joined.member_id, member_epoch=0)[2] == ErrorCode.STALE_MEMBER_EPOCH
    )
    assert fetch(node, "g", {"t": [0]}, 9, member_id="other", member_epoch=1)[2] == ErrorCode.UNKNOWN_MEMBER_ID


def test_old_versions_of_offset_commit_set_the_expiry(node: Node) -> None:
    commit(node, "g", {("t", 0): 1}, 2, retention_time_ms=1_000)
    node.groups.offsets.expire()
    assert fetch(node, "g", None, 8)[0] == {("t", 0): 1}
    node.clock.advance(1_001)  # type: ignore[attr-defined]
    node.groups.offsets.expire()
    assert fetch(node, "g", None, 8)[0] == {}


def test_offset_fetch_supports_several_groups(node: Node) -> None:
    commit(node, "g", {("t", 0): 1})
    commit(node, "h", {("t", 0): 2})
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    request = OffsetFetchRequest(groups=[group(group_id=name, topics=None) for name in ("g", "h", "nothing")])
    response = ask(node, request, 8)
    assert [[p.committed_offset for t in g.topics for p in t.partitions] for g in response.groups] == [[1], [2], []]


def test_an_internal_error_has_a_response_in_every_version(node: Node) -> None:
    groups, node.groups.store.classic = node.groups.store.classic, None
    for api_key, api in APIS.items():
        cls = registry.request(api_key)
        for version in range(api.lowest, api.highest + 1):
            ask(node, cls(), version)
    node.groups.store.classic = groups
