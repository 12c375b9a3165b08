"""Groups replayed from `__consumer_offsets`: offsets compared with Kafka's dumps, members, transactions, deletion."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.log.internal.dumps import NOW, batch, dumped, keyed, log_of, marker

from kwire.internal_topics.group_rows import LogEnds, group_row, member_rows, offset_rows
from kwire.internal_topics.groups_state import GroupsState
from kwire.log import LogDirectory
from kwire.log.topics import read_group_records, replay_groups, topic_names
from kwire.messages import registry

Committed = dict[tuple[str, str, int], int]


def committed_by_kafkas_dump(folder: Path, partition: str) -> Committed:
    """Return committed offsets by (group, topic, partition) from the output of kafka-dump-log."""
    committed: dict[tuple[str, str, int], tuple[int, int]] = {}
    pending: dict[int, list[tuple[tuple[str, str, int], int, int]]] = {}
    for line in dumped(folder, partition):
        if line.marker is not None:
            for place, offset, at in pending.pop(line.producer_id, []):
                if line.marker == "COMMIT" and (place not in committed or committed[place][1] < at):
                    committed[place] = (offset, at)
        elif line.key is not None and line.key["type"] == "1":
            key = line.key["data"]
            place = (key["group"], key["topic"], key["partition"])
            if line.deleted:
                committed.pop(place, None)
            elif line.payload is not None and line.transactional:
                pending.setdefault(line.producer_id, []).append((place, line.payload["data"]["offset"], line.offset))
            elif line.payload is not None:
                committed[place] = (line.payload["data"]["offset"], line.offset)
    return {place: offset for place, (offset, _) in committed.items()}


def committed(state: GroupsState) -> Committed:
    return {
        (group.group_id, topic, number): each.offset
        for group in state.groups.values()
        for (topic, number), each in group.offsets.items()
    }


@pytest.mark.parametrize(("archive", "count"), [("modern", 11), ("modern44", 8)])
def test_committed_offsets_equal_those_of_kafkas_dump(archive: str, count: int, kafka_logs: dict[str, Path]) -> None:
    directory = LogDirectory(kafka_logs[archive] / "data")
    expected: Committed = {}
    for partition in range(3):
        expected |= committed_by_kafkas_dump(kafka_logs[archive], f"__consumer_offsets-{partition}")
    state = replay_groups(directory)
    assert committed(state) == expected
    assert len(expected) == count
    assert not any(group.pending_offsets for group in state.groups.values())
    assert state.problems.count == 0


def test_commits_of_old_consumers_are_read(kafka_logs: dict[str, Path]) -> None:
    """Committed to 2.8.2 by clients 0.9 and 0.10; Kafka's dump of these files has the offsets."""
    state = replay_groups(LogDirectory(kafka_logs["legacy"] / "data"))
    offsets = {"v0": [121, 355, 261, 247, 122], "v1": [0, 0, 146, 232, 122]}
    assert {(topic, number): offset for (_, topic, number), offset in committed(state).items()} == {
        (topic, number): offset for topic, each in offsets.items() for number, offset in enumerate(each)
    }
    assert {name: (group.epoch, group.state) for name, group in state.groups.items()} == {
        "old-group-09": (2, "Empty"),
        "old-group-010": (2, "Empty"),
    }


def test_groups_of_every_type_are_read(kafka_logs: dict[str, Path]) -> None:
    modern = replay_groups(LogDirectory(kafka_logs["modern"] / "data")).groups
    assert {name: (group.kind, group.state, len(group.members)) for name, group in modern.items()} == {
        "g-admin": ("classic", "Empty", 0),
        "g-classic": ("classic", "Empty", 0),
        "g-new": ("consumer", "Empty", 0),
        "g-static": ("classic", "Stable", 1),
        "tx-group": ("classic", "Empty", 0),
        "tx-group2": ("classic", "Empty", 0),
    }  # g-gone was deleted
    (static,) = modern["g-static"].members.values()
    assert (static.instance_id, static.client_id, static.client_host) == ("g-inst-1", "s1", "/127.0.0.1")
    assert static.subscribed_topics == ("orders",)
    assert [(each.topic, each.partitions) for each in static.assigned] == [("orders", (0, 1, 2))]
    assert (static.session_timeout_ms, static.rebalance_timeout_ms) == (45000, 300000)
    assert modern["g-static"].offsets["orders", 1].metadata == "note é 11"
    newer = replay_groups(LogDirectory(kafka_logs["modern44"] / "data")).groups
    share = newer["share44"]
    assert (share.kind, share.state, share.epoch, share.assignment_epoch) == ("share", "Empty", 4, 4)
    assert [each.partitions for each in share.share_partitions["initialized"]] == [(0, 1)]
    assert set(share.topic_names.values()) == {"events44"}


def test_a_group_at_an_offset_has_its_earlier_state(kafka_logs: dict[str, Path]) -> None:
    """g-new (KIP-848) while it rebalances: offsets 34 to 48 of partition 1, as Kafka's dump shows them."""
    directory = LogDirectory(kafka_logs["modern"] / "data")

    def at(offset: int) -> Any:
        return replay_groups(directory, groups={"g-new"}, at_offset=offset).groups.get("g-new")

    assert at(34) is None
    assert (at(37).epoch, at(37).assignment_epoch, at(37).state) == (1, -1, "Assigning")
    alone = at(40)
    assert (alone.state, alone.epoch, alone.assignment_epoch) == ("Stable", 1, 1)
    assert [each.partitions for each in alone.members["Xh9ftK4SQ1yvlMcMsRVFZQ"].assigned] == [(0, 1, 2)]
    two = at(48)
    assert (two.state, two.epoch) == ("Reconciling", 2)
    first = two.members["Xh9ftK4SQ1yvlMcMsRVFZQ"]
    assert [each.partitions for each in first.revoking] == [(0,)]
    assert [each.partitions for each in first.target or ()] == [(1, 2)]
    assert first.state_name == "UnrevokedPartitions"
    assert two.members["CgR-Jv-yRdya8HM3mutUYQ"].assigned == ()
    # the same moment by its time
    timed = replay_groups(directory, at_time=1795235288077).groups["g-new"]
    assert timed.members["CgR-Jv-yRdya8HM3mutUYQ"].previous_epoch == 2


def test_lag_is_relative_to_the_log_ends_in_the_directory(kafka_logs: dict[str, Path]) -> None:
    directory = LogDirectory(kafka_logs["modern"] / "data")
    group = replay_groups(directory).groups["g-static"]
    rows = list(offset_rows(group, LogEnds(directory), topic_names(directory)))
    assert [(row["partition"], row["offset"], row["log_end_offset"], row["lag"]) for row in rows] == [
        (0, 844, 7015, 6171),
        (1, 356, 6897, 6541),
        (2, None, 6089, None),  # assigned, and nothing committed yet
    ]
    assert {row["client_id"] for row in rows} == {"s1"}
    assert group_row(group, LogEnds(directory))["lag"] == 6171 + 6541
    assert group_row(group, LogEnds(None))["lag"] is None


def test_topic_ids_are_resolved_to_names_of_the_directory(kafka_logs: dict[str, Path]) -> None:
    directory = LogDirectory(kafka_logs["modern"] / "data")
    names = topic_names(directory)
    assert names == {log.topic_id: topic for (topic, _), log in directory.items() if log.topic_id} | names
    group = replay_groups(directory, at_offset=60).groups["g-new"]
    rows = {row["member_id"]: row for row in member_rows(group, names)}
    assert [each["topic"] for each in rows["Xh9ftK4SQ1yvlMcMsRVFZQ"]["assigned"]] == ["orders"]


@pytest.mark.parametrize(("archive", "count"), [("modern", 4), ("modern44", 5)])
def test_compaction_changes_nothing(archive: str, count: int, kafka_logs: dict[str, Path]) -> None:
    """The last record of each key in log order, which is rarely the order in which a group was created."""
    records = list(read_group_records(LogDirectory(kafka_logs[archive] / "data")))
    for end in range(1, len(records) + 1, 7):
        whole, compacted = GroupsState(), GroupsState()
        plain = [each for each in records[:end] if not each.is_transactional]
        last = {(each.partition, each.raw_key): each.offset for each in plain}
        for each in plain:
            whole.apply(each)
            if last[each.partition, each.raw_key] == each.offset:
                compacted.apply(each)
        assert compacted.groups == whole.groups, end
    assert len(whole.groups) == count


# ---- by hand


def commit(offset: int | None, partition: int = 0) -> tuple[bytes, bytes | None]:
    cls: Any = registry.get("OffsetCommitKey")
    value: Any = registry.get("OffsetCommitValue")
    return keyed(cls(group="g", topic="t", partition=partition), None if offset is None else value(offset=offset), 3)


def message(name: str, /, value: bool = True, **fields: Any) -> tuple[bytes, bytes | None]:
    """Return a group record: key_NAME is a field of the key, other names of the value; value=False is a tombstone."""
    own = {key.removeprefix("key_"): item for key, item in fields.items() if key.startswith("key_")}
    rest = {key: item for key, item in fields.items() if not key.startswith("key_")}
    key: Any = registry.get(f"{name}Key")(**{"group_id": "g"} | own)
    made: Any = registry.get(f"{name}Value")(**rest) if value else None
    return keyed(key, made)


def groups_of(data: Path, *batches: bytes) -> GroupsState:
    return replay_groups(LogDirectory(log_of(data, "__consumer_offsets-0", *batches)))


IN_TRANSACTION = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}


def test_offsets_of_a_transaction_count_when_it_commits(tmp_path: Path) -> None:
    first = batch([commit(1)], 0)
    inside = batch([commit(5), commit(6, 1)], 1, **IN_TRANSACTION)
    open_one = groups_of(tmp_path / "open", first, inside).groups["g"]
    assert {place: each.offset for place, each in open_one.offsets.items()} == {("t", 0): 1}
    assert {place: each.offset for place, each in open_one.pending_offsets.items()} == {(7, "t", 0): 5, (7, "t", 1): 6}
    pending = [row for row in offset_rows(open_one, LogEnds(None), {}) if row["in_transaction"]]
    assert [(row["partition"], row["offset"], row["producer_id"]) for row in pending] == [(0, 5, 7), (1, 6, 7)]
    for commits, expected in ((True, {("t", 0): 5, ("t", 1): 6}), (False, {("t", 0): 1})):
        group = groups_of(tmp_path / str(commits), first, inside, marker(3, 7, commit=commits)).groups["g"]
        assert {place: each.offset for place, each in group.offsets.items()} == expected
        assert not group.pending_offsets


def test_a_plain_commit_after_a_transactional_one_is_kept(tmp_path: Path) -> None:
    state = groups_of(
        tmp_path, batch([commit(5)], 0, **IN_TRANSACTION), batch([commit(9)], 1), marker(2, 7, commit=True)
    )
    assert committed(state) == {("g", "t", 0): 9}


def test_the_marker_of_another_producer_changes_nothing(tmp_path: Path) -> None:
    state = groups_of(tmp_path, batch([commit(5)], 0, **IN_TRANSACTION), marker(1, 8, commit=True))
    assert committed(state) == {}
    assert len(state.groups["g"].pending_offsets) == 1


def test_a_tombstone_removes_pending_offsets_and_the_empty_group(tmp_path: Path) -> None:
    inside = batch([commit(5)], 0, **IN_TRANSACTION)
    assert groups_of(tmp_path / "a", inside, batch([commit(None)], 1)).groups == {}
    assert groups_of(tmp_path / "b", inside, marker(1, 7, commit=False)).groups == {}
    assert groups_of(tmp_path / "c", batch([commit(None)], 0)).groups == {}


def test_a_group_keeps_its_offsets_after_its_record_is_deleted(tmp_path: Path) -> None:
    alive = keyed(_group_key(), registry.get("GroupMetadataValue")(protocol_type="consumer", generation=3))  # type: ignore[call-arg]
    group = groups_of(tmp_path, batch([alive, commit(4), keyed(_group_key(), None)], 0)).groups["g"]
    assert (group.epoch, group.protocol_type, group.offsets["t", 0].offset) == (-1, "", 4)


def _group_key() -> Any:
    return registry.get("GroupMetadataKey")(group="g")  # type: ignore[call-arg]


def test_connect_groups_keep_their_members_bytes(tmp_path: Path) -> None:
    value: Any = registry.get("GroupMetadataValue")
    member = value.MemberMetadata(member_id="m", client_id="c", subscription=b"\0\1", assignment=b"\0\2worker")
    record = keyed(_group_key(), value(protocol_type="connect", protocol="sessioned", generation=1, members=[member]))
    (found,) = groups_of(tmp_path, batch([record], 0)).groups["g"].members.values()
    assert (found.subscription, found.assignment, found.assigned) == (b"\0\1", b"\0\2worker", ())


def test_an_unknown_subscription_version_is_read_as_the_latest_known(tmp_path: Path) -> None:
    value: Any = registry.get("GroupMetadataValue")
    subscription: Any = registry.get("ConsumerProtocolSubscription")(topics=["t"], rack_id="r")  # type: ignore[call-arg]
    latest = subscription.VALID_VERSIONS.highest
    later = (latest + 1).to_bytes(2, "big") + subscription.encode(version=latest) + b"what comes later"
    member = value.MemberMetadata(member_id="m", subscription=later, assignment=b"")
    record = keyed(_group_key(), value(protocol_type="consumer", members=[member]))
    (found,) = groups_of(tmp_path, batch([record], 0)).groups["g"].members.values()
    assert (found.subscribed_topics, found.rack_id, found.assigned) == (("t",), "r", ())


def test_a_streams_group_has_tasks_a_topology_and_states(tmp_path: Path) -> None:
    current: Any = registry.get("StreamsGroupCurrentMemberAssignmentValue")
    topology: Any = registry.get("StreamsGroupTopologyValue")
    records = [
        message("StreamsGroupMemberMetadata", key_member_id="m", client_id="c", process_id="p", topology_epoch=1),
        message("StreamsGroupMetadata", epoch=2),
        message("StreamsGroupTopology", epoch=1, subtopologies=[topology.Subtopology(subtopology_id="s")]),
        message("StreamsGroupTargetAssignmentMetadata", assignment_epoch=2),
        message(
            "StreamsGroupCurrentMemberAssignment",
            key_member_id="m",
            member_epoch=2,
            active_tasks=[current.TaskIds(subtopology_id="s", partitions=[0, 1])],
            warmup_tasks=[current.TaskIds(subtopology_id="s", partitions=[2])],
        ),
    ]
    group = groups_of(tmp_path / "a", batch(records, 0)).groups["g"]
    assert (group.kind, group.state, group.topology.epoch) == ("streams", "Stable", 1)
    assert group.members["m"].active_tasks == {"s": (0, 1)}
    (row,) = member_rows(group, {})
    assert row["warmup_tasks"] == [{"subtopology": "s", "partitions": [2]}]
    gone = [
        message("StreamsGroupCurrentMemberAssignment", value=False, key_member_id="m"),
        message("StreamsGroupMemberMetadata", value=False, key_member_id="m"),
        message("StreamsGroupMetadata", value=False),
    ]
    assert groups_of(tmp_path / "b", batch(records, 0), batch(gone, 5)).groups == {}


def test_a_regex_subscription_is_resolved_to_topics(tmp_path: Path) -> None:
    state = groups_of(
        tmp_path,
        batch(
            [
                message("ConsumerGroupMetadata", epoch=1),
                message("ConsumerGroupRegularExpression", key_regular_expression="or.*", topics=["orders"], version=3),
                message("ConsumerGroupRegularExpression", key_regular_expression="x", topics=["x"]),
                message("ConsumerGroupRegularExpression", value=False, key_regular_expression="x"),
            ],
            0,
        ),
    )
    assert state.groups["g"].regexes["or.*"].topics == {"orders"}


def test_a_classic_group_becomes_a_consumer_group(tmp_path: Path) -> None:
    """The coordinator deletes the classic record and writes the new ones; offsets stay."""
    classic = keyed(_group_key(), registry.get("GroupMetadataValue")(protocol_type="consumer", generation=3))  # type: ignore[call-arg]
    topic_id = UUID(int=5)
    current: Any = registry.get("ConsumerGroupCurrentMemberAssignmentValue")
    records = [
        classic,
        commit(4),
        keyed(_group_key(), None),
        message("ConsumerGroupMemberMetadata", key_member_id="m", client_id="c", subscribed_topic_names=["t"]),
        message("ConsumerGroupMetadata", epoch=3),
        message("ConsumerGroupTargetAssignmentMetadata", assignment_epoch=3),
        message(
            "ConsumerGroupCurrentMemberAssignment",
            key_member_id="m",
            member_epoch=3,
            assigned_partitions=[current.TopicPartitions(topic_id=topic_id, partitions=[0])],
        ),
    ]
    group = groups_of(tmp_path, batch(records, 0)).groups["g"]
    assert (group.kind, group.state, group.offsets["t", 0].offset) == ("consumer", "Stable", 4)
    (row,) = offset_rows(group, LogEnds(None), {topic_id: "t"})
    assert (row["member_id"], row["client_id"]) == ("m", "c")
    assert group.last_timestamp == NOW + 6000
