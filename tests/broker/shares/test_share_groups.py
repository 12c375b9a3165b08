"""Share groups of a broker, by raw requests: joining, acquiring, acknowledging, locks, limits, sessions, restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from kwire import messages as m
from kwire.broker import Broker, Cluster
from kwire.broker.shares.coordinator import ShareKey
from kwire.errors import CorruptBatch
from kwire.internal_topics.names import SHARE_STATE_TOPIC
from kwire.protocol.error_codes import ErrorCode
from kwire.records import read_batches
from tests.broker.shares.harness import (
    EARLIEST,
    SETTINGS,
    Member,
    acquired,
    configure,
    create,
    offsets,
    produce,
    result,
    set_share_version,
)
from tests.broker.wire import RawClient
from tests.waiting import until

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
RECORD_STATE = int(ErrorCode.INVALID_RECORD_STATE)


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(**SETTINGS) as broker:  # type: ignore[arg-type]
        yield broker


@pytest.fixture
def client(shared: Broker) -> Iterator[RawClient]:
    shared.reset()
    with RawClient(shared) as client:
        yield client


def started(client: RawClient, count: int = 5, member_id: str = "m", **configs: str) -> Member:
    """Return a member of a group whose topic has one batch of records."""
    topic_id = create(client, "t")
    configure(client, "g", {**EARLIEST, **{name.replace("_", "."): value for name, value in configs.items()}})
    produce(client, "t", count)
    return Member(client, "g", "t", topic_id, member_id).join()


def test_partitions_are_assigned_with_the_second_heartbeat(client: RawClient) -> None:
    topic_id = create(client, "t", 2)
    member = Member(client, "g", "t", topic_id)
    first = member.heartbeat()
    assert (first.member_epoch, first.heartbeat_interval_ms, first.assignment.topic_partitions) == (2, 5000, [])
    second = member.heartbeat()
    (topic,) = second.assignment.topic_partitions
    assert (second.member_epoch, topic.topic_id, sorted(topic.partitions)) == (3, topic_id, [0, 1])
    assert member.heartbeat().assignment is None
    described = client.ask(m.ShareGroupDescribeRequest(group_ids=["g", "h"]), 1).groups
    assert [(each.error_code, each.group_state) for each in described] == [(0, "Stable"), (69, "")]
    (listed,) = client.ask(m.ListGroupsRequest(types_filter=["share"]), 5).groups
    assert (listed.group_id, listed.protocol_type, listed.group_type) == ("g", "share", "share")


def test_a_test_waits_for_a_share_group(client: RawClient, shared: Broker) -> None:
    started(client)
    state = shared.wait_until_stable("g", members=1, timeout=5)
    assert (state.kind, state.state, list(state.members)) == ("share", "Stable", ["m"])


def test_members_leave_and_are_fenced(client: RawClient, shared: Broker) -> None:
    member = started(client)
    assert member.heartbeat(5).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert member.heartbeat(-1).member_epoch == -1
    assert member.heartbeat(3).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    again = Member(client, "g", "t", member.topic_id).join()
    assert again.member_epoch == 5  # left and joined; the partitions were initialized already
    shared.advance(45_001)
    assert again.heartbeat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_released_records_are_delivered_again_and_others_are_not(client: RawClient) -> None:
    member = started(client)
    first = member.fetch()
    assert (acquired(first), offsets(first)) == ([(0, 4, 1)], [0, 1, 2, 3, 4])
    assert first.acquisition_lock_timeout_ms == 30_000
    types = [ACCEPT, RELEASE, REJECT, RELEASE, ACCEPT]
    second = member.fetch([(0, 4, types)])
    assert acquired(second) == [(1, 1, 2), (3, 3, 2)]
    assert acquired(member.fetch([(1, 1, [ACCEPT]), (3, 3, [ACCEPT])])) == []
    produce(client, "t", 1)
    assert acquired(member.fetch()) == [(5, 5, 1)]


def test_a_record_is_delivered_five_times(client: RawClient) -> None:
    member = started(client, 1)
    assert acquired(member.fetch()) == [(0, 0, 1)]
    for count in (2, 3, 4, 5):
        assert acquired(member.fetch([(0, 0, [RELEASE])])) == [(0, 0, count)]
    assert acquired(member.fetch([(0, 0, [RELEASE])])) == []


@pytest.mark.parametrize(("waited", "is_released"), [(29_000, False), (30_001, True)])
def test_locks_end_on_the_brokers_clock(client: RawClient, shared: Broker, waited: int, is_released: bool) -> None:
    member = started(client)
    member.fetch()
    shared.advance(waited)
    other = Member(client, "g", "t", member.topic_id, "other")
    assert acquired(other.fetch()) == ([(0, 4, 2)] if is_released else [])
    code, _ = result(member.acknowledge([(0, 4, [ACCEPT])]))
    assert code == (RECORD_STATE if is_released else 0)


def test_locks_are_renewed(client: RawClient, shared: Broker) -> None:
    member = started(client)
    member.fetch()
    shared.advance(20_000)
    assert result(member.acknowledge([(0, 4, [RENEW])], renew=True))[0] == 0
    shared.advance(20_000)
    assert result(member.acknowledge([(0, 4, [ACCEPT])]))[0] == 0


def test_renewals_can_be_disabled(client: RawClient) -> None:
    member = started(client, share_renew_acknowledge_enable="false")
    member.fetch()
    assert result(member.acknowledge([(0, 4, [RENEW])], renew=True)) == (
        RECORD_STATE,
        "Renewing acquisition locks is not enabled for the group.",
    )


def test_errors_of_acknowledgements_change_nothing(client: RawClient) -> None:
    member = started(client)
    member.fetch()
    invalid = int(ErrorCode.INVALID_REQUEST)
    for acks, code in (
        ([(0, 9, [ACCEPT])], invalid),  # past the records
        ([(7, 9, [ACCEPT])], invalid),
        ([(2, 1, [ACCEPT])], invalid),
        ([(0, 1, [])], invalid),
        ([(0, 2, [ACCEPT, ACCEPT])], invalid),
        ([(0, 1, [5])], invalid),
        ([(0, 1, [RENEW])], invalid),  # without is_renew_ack
        ([(0, 4, [ACCEPT]), (1, 2, [ACCEPT])], invalid),
        ([(0, 1, [ACCEPT]), (1, 2, [ACCEPT])], RECORD_STATE),  # offset 1 twice
    ):
        assert result(member.acknowledge(acks))[0] == code, acks
    other = Member(client, "g", "t", member.topic_id, "other")
    other.fetch()
    assert result(other.acknowledge([(0, 4, [ACCEPT])])) == (RECORD_STATE, "Member is not the owner of offset")
    assert result(member.acknowledge([(0, 4, [ACCEPT])])) == (0, None)


def test_sessions_have_epochs(client: RawClient) -> None:
    member = started(client)
    assert member.fetch(epoch=3).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.fetch([(0, 0, [ACCEPT])]).error_code == ErrorCode.INVALID_REQUEST
    assert member.fetch().error_code == 0
    assert member.fetch(epoch=5).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge([(0, 0, [ACCEPT])], epoch=0).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge([(0, 0, [ACCEPT])]).error_code == 0
    assert member.fetch(epoch=-1, partitions=()).error_code == 0
    assert member.fetch(epoch=-1, partitions=()).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    other = Member(client, "g", "t", member.topic_id, "other")
    assert acquired(other.fetch()) == [(1, 4, 2)]  # what was not acknowledged


def test_a_closed_connection_ends_its_sessions(client: RawClient, shared: Broker) -> None:
    member = started(client)
    with RawClient(shared) as connection:
        assert acquired(Member(connection, "g", "t", member.topic_id).fetch()) == [(0, 4, 1)]
    other = Member(client, "g", "t", member.topic_id, "other")
    assert acquired(other.fetch(max_wait_ms=5000)) == [(0, 4, 2)]


def test_a_waiting_fetch_gets_records_that_another_member_releases(client: RawClient, shared: Broker) -> None:
    member = started(client)
    member.fetch()
    with RawClient(shared) as connection:
        other = Member(connection, "g", "t", member.topic_id, "other")
        assert acquired(other.fetch()) == []
        request = m.ShareFetchRequest(
            group_id="g", member_id="other", share_session_epoch=1, max_wait_ms=20_000, min_bytes=1, max_records=9
        )
        connection.send(request, 2)
        member.acknowledge([(0, 4, [RELEASE])])
        assert acquired(connection.receive()) == [(0, 4, 2)]


def test_limits_of_records(client: RawClient) -> None:
    member = started(client, 5)
    produce(client, "t", 5)
    assert acquired(member.fetch(max_records=2, share_acquire_mode=1)) == [(0, 1, 1)]
    assert acquired(member.fetch(max_records=2)) == [(2, 4, 1)]  # to the end of the batch
    assert acquired(member.fetch()) == [(5, 9, 1)]


def test_records_of_share_fetches_can_be_corrupt(client: RawClient, shared: Broker) -> None:
    """They carry records too; that only Fetch did was the reason of a refusal."""
    fault = shared.faults.corrupt("ShareFetch", topic="t")
    member = started(client)
    response = member.fetch()
    assert fault.hits == 1
    assert acquired(response) == [(0, 4, 1)]
    (batch,) = read_batches(response.responses[0].partitions[0].records)
    with pytest.raises(CorruptBatch):
        batch.check()


def test_records_in_flight_are_limited(client: RawClient) -> None:
    member = started(client, 100, share_partition_max_record_locks="100")
    produce(client, "t", 5)
    assert acquired(member.fetch()) == [(0, 99, 1)]
    assert acquired(member.fetch()) == []
    assert acquired(member.fetch([(0, 0, [ACCEPT])])) == [(100, 104, 1)]


@pytest.mark.parametrize(("reset", "expected"), [("latest", []), ("earliest", [(0, 4, 1)]), ("by_duration:PT1H", [])])
def test_groups_begin_where_they_are_told(client: RawClient, reset: str, expected: list[tuple[int, int, int]]) -> None:
    member = started(client, share_auto_offset_reset=reset)
    assert acquired(member.fetch()) == expected  # the records are of 1970


def test_offsets_are_described_altered_and_deleted(client: RawClient) -> None:
    member = started(client)
    member.fetch()
    member.fetch([(0, 2, [ACCEPT])])
    assert described(client) == {0: (0, 2)}  # the start offset of the acknowledgement, three done
    alter = m.AlterShareGroupOffsetsRequest
    part = alter.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=1)
    request = alter(group_id="g", topics=[alter.AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=[part])])
    assert client.ask(request, 0).error_code == ErrorCode.NON_EMPTY_GROUP
    member.heartbeat(-1)
    alter_offset(client, 1)
    assert described(client) == {0: (1, 4)}
    delete = m.DeleteShareGroupOffsetsRequest
    gone = delete(group_id="g", topics=[delete.DeleteShareGroupOffsetsRequestTopic(topic_name="t")])
    assert client.ask(gone, 0).responses[0].error_code == 0
    assert described(client) == {}
    assert client.ask(m.DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == 0
    assert client.ask(m.ListGroupsRequest(), 5).groups == []


def alter_offset(client: RawClient, offset: int) -> None:
    """Set the start offset of the group, which has no members."""
    alter = m.AlterShareGroupOffsetsRequest
    part = alter.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=offset)
    request = alter(group_id="g", topics=[alter.AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=[part])])
    assert client.ask(request, 0).responses[0].partitions[0].error_code == 0


@pytest.mark.parametrize("wait_ms", [0, 60_000])
def test_a_group_beyond_the_end_of_the_log_waits_for_records(client: RawClient, wait_ms: int) -> None:
    """OFFSET_OUT_OF_RANGE was an exception in the application; Kafka 4.4.0 responds at once, without records."""
    member = started(client)
    member.heartbeat(-1)
    alter_offset(client, 8)
    again = Member(client, "g", "t", member.topic_id, "again").join()
    response = again.fetch(max_wait_ms=wait_ms)
    assert [(part.error_code, part.records) for topic in response.responses for part in topic.partitions] == [(0, b"")]
    assert again.fetch(max_wait_ms=wait_ms).responses == []
    produce(client, "t", 2)
    assert again.fetch(max_wait_ms=wait_ms).responses == []
    produce(client, "t", 3)
    assert acquired(again.fetch(max_wait_ms=wait_ms)) == [(8, 9, 1)]


def described(client: RawClient) -> dict[int, tuple[int, int]]:
    """Return (start offset, lag) of the partitions of the group."""
    cls = m.DescribeShareGroupOffsetsRequest
    asked = cls(groups=[cls.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)])
    (group,) = client.ask(asked, 1).groups
    return {each.partition_index: (each.start_offset, each.lag) for topic in group.topics for each in topic.partitions}


def test_other_requests_refuse_share_groups(client: RawClient) -> None:
    started(client)
    heartbeat = m.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="x", rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    response = client.ask(heartbeat, 1)
    assert (response.error_code, response.error_message) == (69, "Group g is not a consumer group.")
    join = m.JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocol_type="consumer", member_id="")
    assert client.ask(join, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(("state", "code", "expected"), [(0, 0, [(0, 4, 2)]), (2, 0, []), (9, -1, [])])
def test_states_that_others_wrote_are_checked(
    client: RawClient, state: int, code: int, expected: list[tuple[int, int, int]]
) -> None:
    member = started(client)
    cls = m.WriteShareGroupStateRequest
    batch = cls.StateBatch(first_offset=0, last_offset=1 << 62, delivery_state=state, delivery_count=1)
    part = cls.PartitionData(partition=0, state_epoch=9, leader_epoch=0, start_offset=0, state_batches=[batch])
    request = cls(group_id="g", topics=[cls.WriteStateData(topic_id=member.topic_id, partitions=[part])])
    assert client.ask(request, 1).results[0].partitions[0].error_code == 0
    response = member.fetch()
    assert response.responses[0].partitions[0].error_code == code
    assert acquired(response) == expected


def test_a_state_with_a_reversed_range_is_refused(client: RawClient) -> None:
    """Kafka 4.4.0 stores it, and fails every later write of the share partition."""
    member = started(client)
    cls = m.WriteShareGroupStateRequest
    for first, code in ((4, ErrorCode.INVALID_REQUEST), (3, ErrorCode.NONE)):
        batch = cls.StateBatch(first_offset=first, last_offset=3, delivery_state=2, delivery_count=1)
        part = cls.PartitionData(partition=0, state_epoch=9, leader_epoch=0, start_offset=0, state_batches=[batch])
        request = cls(group_id="g", topics=[cls.WriteStateData(topic_id=member.topic_id, partitions=[part])])
        assert client.ask(request, 1).results[0].partitions[0].error_code == code
    assert acquired(member.fetch()) == [(0, 2, 1), (4, 4, 1)]


def test_the_feature_disables_share_groups(tmp_path: Path) -> None:
    with Broker(tmp_path, share_version=0) as broker, RawClient(broker) as client:
        assert Member(client, "g", "t", UUID(int=1)).heartbeat().error_code == ErrorCode.UNSUPPORTED_VERSION


def test_sessions_of_all_nodes_end_when_the_feature_is_0() -> None:
    with Cluster(nodes=2, **SETTINGS) as cluster, RawClient(cluster, node=1) as one, RawClient(cluster, node=2) as two:  # type: ignore[arg-type]
        owner = one.ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6).coordinators[0].node_id
        topic_id = create(one, "t", 2)
        configure(one, "g", EARLIEST)
        members = []
        for partition, client in enumerate((one, two)):
            cluster.move_leader("t", partition, to=partition + 1)
            produce(client, "t", 5, partition)
            members.append(Member(client, "g", "t", topic_id))
        Member((one, two)[owner - 1], "g", "t", topic_id).join()
        for partition, member in enumerate(members):
            assert acquired(member.fetch(partitions=(partition,))) == [(0, 4, 1)]
            assert result(member.acknowledge([(0, 1, [ACCEPT]), (2, 2, [RELEASE])], partition=partition)) == (0, None)
        set_share_version(one, 0)
        for member in members:
            assert member.fetch(partitions=()).error_code == ErrorCode.UNSUPPORTED_VERSION
        set_share_version(two, 2)
        for partition, member in enumerate(members):
            assert member.fetch(partitions=()).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
            assert acquired(member.fetch(epoch=0, partitions=(partition,))) == [(2, 2, 2), (3, 4, 1)]  # as was written


def test_a_restart_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    with Broker(tmp_path, **SETTINGS) as broker, RawClient(broker) as client:  # type: ignore[arg-type]
        member = started(client)
        member.fetch()
        assert acquired(member.fetch([(0, 1, [ACCEPT]), (3, 3, [RELEASE]), (4, 4, [REJECT])])) == [(3, 3, 2)]
    with Broker(tmp_path, **SETTINGS) as broker, RawClient(broker) as client:  # type: ignore[arg-type]
        again = Member(client, "g", "t", member.topic_id)
        again.member_epoch = member.member_epoch
        assert again.heartbeat().error_code == 0  # the member is still known
        assert acquired(again.fetch()) == [(2, 2, 2), (3, 3, 3)]  # released when the broker stopped


def test_many_updates_become_a_snapshot(tmp_path: Path) -> None:
    given = {**SETTINGS, "share_coordinator_snapshot_update_records_per_snapshot": 2}
    with Broker(tmp_path, **given) as broker, RawClient(broker) as client:  # type: ignore[arg-type]
        member = started(client)
        member.fetch()
        for offset in (0, 1, 2):
            member.acknowledge([(offset, offset, [ACCEPT])])
        stored = broker.call(lambda node: list(node.coordinators.share_states.state.partitions.values()))
        assert [(each.snapshot_epoch, each.start_offset) for each in stored] == [(1, 2)]
    with Broker(tmp_path, **given) as broker, RawClient(broker) as client:  # type: ignore[arg-type]
        assert acquired(Member(client, "g", "t", member.topic_id).fetch()) == [(3, 4, 2)]


def test_states_that_snapshots_replace_are_deleted(tmp_path: Path) -> None:
    """Of a state without changes, too: it gets a snapshot after a while."""
    given = {
        **SETTINGS,
        "share_coordinator_state_topic_num_partitions": 1,
        "share_coordinator_cold_partition_snapshot_interval_ms": 2000,
        "share_coordinator_state_topic_prune_interval_ms": 2000,
    }

    def bounds(broker: Broker) -> tuple[int, int]:
        log = broker.call(lambda node: node.topics.get(SHARE_STATE_TOPIC).partitions[0].opened)
        return log.log_start_offset, log.log_end_offset

    with Broker(tmp_path, **given) as broker, RawClient(broker) as client:  # type: ignore[arg-type]
        member = started(client)
        Member(client, "h", "t", member.topic_id).join()
        member.fetch()
        member.acknowledge([(0, 0, [ACCEPT]), (1, 4, [RELEASE])])
        start, end = bounds(broker)
        assert start == 0
        broker.advance(4000)  # both states get a snapshot, and what is before them is deleted
        assert bounds(broker) == (end, end + 2)
        broker.advance(4000)
        assert bounds(broker) == (end, end + 2)  # without changes, there is no other snapshot
    with Broker(tmp_path, **given) as broker, RawClient(broker) as client:  # type: ignore[arg-type]
        assert bounds(broker) == (end, end + 2)
        again = Member(client, "g", "t", member.topic_id).join()
        assert acquired(again.fetch()) == [(1, 4, 2)]
        for each in (Member(client, "h", "t", member.topic_id), again):
            each.heartbeat(-1)
        deleted = client.ask(m.DeleteGroupsRequest(groups_names=["g", "h"]), 3)
        assert [each.error_code for each in deleted.results] == [0, 0]
        broker.advance(4000)
        start, end = bounds(broker)
        assert start == end - 1  # the last tombstone stays
        assert not broker.call(lambda node: node.coordinators.share_states.state.partitions)


def test_members_stay_when_their_coordinators_move() -> None:
    with Cluster(nodes=2, **SETTINGS) as cluster, RawClient(cluster, node=1) as one, RawClient(cluster, node=2) as two:  # type: ignore[arg-type]
        topic_id = create(one, "t")
        cluster.move_leader("t", 0, to=1)
        produce(one, "t", 5)
        configure(one, "g", EARLIEST)
        owner = one.ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6).coordinators[0].node_id
        member = Member((one, two)[owner - 1], "g", "t", topic_id).join()
        cluster.move_coordinator("g", to=1)
        member.client = one
        assert member.heartbeat().error_code == 0
        assert acquired(member.fetch()) == [(0, 4, 1)]
        cluster.move_coordinator("g", to=2)
        assert member.heartbeat().error_code == ErrorCode.NOT_COORDINATOR
        member.client = two
        assert member.heartbeat().error_code == 0
        member.client = one
        for partition in range(3):  # whichever holds the state
            cluster.move_leader("__share_group_state", partition, to=2)
        assert acquired(member.fetch([(0, 1, [ACCEPT]), (2, 4, [RELEASE])])) == [(2, 4, 2)]


def test_share_partitions_follow_their_leaders() -> None:
    with Cluster(nodes=2, **SETTINGS) as cluster, RawClient(cluster, node=1) as one, RawClient(cluster, node=2) as two:  # type: ignore[arg-type]
        owner = one.ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6).coordinators[0].node_id
        topic_id = create(one, "t")
        cluster.move_leader("t", 0, to=1)
        produce(one, "t", 5)
        configure(one, "g", EARLIEST)
        member = Member((one, two)[owner - 1], "g", "t", topic_id).join()
        cluster.move_leader("t", 0, to=2)
        member.client = one
        failed = member.fetch()
        (topic,) = failed.responses
        code, leader = topic.partitions[0].error_code, topic.partitions[0].current_leader.leader_id
        assert (code, leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2)
        assert [each.node_id for each in failed.node_endpoints] == [2]
        there = Member(two, "g", "t", member.topic_id)
        assert acquired(there.fetch()) == [(0, 4, 1)]
        assert result(there.acknowledge([(0, 1, [ACCEPT])])) == (0, None)
        cluster.move_leader("t", 0, to=1)
        assert acquired(Member(one, "g", "t", member.topic_id, "new").fetch()) == [(2, 4, 1)]
        key = f"g:{'A' * 22}:0"
        found = one.ask(m.FindCoordinatorRequest(key_type=2, coordinator_keys=[key, "g"]), 6).coordinators
        assert [each.error_code for each in found] == [0, ErrorCode.INVALID_REQUEST]


def test_a_connection_to_another_node_does_not_end_locks() -> None:
    """Its end released what members had acquired from all nodes, if it had the only session there."""
    with Cluster(nodes=2, **SETTINGS) as cluster, RawClient(cluster, node=1) as one, RawClient(cluster, node=2) as two:  # type: ignore[arg-type]
        owner = one.ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6).coordinators[0].node_id
        topic_id = create(one, "t", 2)
        cluster.move_leader("t", 0, to=1)
        cluster.move_leader("t", 1, to=2)
        configure(one, "g", EARLIEST)
        produce(one, "t", 5)
        Member((one, two)[owner - 1], "g", "t", topic_id).join()
        assert acquired(Member(one, "g", "t", topic_id).fetch()) == [(0, 4, 1)]
        with RawClient(cluster, node=2) as other:
            assert acquired(Member(other, "g", "t", topic_id).fetch(partitions=(1,))) == []
        there = ShareKey("g", topic_id, 1)
        until(lambda: cluster.call(lambda node: node.coordinators.share_partitions.get(there)) is None)
        assert acquired(Member(one, "g", "t", topic_id, "other").fetch()) == []


def test_the_end_of_a_session_with_a_former_leader_releases_nothing() -> None:
    """It released what the member had acquired from the new leader, in another session."""
    with Cluster(nodes=2, **SETTINGS) as cluster, RawClient(cluster, node=1) as one, RawClient(cluster, node=2) as two:  # type: ignore[arg-type]
        owner = one.ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6).coordinators[0].node_id
        topic_id = create(one, "t")
        cluster.move_leader("t", 0, to=1)
        configure(one, "g", EARLIEST)
        produce(one, "t", 5)
        Member((one, two)[owner - 1], "g", "t", topic_id).join()
        former, member = Member(one, "g", "t", topic_id), Member(two, "g", "t", topic_id)
        assert acquired(former.fetch()) == [(0, 4, 1)]
        cluster.move_leader("t", 0, to=2)
        assert acquired(member.fetch()) == [(0, 4, 1)]
        assert former.fetch(epoch=-1, partitions=()).error_code == 0
        assert result(member.acknowledge([(0, 4, [ACCEPT])])) == (0, None)
