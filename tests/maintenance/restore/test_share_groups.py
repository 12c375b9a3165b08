"""Share groups after a cut: no record is skipped that was not acknowledged below it, and states agree with the logs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kwire.broker import Broker
from kwire.identifiers import parse_uuid
from kwire.internal_topics.coordinator_records import decode_share_state
from kwire.internal_topics.groups_state import Group
from kwire.internal_topics.names import GROUPS_TOPIC, SHARE_STATE_TOPIC
from kwire.internal_topics.share_state import ShareState
from kwire.log import LogDirectory
from kwire.log.topics import replay_groups
from kwire.log.topics.history import read_history
from kwire.maintenance.restore import AtOffsets, AtTime, RestorePoint, RestoreResult, restore_directory
from tests.broker.shares.harness import EARLIEST, SETTINGS, Member, acquired, configure, create, produce
from tests.broker.wire import RawClient

ACCEPT, RELEASE = 1, 2
ONE: dict[str, Any] = {
    **SETTINGS,
    "share_coordinator_state_topic_num_partitions": 1,
    "offsets_topic_num_partitions": 1,
    "share_coordinator_state_topic_prune_interval_ms": 3000,
    "share_coordinator_cold_partition_snapshot_interval_ms": 3000,
}
STATES, GROUPS, LOG = (SHARE_STATE_TOPIC, 0), (GROUPS_TOPIC, 0), ("t", 0)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A directory, read only; moments with the offsets that were acknowledged, and the ends of the logs then."""
    data = tmp_path_factory.mktemp("shares") / "data"
    seen: dict[str, Any] = {"data": data}
    with Broker(data, **ONE) as broker, RawClient(broker) as client:

        def moment(name: str) -> None:
            now_ms = broker.call(lambda node: node.clock.now_ms())
            places = {key: broker.call(lambda node, key=key: end_of(node, key)) for key in (STATES, GROUPS, LOG)}
            seen[name] = AtTime(time_ms=now_ms), places
            broker.advance(10)

        configure(client, "g", EARLIEST)
        seen["topic"] = topic_id = create(client, "t")
        produce(client, "t", 5)
        produce(client, "t", 5)
        member = Member(client, "g", "t", topic_id)
        member.heartbeat()
        moment("initialized")
        member.heartbeat()
        member.fetch()
        moment("fetched")
        member.acknowledge([(0, 1, [ACCEPT]), (2, 2, [RELEASE])])
        moment("first")
        member.acknowledge([(3, 4, [ACCEPT]), (6, 9, [ACCEPT])])
        moment("second")
        broker.advance(4000)  # snapshots of all states; what is below them is deleted
        moment("pruned")
        member.heartbeat(-1)
    return seen


def end_of(node: Any, key: tuple[str, int]) -> int:
    topic = node.topics.get(key[0])
    return 0 if topic is None else int(topic.partitions[key[1]].opened.log_end_offset)


def cut(source: dict[str, Any], target: Path, point: RestorePoint) -> RestoreResult:
    result = restore_directory(str(source["data"]), str(target), point, now_ms=2_000_000_000_000)
    check(target)
    return result


def states_in(directory: Path) -> ShareState:
    state = ShareState()
    for record in read_history(LogDirectory(directory)[STATES], decode_share_state):
        state.apply(record)
    return state


def check(directory: Path) -> None:
    """Check that all states are inside of their logs, and that groups list exactly the partitions with a state."""
    logs = LogDirectory(directory)
    ends = {(log.topic_id, log.partition): log.log_end_offset for log in logs.values()}
    listed = set()
    groups: dict[str, Group] = replay_groups(logs).groups
    for name, group in groups.items():
        for each in group.share_partitions.get("initialized", ()):
            listed |= {(name, each.topic_id, index) for index in each.partitions}
    state = states_in(directory)
    assert state.partitions.keys() == listed
    for key, each in state.partitions.items():
        end = ends[key[1:]]
        assert each.start_offset <= end
        assert all(done.last_offset < end for done in each.ranges)
        assert groups[key[0]].epoch >= each.state_epoch


def delivered(directory: Path, topic_id: UUID, more: int = 0) -> list[tuple[int, int, int]]:
    """Return what a new member gets after a start of the broker. more: records that are written first."""
    with Broker(directory, **ONE) as broker, RawClient(broker) as client:
        if more:
            produce(client, "t", more)
        member = Member(client, "g", "t", topic_id, "new").join()
        got = acquired(member.fetch())
        while more_got := acquired(member.fetch()):
            got += more_got
        return got


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("first", [(2, 2, 2), (3, 4, 1), (5, 9, 1)]),
        ("second", [(2, 2, 2), (5, 5, 1)]),
    ],
)
def test_what_was_not_acknowledged_at_the_moment_is_delivered(
    name: str, expected: list[tuple[int, int, int]], source: dict[str, Any], tmp_path: Path
) -> None:
    point, _ = source[name]
    unpruned = {**source, "data": without_log_start(source["data"], tmp_path / "copy")}
    result = cut(unpruned, tmp_path / "new", point)
    assert (result.warnings, result.share_offsets) == ([], [])
    got = delivered(tmp_path / "new", source["topic"])
    assert {offset for first, last, _ in got for offset in range(first, last + 1)} == {
        offset for first, last, _ in expected for offset in range(first, last + 1)
    }
    assert (2, 2, 2) in got


def without_log_start(data: Path, copy: Path) -> Path:
    """Copy a directory without its log start offsets: it has what was deleted, as a copy that has followed."""
    shutil.copytree(data, copy)
    (copy / "log-start-offset-checkpoint").unlink()
    return copy


def test_records_that_are_written_after_the_cut_are_delivered(source: dict[str, Any], tmp_path: Path) -> None:
    """Offsets that were acknowledged before the loss are given to other records."""
    result = cut(source, tmp_path / "new", AtOffsets(offsets={LOG: 5}))
    assert [(each.offset, each.new_offset) for each in result.share_offsets] == [(10, 5)]
    assert delivered(tmp_path / "new", source["topic"], more=5) == [(2, 2, 2), (5, 9, 1)]


def test_a_group_that_had_acknowledged_nothing_begins_where_it_had_begun(
    source: dict[str, Any], tmp_path: Path
) -> None:
    """Kafka has not written the offset yet; the default would be the end of the log at the first fetch."""
    unpruned = {**source, "data": without_log_start(source["data"], tmp_path / "copy")}
    for name in ("initialized", "fetched"):
        cut(unpruned, tmp_path / name, source[name][0])
        (stored,) = states_in(tmp_path / name).partitions.values()
        assert stored.start_offset == 0


def test_a_state_that_snapshots_have_replaced_begins_at_the_log_start(source: dict[str, Any], tmp_path: Path) -> None:
    point, _ = source["first"]
    result = cut(source, tmp_path / "new", point)
    (warning,) = result.warnings
    what = "share group g: the state of partition t-0 at the cut is gone; it is delivered from offset 0 on"
    assert warning == what
    got = delivered(tmp_path / "new", source["topic"])
    assert got == [(0, 9, 1)]


def test_states_and_groups_that_were_cut_elsewhere_agree(source: dict[str, Any], tmp_path: Path) -> None:
    unpruned = {**source, "data": without_log_start(source["data"], tmp_path / "copy")}
    _, at_start = source["initialized"]
    groups = range(at_start[GROUPS] + 1)
    states = range(source["second"][1][STATES] + 1)
    for number, offsets in enumerate([{GROUPS: at} for at in groups] + [{STATES: at} for at in states]):
        target = tmp_path / f"new-{number}"
        cut(unpruned, target, AtOffsets(offsets=offsets))
        if GROUPS in offsets:
            (stored,) = states_in(target).partitions.values()
            assert stored.start_offset == 2
            assert [tuple(each) for each in stored.ranges] == [(2, 2, 0, 1), (3, 4, 2, 1), (5, 5, 0, 1), (6, 9, 2, 1)]


def test_states_of_topics_that_do_not_exist_are_deleted(source: dict[str, Any], tmp_path: Path) -> None:
    copy = without_log_start(source["data"], tmp_path / "copy")
    shutil.rmtree(copy / "t-0")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (copy / name).unlink()
    result = cut({**source, "data": copy}, tmp_path / "new", AtOffsets(offsets={}))
    assert [each.new_offset for each in result.share_offsets] == [None]
    assert not states_in(tmp_path / "new").partitions
    assert parse_uuid(result.share_offsets[0].topic) == source["topic"]
