"""The rows of partitions in offset order, whatever the order in the files.

    in order        the offsets of every partition increase from row group to row group: one pass over all files
    out of order    one partition after another; row groups are read by offset, and those that overlap or are unsorted
                    are sorted in memory, up to max_sort_bytes

Duplicate offsets are refused, with both locations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from kwire.errors import LogError, OptionError
from kwire.identifiers import TopicPartition
from kwire.maintenance.from_parquet.parquet_input import Input, Piece
from kwire.maintenance.offset_spans import MAX_SORT_BYTES, clusters

__all__ = ["is_in_order", "rows_in_order"]


Keyed = tuple[TopicPartition, pa.RecordBatch]


def is_in_order(pieces: Sequence[Piece]) -> bool:
    """Return whether offsets increase over all pieces in their order."""
    ends = [-1, *(piece.high for piece in pieces)]
    return all(piece.is_ascending and piece.low > end for piece, end in zip(pieces, ends, strict=False))


def rows_in_order(
    source: Input, pieces: Mapping[TopicPartition, Sequence[Piece]], *, max_sort_bytes: int = MAX_SORT_BYTES
) -> Iterator[Keyed]:
    """Yield the rows of each partition by offset, in batches. Partitions alternate if they do in the files.

    Raises LogError for duplicate offsets, OptionError if sorting needs more than max_sort_bytes.
    """
    if not source.has_offsets or all(map(is_in_order, pieces.values())):
        for number, file in enumerate(source.files):
            for row_group in range(file.row_groups):
                for batch in source.read(number, row_group):
                    for key, rows in source.split(batch, number, row_group):
                        yield key, batch if rows is None else batch.take(pa.array(rows))
        return
    for key in sorted(pieces):
        for overlapping in clusters(pieces[key]):
            if len(overlapping) == 1 and overlapping[0].is_ascending:
                for batch in rows_of(source, key, overlapping[0]):
                    yield key, batch
            else:
                yield key, sorted_rows(source, key, overlapping, max_sort_bytes)


def rows_of(source: Input, key: TopicPartition, piece: Piece) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one partition in one row group."""
    for batch in source.read(piece.file, piece.row_group):
        for row_key, rows in source.split(batch, piece.file, piece.row_group):
            if row_key == key:
                yield batch if rows is None else batch.take(pa.array(rows))


def sorted_rows(source: Input, key: TopicPartition, overlapping: list[Piece], max_sort_bytes: int) -> pa.RecordBatch:
    """Return the rows of pieces, sorted by offset."""
    batches: list[pa.RecordBatch] = []
    origins: list[Piece] = []  # of each batch
    size = 0
    for piece in overlapping:
        for batch in rows_of(source, key, piece):
            batches.append(batch.select(sorted(batch.schema.names)))
            origins.append(piece)
            size += batch.nbytes
            if size > max_sort_bytes:
                file = source.files[overlapping[0].file].path
                raise OptionError(
                    f"{file}: offsets of {key[0]}-{key[1]} are unsorted over {len(overlapping)} row groups from "
                    f"row group {overlapping[0].row_group}, and sorting needs more than {max_sort_bytes} bytes; "
                    "write the files sorted by offset"
                )
    table = pa.Table.from_batches(batches, schema=pa.unify_schemas([batch.schema for batch in batches]))
    offsets = table.column("offset").cast(pa.int64()).to_numpy()
    order = np.argsort(offsets, kind="stable")
    ascending = offsets[order]
    duplicates = np.flatnonzero(ascending[1:] == ascending[:-1])
    if len(duplicates):
        batch_of = np.repeat(np.arange(len(batches)), [batch.num_rows for batch in batches])
        one, other = (origins[int(batch_of[order[duplicates[0] + i]])] for i in (0, 1))
        raise LogError(
            f"row group {other.row_group}: offset {ascending[duplicates[0]]} of {key[0]}-{key[1]} is a duplicate of "
            f"row group {one.row_group} of {source.files[one.file].path}",
            source.files[other.file].path,
        )
    return table.take(pa.array(order)).combine_chunks().to_batches()[0]
