"""How ranges are divided among tasks."""

from __future__ import annotations

import pytest

from kwire.errors import OptionError
from kwire.spark.log.options import parse_options
from kwire.spark.offsets import OffsetRange
from kwire.spark.packing import (
    OPEN_COST_BYTES,
    RECORD_BYTES,
    SMALLEST_TASK_BYTES,
    TaskSizes,
    group_small,
    join_neighbours,
)

MIB = 1 << 20


def ranges(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange("t", partition, 10, 10 + size) for partition, size in enumerate(sizes)]


def test_a_task_gets_a_share_of_the_total_between_the_smallest_and_the_largest() -> None:
    sizes = TaskSizes()
    assert sizes.task_bytes(0, 0, SMALLEST_TASK_BYTES) == 32 * MIB
    assert sizes.task_bytes(100 * MIB, 1, SMALLEST_TASK_BYTES) == 32 * MIB  # idle cores get some of 100 MiB
    assert sizes.task_bytes(64 * 50 * MIB - 1000 * MIB, 1000, SMALLEST_TASK_BYTES) == 50 * MIB
    assert sizes.task_bytes(1 << 50, 1, SMALLEST_TASK_BYTES) == 128 * MIB
    assert TaskSizes(max_partition_bytes=MIB).task_bytes(1 << 50, 1, SMALLEST_TASK_BYTES) == MIB
    assert TaskSizes(open_cost_bytes=0).task_bytes(0, 5) == 1


def test_small_partitions_share_tasks_that_depend_on_offsets_only() -> None:
    many = ranges(*[736] * 10_000)
    tasks = TaskSizes().pack_offsets(many)
    assert [part for task in tasks for part in task] == many
    assert 64 <= len(tasks) <= 128
    assert all(sum(part.size * RECORD_BYTES + OPEN_COST_BYTES for part in task) <= 128 * MIB for task in tasks)
    assert TaskSizes().pack_offsets(many) == tasks
    assert len(TaskSizes(max_partition_bytes=10 * MIB).pack_offsets(many)) > 1000
    assert len(TaskSizes(open_cost_bytes=0).pack_offsets(many)) == 65


@pytest.mark.parametrize(("limit", "tasks"), [(9, [[4], [6], [10], [11], [1]]), (10, [[4, 6], [10], [11], [1]])])
def test_a_task_is_filled_to_its_limit_and_no_further(limit: int, tasks: list[list[int]]) -> None:
    assert group_small([4, 6, 10, 11, 1], lambda cost: cost, limit) == tasks
    assert group_small([3, 3, 3], lambda cost: cost, 9) == [[3, 3, 3]]
    assert group_small([3, 3, 3], lambda cost: cost, 8) == [[3, 3], [3]]
    assert group_small([0, 0], lambda cost: cost, 0) == [[0, 0]]


@pytest.mark.parametrize(("more", "tasks"), [(-1, 1), (0, 1), (1, 2)])
def test_offsets_of_exactly_the_limit_are_one_task(more: int, tasks: int) -> None:
    sizes = TaskSizes(max_partition_bytes=20 * RECORD_BYTES, open_cost_bytes=RECORD_BYTES)
    many = ranges(*[10_000] * 64, 9, 9 + more)  # the last two count as 10 records each, and `more`
    assert len(sizes.pack_offsets(many)) == 64 + tasks


def test_a_long_range_is_a_task_of_its_own() -> None:
    long = 10_000_000
    tasks = TaskSizes().pack_offsets(ranges(5, long, 5, 5), SMALLEST_TASK_BYTES)
    assert [[part.size for part in task] for task in tasks] == [[5], [long], [5, 5]]


def test_neighbours_of_one_partition_become_one_range() -> None:
    parts = [
        OffsetRange("t", 0, 0, 5),
        OffsetRange("t", 0, 5, 9),
        OffsetRange("t", 1, 9, 10),
        OffsetRange("t", 1, 11, 12),
    ]
    assert join_neighbours(parts) == [OffsetRange("t", 0, 0, 9), *parts[2:]]


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("1024", 1024), ("128m", 128 * MIB), ("1 GB", 1 << 30), ("2KiB", 2048)]
)
def test_sizes_are_given_as_in_sparks_configurations(text: str, size: int) -> None:
    options = parse_options({"path": "/", "openCostInBytes": text, "maxPartitionBytes": text})
    assert options.task_sizes == TaskSizes(max_partition_bytes=size or None, open_cost_bytes=size)


@pytest.mark.parametrize("text", ["", "-1", "1.5m", "m", "9999999999t", "١k"])
def test_other_sizes_are_rejected(text: str) -> None:
    with pytest.raises(OptionError, match=r"Option 'maxPartitionBytes': expected a number of bytes such as 134217728"):
        parse_options({"path": "/", "maxPartitionBytes": text})
