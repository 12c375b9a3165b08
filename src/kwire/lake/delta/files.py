"""The data files of a Delta table. Tables with deletion vectors are refused: delta-rs cannot read them into Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from kwire.lake.live_files import LiveFile
from kwire.lake.offset_ranges import Spans

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyarrow.dataset import Expression, Fragment

__all__ = ["DeltaFile", "live_files"]

MAX_TERMS = 16  # of a filter: more partitions are not told apart


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """values: of the partition, as Delta's log has them."""

    values: Mapping[str, str | None]
    fragment: Fragment

    def rows(self, schema: pa.Schema, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Return the rows. schema: of the table."""
        names = None if columns is None else list(columns)
        # by default Arrow keeps 16 batches of 131,072 rows ahead
        batches: Iterator[pa.RecordBatch] = self.fragment.to_batches(
            columns=names, schema=schema, use_threads=False, batch_readahead=1, batch_size=32_768
        )
        return batches


def live_files(table: DeltaTable, wanted: Spans | None) -> list[LiveFile]:
    """Return the data files of a table. wanted: only those that may have such offsets. Raises delta-rs' errors."""
    import pyarrow as pa

    from kwire.lake.delta.plan import partition_text

    dataset = table.to_pyarrow_dataset()
    facts = {unquote(action["path"]): action for action in pa.table(table.get_add_actions()).to_pylist()}
    files = []
    for fragment in dataset.get_fragments(filter=None if wanted is None else _filter(wanted)):
        action = facts[fragment.path]
        values = {name: partition_text(value) for name, value in (action.get("partition") or {}).items()}
        files.append(
            LiveFile(
                path=fragment.path,
                size_bytes=action["size_bytes"],
                rows=action["num_records"] or 0,
                partition=tuple(sorted(values.items())),
                deletes=frozenset(),
                entry=DeltaFile(values, fragment),
            )
        )
    return files


def _filter(wanted: Spans) -> Expression:
    import pyarrow.compute as pc

    topic, partition, offset = (pc.field(name) for name in ("topic", "partition", "offset"))
    if len(wanted) > MAX_TERMS:
        return topic.isin(sorted({name for name, _ in wanted}))
    any_range = pc.scalar(False)
    for (name, number), ranges in wanted.items():
        any_range |= (topic == name) & (partition == number) & (offset >= ranges[0][0]) & (offset < ranges[-1][1])
    return any_range
