"""Records as Arrow columns, in one pass: header table, checksums, decompression, columns.

    scan      headers of the batches in the buffer into a table
    check     checksums, in one call for the whole table
    choose    requested offsets, no control batches, no aborted transactions
    group     neighbouring batches up to max_rows records or max_bytes; compressed ones into a scratch buffer
    decode    one pass over the records of a group, straight into the buffers of one Arrow record batch

Columns that are not selected are only skipped over. The object path (kwire.records.read_batches) returns the same
records and raises the same errors.

pyarrow is imported when a reader is made, not with this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, TypedDict

from kwire.errors import CorruptBatch, OptionError
from kwire.extras import needing
from kwire.records.compression.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.records.columns.decoder import Aborted, Buffer, ColumnDecoder
    from kwire.records.columns.parallel_decoder import ParallelDecoder
    from kwire.records.format.batch_table import Scan

__all__ = ["COLUMNS", "DEFAULT_MAX_BYTES", "ColumnReader", "arrow_schema", "to_arrow"]

ARROW = "records as Arrow columns"

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")

SMALLEST_OFFSET, LARGEST_OFFSET = -(2**63), 2**63 - 1
MOST_THREADS = 256
DEFAULT_MAX_BYTES = 8 << 20
LARGEST_BOUND = (1 << 30) - 64  # two of them fit the int32 in which Arrow counts the bytes of a binary column


def arrow_schema(columns: Iterable[str] | None = None) -> pa.Schema:
    """Return the pyarrow.Schema of these columns, or of all in COLUMNS. Every column is nullable.

    Raises OptionError for a name that is not in COLUMNS.
    """
    with needing(ARROW):
        import pyarrow as pa

        from kwire.records.columns.arrow_columns import COLUMN_TYPES

    return pa.schema([pa.field(name, COLUMN_TYPES[name]) for name in checked_columns(columns)])


def checked_columns(columns: Iterable[str] | None) -> tuple[str, ...]:
    """Return the names as a tuple, all of COLUMNS for None; raises OptionError for an unknown or duplicate name."""
    names = COLUMNS if columns is None else tuple(columns)
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise OptionError(f"columns: unknown column {unknown[0]!r}; available: {', '.join(COLUMNS)}")
    if not names or len(set(names)) < len(names):
        raise OptionError(f"columns: expected at least one name and no duplicates, got {', '.join(names) or 'none'}")
    return names


class DecodingOptions(TypedDict, total=False):
    """Keyword arguments of readers that use a ColumnReader; see there."""

    check_crc: bool
    max_decompressed_bytes: int
    max_bytes: int
    threads: int


class ColumnReader:
    """Turns the bytes of record sets into Arrow record batches. Keeps buffers between calls: one for each thread.

    columns: names from COLUMNS, in this order; None for all.
    topic, partition: contents of the columns of these names, null if None.
    check_crc: verify the checksums of batches, and of messages inside compressed ones.
    max_decompressed_bytes: what one compressed batch may grow to, below 1 GiB.
    max_rows, max_bytes: of an Arrow batch; more than max_bytes only where a single record is larger. A larger Kafka
        batch is split, after all of it has been checked.
    on_corrupt: called with each CorruptBatch, in the order of the rows; reading continues after the batch. Without
        it the error is raised, after the rows before it.
    include_control: include the records of control batches.
    threads: decode the batches of a buffer in parallel. Each thread needs memory like a reader: up to max_bytes for
        rows, max_decompressed_bytes for a batch, and two Arrow batches that are ready.

    After read() is exhausted:
    consumed: bytes of the buffer that were whole batches, corrupt ones included; pass the rest again with more data.
    stopped: the CorruptBatch of an implausible header, where reading ended; None if all was read.
    """

    def __init__(
        self,
        columns: Iterable[str] | None = None,
        *,
        topic: str | None = None,
        partition: int | None = None,
        check_crc: bool = True,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        max_rows: int = 32768,
        max_bytes: int = DEFAULT_MAX_BYTES,
        on_corrupt: Callable[[CorruptBatch], None] | None = None,
        include_control: bool = False,
        threads: int = 1,
    ) -> None:
        with needing(ARROW):
            from kwire.records.columns.decoder import ColumnDecoder

        self.columns = checked_columns(columns)
        for name, value in (("max_decompressed_bytes", max_decompressed_bytes), ("max_bytes", max_bytes)):
            if not 1 <= value <= LARGEST_BOUND:
                raise OptionError(f"{name} {value} is out of range: 1 to {LARGEST_BOUND} bytes")
        if not 1 <= threads <= MOST_THREADS:
            raise OptionError(f"threads {threads} is out of range: 1 to {MOST_THREADS}")
        if max_rows < 1:
            raise OptionError(f"max_rows {max_rows} is out of range: at least 1")
        self.consumed = 0
        self.stopped: CorruptBatch | None = None
        self.on_corrupt = on_corrupt

        def create() -> ColumnDecoder:
            return ColumnDecoder(
                self.columns,
                arrow_schema(self.columns),
                topic=topic,
                partition=partition,
                check_crc=check_crc,
                max_decompressed_bytes=max_decompressed_bytes,
                max_rows=max_rows,
                max_bytes=max_bytes,
                include_control=include_control,
            )

        self.decoder: ColumnDecoder | ParallelDecoder
        if threads == 1:
            self.decoder = create()
        else:
            from kwire.records.columns.parallel_decoder import ParallelDecoder

            self.decoder = ParallelDecoder(create, threads)

    def set_partition(self, topic: str | None, partition: int | None) -> None:
        """Read the records of another partition from now on, with the same buffers."""
        self.decoder.set_partition(topic, partition)

    def read(
        self,
        buf: Buffer,
        *,
        position: int = 0,
        file: str | None = None,
        start_offset: int = 0,
        end_offset: int | None = None,
        aborted: Sequence[Aborted] = (),
        scan: Scan | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read the records of the whole batches in buf, as pyarrow.RecordBatch of arrow_schema(columns).

        position, file: where buf comes from, for errors.
        start_offset, end_offset: records in [start, end) are kept; 0 and None stand for no limit.
        aborted: (producer_id, first_offset, last_offset) of aborted transactions: their batches are skipped.
        scan: of the batches in buf, if that was done before; its table is changed.
        buf must not change until the iteration ends; the batches returned do not depend on it.
        Raises CorruptBatch unless on_corrupt is set.
        """
        self.consumed, self.stopped = 0, None
        lowest = start_offset if start_offset > 0 else SMALLEST_OFFSET
        highest = LARGEST_OFFSET if end_offset is None else max(end_offset - 1, SMALLEST_OFFSET)
        with closing(self.decoder.decode(buf, position, file, lowest, highest, aborted, scan)) as events:
            for event in events:  # closed at once on an error: threads may still be reading buf
                if not isinstance(event, CorruptBatch):
                    yield event
                elif self.on_corrupt is None:
                    raise event
                else:
                    self.on_corrupt(event)
        self.consumed, self.stopped = self.decoder.consumed, self.decoder.stopped


def to_arrow(
    buf: Buffer,
    columns: Iterable[str] | None = None,
    *,
    topic: str | None = None,
    partition: int | None = None,
    check_crc: bool = True,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> pa.RecordBatch:
    """Read all records of buf as one pyarrow.RecordBatch with Spark's Kafka columns; see ColumnReader for large input.

    Raises CorruptBatch at the first corrupt batch, OptionError for an unknown column or more than 2 GiB in one.
    """
    with needing(ARROW):
        import pyarrow as pa

    reader = ColumnReader(
        columns,
        topic=topic,
        partition=partition,
        check_crc=check_crc,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    batches = list(reader.read(buf))
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches, arrow_schema(reader.columns)).combine_chunks()
    combined = table.to_batches()
    if len(combined) > 1:
        raise OptionError("more than 2 GiB in one column; read it in parts with kwire.records.ColumnReader")
    return combined[0] if combined else pa.RecordBatch.from_pylist([], arrow_schema(reader.columns))
