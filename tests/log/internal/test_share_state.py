"""Delivery state of share groups, replayed from `__share_group_state`."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from tests.log.internal.dumps import batch, dumped, keyed, log_of

from kwire.internal_topics.group_rows import LogEnds, share_row
from kwire.internal_topics.share_state import DeliveredRange, merge_ranges
from kwire.log import LogDirectory
from kwire.log.topics import replay_groups, replay_share_state, topic_names
from kwire.messages import registry


def test_updates_sum_to_kafkas_delivery_counts(kafka_logs: dict[str, Path]) -> None:
    """Every update stores the number of completed records from the start offset, which must equal the merged ranges.

    The ranges are ours, the count (deliveryCompleteCount, KIP-1226) is the broker's own.
    """
    directory = LogDirectory(kafka_logs["modern44"] / "data")
    compared = 0
    for partition in range(3):
        log = directory["__share_group_state", partition]
        for line in dumped(kafka_logs["modern44"], f"__share_group_state-{partition}"):
            (share,) = replay_share_state(log, at_offset=line.offset + 1).partitions.values()
            assert line.payload is not None
            reported = line.payload["data"]
            if "deliveryCompleteCount" in reported:
                done = sum(
                    each.last_offset - each.first_offset + 1 for each in share.ranges if each.delivery_state in (2, 4)
                )
                assert (share.start_offset, done) == (reported["startOffset"], reported["deliveryCompleteCount"])
                compared += 1
    assert compared > 10


def test_a_share_partition_is_one_row(kafka_logs: dict[str, Path]) -> None:
    directory = LogDirectory(kafka_logs["modern44"] / "data")
    assert replay_groups(directory).groups["share44"].kind == "share"
    shares = replay_share_state(directory).partitions.values()
    rows = [share_row(each, LogEnds(directory), topic_names(directory)) for each in shares]
    assert [(row["group"], row["topic"], row["partition"]) for row in rows] == [
        ("share44", "events44", 0),
        ("share44", "events44", 1),
    ]
    for row in rows:
        assert row["lag"] == row["log_end_offset"] - row["start_offset"] - row["delivery_complete_count"]
    assert {each["state"] for each in rows[0]["ranges"]} <= {"Available", "Acknowledged", "Archived"}


KEY = {"group_id": "g", "topic_id": UUID(int=1), "partition": 0}


def snapshot(*ranges: tuple[int, int, int, int], **fields: Any) -> tuple[bytes, bytes | None]:
    return _record("ShareSnapshot", ranges, fields)


def update(*ranges: tuple[int, int, int, int], **fields: Any) -> tuple[bytes, bytes | None]:
    return _record("ShareUpdate", ranges, {"start_offset": -1, "leader_epoch": -1} | fields)


def _record(name: str, ranges: tuple, fields: dict[str, Any]) -> tuple[bytes, bytes | None]:
    key: Any = registry.get(f"{name}Key")(**KEY)
    cls: Any = registry.get(f"{name}Value")
    batches = [
        cls.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in ranges
    ]
    return keyed(key, cls(state_batches=batches, **fields))


def test_a_snapshot_replaces_the_state_and_an_update_extends_it(tmp_path: Path) -> None:
    records = [
        snapshot((0, 9, 0, 1), start_offset=0, state_epoch=1, leader_epoch=4),
        update((3, 5, 2, 1)),
        update((0, 1, 2, 1), start_offset=2),
        snapshot((8, 9, 4, 5), start_offset=8, snapshot_epoch=1),
        keyed(registry.get("ShareSnapshotKey")(**KEY), None),  # type: ignore[arg-type]
        update((1, 1, 1, 1)),
    ]

    def at(count: int) -> Any:
        data = log_of(tmp_path / str(count), "__share_group_state-0", batch(records[:count], 0))
        return next(iter(replay_share_state(LogDirectory(data)).partitions.values()), None)

    assert at(2).ranges == ((0, 2, 0, 1), (3, 5, 2, 1), (6, 9, 0, 1))
    assert (at(2).leader_epoch, at(2).state_epoch) == (4, 1)
    assert (at(3).start_offset, at(3).ranges) == (2, ((2, 2, 0, 1), (3, 5, 2, 1), (6, 9, 0, 1)))
    assert (at(4).snapshot_epoch, at(4).ranges) == (1, ((8, 9, 4, 5),))
    assert at(5) is None
    assert at(6) is None  # an update without a snapshot


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 8), st.sampled_from([0, 2, 4]), st.integers(1, 3)), max_size=12
    ),
    st.integers(-1, 20),
    st.randoms(use_true_random=False),
)
def test_merging_takes_the_maximum_per_offset_in_any_order(
    drawn: list[tuple[int, int, int, int]], start: int, chance: random.Random
) -> None:
    ranges = [DeliveredRange(first, first + length, state, count) for first, length, state, count in drawn]
    expected: dict[int, tuple[int, int]] = {}
    for each in ranges:
        for offset in range(max(each.first_offset, start), each.last_offset + 1):
            expected[offset] = max(expected.get(offset, (0, 0)), (each.delivery_count, each.delivery_state))
    merged = merge_ranges(ranges, start)
    assert {
        offset: (each.delivery_count, each.delivery_state)
        for each in merged
        for offset in range(each.first_offset, each.last_offset + 1)
    } == expected
    for before, behind in itertools.pairwise(merged):
        assert before.last_offset < behind.first_offset
        assert before[2:] != behind[2:] or before.last_offset + 1 < behind.first_offset  # neighbours alike are one
    chance.shuffle(ranges)
    assert merge_ranges(ranges, start) == merged
