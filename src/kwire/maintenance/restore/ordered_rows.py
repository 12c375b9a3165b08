"""The rows of partitions in the order of their offsets, whatever order the files have.

    in order        every partition's rows rise from row group to row group: one pass over all files
    out of order    partition by partition; row groups whose offsets do not overlap are taken in their order, those that
                    overlap or do not rise inside are sorted in memory, up to max_sort_bytes

An offset that is there twice is refused, with the two places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from kwire.errors import LogError, OptionError
from kwire.identifiers import TopicPartition
from kwire.maintenance.restore.parquet_input import Input, Piece

__all__ = ["MAX_SORT_BYTES", "clusters", "is_in_order", "rows_in_order"]

MAX_SORT_BYTES = 1 << 30  # of Arrow memory for rows that have to be sorted together

Keyed = tuple[TopicPartition, pa.RecordBatch]


def is_in_order(pieces: Sequence[Piece]) -> bool:
    """Whether offsets rise over all pieces as they come."""
    ends = [-1, *(piece.high for piece in pieces)]
    return all(piece.is_ascending and piece.low > end for piece, end in zip(pieces, ends, strict=False))


def clusters(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Pieces by offset; those that overlap together."""
    together: list[Piece] = []
    high = -1
    for piece in sorted(pieces, key=lambda each: (each.low, each.high)):
        if together and piece.low > high:
            yield together
            together = []
        together.append(piece)
        high = max(high, piece.high)
    if together:
        yield together


def rows_in_order(
    source: Input, pieces: Mapping[TopicPartition, Sequence[Piece]], *, max_sort_bytes: int = MAX_SORT_BYTES
) -> Iterator[Keyed]:
    """Rows of each partition by offset, in batches; partitions take turns where the files have it so.

    Raises LogError for offsets that are there twice, OptionError where sorting needs more than max_sort_bytes.
    """
    if not source.has_offsets or all(map(is_in_order, pieces.values())):
        for number, file in enumerate(source.files):
            for row_group in range(file.row_groups):
                for batch in source.read(number, row_group):
                    for key, rows in source.split(batch, number, row_group):
                        yield key, batch if rows is None else batch.take(pa.array(rows))
        return
    for key in sorted(pieces):
        for together in clusters(pieces[key]):
            if len(together) == 1 and together[0].is_ascending:
                for batch in rows_of(source, key, together[0]):
                    yield key, batch
            else:
                yield key, sorted_rows(source, key, together, max_sort_bytes)


def rows_of(source: Input, key: TopicPartition, piece: Piece) -> Iterator[pa.RecordBatch]:
    """The rows of one partition in one row group."""
    for batch in source.read(piece.file, piece.row_group):
        for found, rows in source.split(batch, piece.file, piece.row_group):
            if found == key:
                yield batch if rows is None else batch.take(pa.array(rows))


def sorted_rows(source: Input, key: TopicPartition, together: list[Piece], max_sort_bytes: int) -> pa.RecordBatch:
    """The rows of pieces, sorted by offset."""
    batches: list[pa.RecordBatch] = []
    places: list[Piece] = []  # of each batch
    size = 0
    for piece in together:
        for batch in rows_of(source, key, piece):
            batches.append(batch.select(sorted(batch.schema.names)))
            places.append(piece)
            size += batch.nbytes
            if size > max_sort_bytes:
                file = source.files[together[0].file].path
                raise OptionError(
                    f"offsets of {key[0]}-{key[1]} are out of order over {len(together)} row groups, from row group "
                    f"{together[0].row_group} of {file} on, and sorting them needs more than {max_sort_bytes} bytes: "
                    f"write the files sorted by offset"
                )
    table = pa.Table.from_batches(batches, schema=pa.unify_schemas([batch.schema for batch in batches]))
    offsets = table.column("offset").cast(pa.int64()).to_numpy()
    order = np.argsort(offsets, kind="stable")
    ascending = offsets[order]
    twice = np.flatnonzero(ascending[1:] == ascending[:-1])
    if len(twice):
        batch_of = np.repeat(np.arange(len(batches)), [batch.num_rows for batch in batches])
        one, other = (places[int(batch_of[order[twice[0] + i]])] for i in (0, 1))
        raise LogError(
            f"row group {other.row_group}: offset {ascending[twice[0]]} of {key[0]}-{key[1]} is there twice, first in "
            f"row group {one.row_group} of {source.files[one.file].path}",
            source.files[other.file].path,
        )
    return table.take(pa.array(order)).combine_chunks().to_batches()[0]
