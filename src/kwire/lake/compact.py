"""Compact a table: rewrite its small files into fewer ones, in one commit.

Files are joined within a partition of the table and sorted as the table says. The commit is tried again when other
writers append meanwhile; if one of them has changed a file that was rewritten, nothing is committed. Rows, offsets and
micro-batches of the table stay what they were.
"""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kwire.errors import TableError
from kwire.lake.data_files import FilePlan, WrittenFile, write_files
from kwire.lake.live_files import LiveFile
from kwire.lake.state import Change
from kwire.lake.table import LakeTable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CompactedFiles", "compact_table", "small_files"]

SMALL = 0.75  # of the target's size: a larger file is left as it is, as in Iceberg's rewrite_data_files


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedFiles:
    """Files of a partition that were replaced by others. files_after, size_bytes_after: None in a dry run.

    partition: for people; empty if the table is not partitioned.
    """

    partition: str
    rows: int
    files: int
    size_bytes: int
    files_after: int | None = None
    size_bytes_after: int | None = None


def small_files(table: LakeTable, target_bytes: int) -> list[list[LiveFile]]:
    """Return the files to join, as of the table's last refresh: lists of one partition, of about the target's size.

    Files with rows that were deleted in files of their own are rewritten alone, too.
    """
    by_partition: dict[Hashable, list[LiveFile]] = {}
    for each in table.live_files():
        if each.size_bytes < SMALL * target_bytes or each.deletes:
            by_partition.setdefault(each.partition, []).append(each)
    groups = list[list[LiveFile]]()
    for files in by_partition.values():
        group, size = list[LiveFile](), 0
        for each in files:
            if group and size + each.size_bytes > target_bytes:
                groups.append(group)
                group, size = [], 0
            group.append(each)
            size += each.size_bytes
        groups.append(group)
    return [group for group in groups if len(group) > 1 or group[0].deletes]


def compact_table(
    table: LakeTable, *, target_bytes: int | None = None, dry_run: bool = False
) -> Iterator[CompactedFiles]:
    """Rewrite the small files of a table; return what becomes of each group as it is written, then commit.

    target_bytes: size of the new files, by default the table's. Nothing is committed if the iterator is not used up.
    Raises TableError; CommitRefused if another writer has changed one of the files.
    """
    table.refresh()
    plan: Any = table.plan()
    if target_bytes is not None:
        plan = replace(plan, target_bytes=target_bytes)
    removed, written = list[LiveFile](), list[WrittenFile]()
    try:
        for group in small_files(table, plan.target_bytes):
            compacted = _planned(group)
            if not dry_run:
                new = _rewritten(table, group, plan)
                if len(new) >= len(group) and not any(each.deletes for each in group):
                    table.discard(new, plan)  # such as sorted files, which have the size of the memory to sort
                    continue
                removed += group
                written += new
                compacted = replace(
                    compacted, files_after=len(new), size_bytes_after=sum(each.size_bytes for each in new)
                )
            yield compacted
    except BaseException:
        table.discard(written, plan)
        raise
    if removed:
        table.commit(written, Change(id=uuid.uuid4().hex, removed=removed, same_rows=True), plan)


def _planned(group: Sequence[LiveFile]) -> CompactedFiles:
    return CompactedFiles(
        partition=_text(group[0].partition),
        rows=sum(each.rows for each in group),
        files=len(group),
        size_bytes=sum(each.size_bytes for each in group),
    )


def _rewritten(table: LakeTable, group: Sequence[LiveFile], plan: FilePlan) -> Sequence[WrittenFile]:
    """Write the rows of files again. Raises TableError if one of them has fewer rows than the table says."""
    count = 0

    def rows() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in table.read_live(group):
            count += len(batch)
            yield batch

    files = write_files(rows(), plan).files
    expected = sum(each.rows for each in group)
    is_wrong = count > expected if any(each.deletes for each in group) else count != expected
    if is_wrong or sum(each.rows for each in files) != count:
        table.discard(files, plan)
        raise TableError(
            f"{expected} rows were expected in files to compact, and {count} read; nothing changed", table.name
        )
    return files


def _text(partition: Hashable) -> str:
    assert isinstance(partition, tuple)
    if (
        partition and isinstance(partition[-1], tuple) and not isinstance(partition[0], tuple)
    ):  # Iceberg: spec and values
        return "/".join(map(str, partition[-1]))
    return "/".join(f"{name}={value}" for name, value in partition)
