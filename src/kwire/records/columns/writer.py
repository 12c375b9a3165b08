"""Arrow columns to batches: the reverse of kwire.records.columns.reader.

    columns    the Arrow buffers; other widths and encodings are converted to plain binary first
    encode     rows into records, batch after batch, into a buffer that stays in the processor's cache
    compress   batch by batch, if there is a codec
    finish     headers and checksums of all batches in the buffer

The object path (kwire.records.format.builder) gives the same bytes for the same rows.

pyarrow is imported when a writer is made, not with this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Unpack

from kwire.extras import needing
from kwire.records.attributes import NO_SEQUENCE, Compression
from kwire.records.format.builder import DEFAULT_BATCH_SIZE, BatchBuilder, BatchOptions

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

__all__ = ["ColumnWriter", "ColumnWriterOptions", "from_arrow"]


class ColumnWriterOptions(BatchOptions, total=False):
    """Keyword arguments of ColumnWriter."""

    magic: int
    compression: str | Compression
    base_offset: int
    batch_size: int
    keep_offsets: bool


class ColumnWriter:
    """Turns Arrow record batches into Kafka's. Keeps buffers between calls: one writer for each thread.

    batch_size: bytes of a batch before compression, header included; a larger row gets a separate batch.
    keep_offsets: take offsets from the column of that name, which has to ascend; otherwise rows are numbered from
        base_offset on, over all calls.
    options: as for BatchBuilder. Sequence numbers go on from batch to batch.
    Raises EncodeError, OptionError as BatchBuilder does.
    """

    def __init__(
        self,
        *,
        magic: int = 2,
        compression: str | Compression = "none",
        base_offset: int = 0,
        batch_size: int = DEFAULT_BATCH_SIZE,
        keep_offsets: bool = False,
        **options: Unpack[BatchOptions],
    ) -> None:
        with needing("records from Arrow columns"):
            from kwire.records.columns.encoder import ColumnEncoder

        checked = BatchBuilder(  # refuses what the object path refuses
            magic=magic,
            compression=compression,
            base_offset=base_offset,
            **options,
        )
        self._encoder = ColumnEncoder(checked, batch_size, options.get("base_sequence", NO_SEQUENCE), keep_offsets)

    @property
    def next_offset(self) -> int:
        """The offset after the last row written."""
        return self._encoder.next_offset

    def write(
        self, batch: pa.RecordBatch, order: npt.NDArray[np.int64] | None = None, ends: Sequence[int] = ()
    ) -> Iterator[memoryview]:
        """Write the rows of an Arrow record batch as whole Kafka batches, many in each piece.

        order: numbers of the rows to write, in this order; all rows by default.
        ends: ascending numbers of rows at which a Kafka batch has to end; of columns below 2 GiB.

        Columns have Spark's names: `value`, and optionally `key`, `headers` (list of struct<key, value>), `timestamp`
        (or int64 milliseconds; -1 for null or a missing column), `offset` with keep_offsets. Others are ignored.
        A piece is valid until the next one is requested.
        Raises EncodeError with the row (of order) of a value that does not fit the format, after the batches before
        that row; OptionError for a column that is missing or has a wrong type.
        """
        return self._encoder.write(batch, order, ends)


def from_arrow(batch: pa.RecordBatch | pa.Table, **options: Unpack[ColumnWriterOptions]) -> bytes:
    """All batches for the rows of an Arrow record batch or table, in one piece.

    options: as for ColumnWriter, whose `write` avoids the copy; raises the same errors.
    """
    writer = ColumnWriter(**options)
    batches = batch.to_batches() if hasattr(batch, "to_batches") else [batch]
    return b"".join(bytes(piece) for one in batches for piece in writer.write(one))
