"""How much one task reads: small ranges share tasks up to a size, large ones are divided.

A task costs Spark 5 to 20 ms, so 10,000 small partitions in a task each take minutes. Like Spark's file sources, a task
gets at most

    min(maxPartitionBytes, max(smallest task, total / CORES))

where each range counts as its bytes and openCostInBytes, and the total is that of all ranges. Spark divides by the
cores of the cluster, so that small data is spread over all of them. CORES is a constant here: a micro-batch that runs
again after a restart must give its sink the same rows in the same tasks, and the cluster may have another size by then.
(A Python source is not told the size anyway.) For the same reason the bytes of a micro-batch are estimated from its
offsets with a constant: compaction and retention change the sizes of files.
Source: FilePartition.maxSplitBytes, FilePartition.getFilePartitions. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from kwire.spark.offsets import OffsetRange

__all__ = [
    "CORES",
    "OPEN_COST_BYTES",
    "RECORD_BYTES",
    "SMALLEST_TASK_BYTES",
    "TaskSizes",
    "group_small",
    "join_neighbours",
]

MAX_PARTITION_BYTES: Final = 128 << 20
OPEN_COST_BYTES: Final = 1 << 20
CORES: Final = 64
SMALLEST_TASK_BYTES: Final = 32 << 20
"""Of a source whose tasks are short: dividing 32 MiB, a tenth of a second, gains less than the tasks cost."""
RECORD_BYTES: Final = 256
"""Estimated size of a record where only offsets may decide."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskSizes:
    """The options that bound tasks by size; None if not set."""

    max_partition_bytes: int | None = None
    open_cost_bytes: int | None = None

    @property
    def is_set(self) -> bool:
        """Whether the user has set one of the options."""
        return self.max_partition_bytes is not None or self.open_cost_bytes is not None

    @property
    def open_cost(self) -> int:
        """Bytes that could be read in the time that opening a range takes."""
        return OPEN_COST_BYTES if self.open_cost_bytes is None else self.open_cost_bytes

    def task_bytes(self, n_bytes: int, ranges: int, smallest: int = 0) -> int:
        """Return the size of a task. n_bytes, ranges: of the whole query. smallest: without maxPartitionBytes."""
        most = MAX_PARTITION_BYTES if self.max_partition_bytes is None else self.max_partition_bytes
        share = (n_bytes + ranges * self.open_cost) // CORES
        return max(1, min(most, max(smallest, self.open_cost, share)))

    def pack_offsets(self, parts: Sequence[OffsetRange], smallest: int = 0) -> list[list[OffsetRange]]:
        """Group ranges into tasks by their offsets alone, in their order."""
        limit = self.task_bytes(sum(part.size for part in parts) * RECORD_BYTES, len(parts), smallest)
        tasks = group_small(parts, lambda part: part.size * RECORD_BYTES + self.open_cost, limit)
        return [join_neighbours(task) for task in tasks]


def group_small(items: Iterable[T], cost: Callable[[T], int], limit: int) -> list[list[T]]:
    """Group neighbouring items into tasks of at most `limit`; an item above it is a task of its own."""
    tasks: list[list[T]] = []
    remaining = 0
    for item in items:
        used = cost(item)
        remaining -= used
        if tasks and remaining >= 0:
            tasks[-1].append(item)
        else:
            tasks.append([item])
            remaining = limit - used
    return tasks


def join_neighbours(parts: Iterable[OffsetRange]) -> list[OffsetRange]:
    """Join consecutive parts of the same partition."""
    joined: list[OffsetRange] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last is not None and (last.topic, last.partition, last.end) == (part.topic, part.partition, part.start):
            joined[-1] = OffsetRange(part.topic, part.partition, last.start, part.end)
        else:
            joined.append(part)
    return joined
