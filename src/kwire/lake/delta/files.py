"""The data files of a Delta table. Tables with deletion vectors are refused: delta-rs cannot read them into Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kwire.lake.live_files import LiveFile
from kwire.lake.offset_ranges import Spans

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow.dataset import Expression

__all__ = ["live_files"]

MAX_TERMS = 16  # of a filter: more partitions are not told apart


def live_files(table: DeltaTable, wanted: Spans | None) -> list[LiveFile]:
    """Return the data files of a table. wanted: only those that may have such offsets. Raises delta-rs' errors."""
    dataset = table.to_pyarrow_dataset()
    actions = pa.table(table.get_add_actions()).to_pylist()
    facts = {action["path"]: action for action in actions}
    found = []
    for fragment in dataset.get_fragments(filter=None if wanted is None else _filter(wanted)):
        action = facts[fragment.path]
        partition = action.get("partition") or {}
        found.append(
            LiveFile(
                path=fragment.path,
                size_bytes=action["size_bytes"],
                rows=action["num_records"] or 0,
                partition=tuple(sorted(partition.items())),
                deletes=frozenset(),
                entry=fragment,
            )
        )
    return found


def _filter(wanted: Spans) -> Expression:
    import pyarrow.compute as pc

    topic, partition, offset = (pc.field(name) for name in ("topic", "partition", "offset"))
    if len(wanted) > MAX_TERMS:
        return topic.isin(sorted({name for name, _ in wanted}))
    found = pc.scalar(False)
    for (name, number), ranges in wanted.items():
        found |= (topic == name) & (partition == number) & (offset >= ranges[0][0]) & (offset < ranges[-1][1])
    return found
