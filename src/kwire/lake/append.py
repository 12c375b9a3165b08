"""Append logs to a table: from the offset that the table has of each partition to the end of the log.

Each partition is committed by itself, a large one in several commits. An interrupted run continues where the last
commit ended, and a run that meets another one fails without a row twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kwire.errors import TableError
from kwire.lake.data_files import write_files
from kwire.lake.state import Change
from kwire.lake.table import LakeTable, Layout

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.log.readable_log import ReadableLog

__all__ = ["Appended", "append_logs", "new_offsets"]

COMMIT_BYTES = 2 << 30  # Arrow memory of the rows of a commit, which are in memory only in part


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What was appended of a partition. offsets: from start_offset to end_offset, exclusive; equal without any."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    rows: int


def append_logs(
    table: LakeTable,
    logs: Sequence[ReadableLog],
    *,
    layout: Layout,
    isolation: Literal["read_uncommitted", "read_committed"] = "read_committed",
    headers: bool = False,
    commit_bytes: int = COMMIT_BYTES,
) -> Iterator[Appended]:
    """Append the records of logs; return a row for each partition as it is done.

    Raises LogError, CorruptBatch, BrokerError, ConnectionFailed for the logs; TableError, OptionError for the table.
    """
    from kwire.records.columns import COLUMNS

    columns = [name for name in COLUMNS if headers or name != "headers"]
    for log in logs:
        table.refresh()
        key = (log.topic, log.partition)
        start, end = new_offsets(table, log, isolation)
        first, rows = start, 0
        while start < end:
            reader = log.read_arrow(start, end, isolation, columns)
            plan = table.prepare(reader.schema, layout)
            limited = _Limited(reader, commit_bytes)
            written = write_files(limited, plan)
            until = limited.next_offset if limited.is_cut else end
            change = Change(id=uuid.uuid4().hex, spans={key: (start, until)}, continues=True)
            table.commit(written.files, change, plan)
            rows, start = rows + written.rows, until
        yield Appended(topic=key[0], partition=key[1], start_offset=first, end_offset=start, rows=rows)


def new_offsets(table: LakeTable, log: ReadableLog, isolation: str) -> tuple[int, int]:
    """Return the offsets [start, end) of a log that a table, as of its last refresh, does not have.

    Raises TableError for a log that ends before the table's offset.
    """
    key = (log.topic, log.partition)
    end = log.last_stable_offset if isolation == "read_committed" else log.log_end_offset
    known = table.end_offsets([key]).get(key, 0)
    if known > end:
        raise TableError(
            f"{log.topic}-{log.partition} ends at offset {end}, before the table's offset {known}; this is another "
            "log than the one that was appended",
            table.name,
        )
    return max(known, log.log_start_offset), end


class _Limited:
    """Batches up to a size. is_cut: whether there are more, from next_offset on."""

    def __init__(self, batches: pa.RecordBatchReader, max_bytes: int) -> None:
        self._batches, self._max_bytes = batches, max_bytes
        self.is_cut, self.next_offset = False, 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        size = 0
        for batch in self._batches:
            if size >= self._max_bytes:
                self.is_cut = True
                return
            if len(batch):
                self.next_offset = batch.column("offset")[-1].as_py() + 1
            size += batch.nbytes
            yield batch
