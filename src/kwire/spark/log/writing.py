"""The tasks that write `kafka-log`: Arrow batches in, a file of Kafka batches out, run by run of one partition.

    buffer      rows of all partitions, up to BUFFER_BYTES
    group       their row numbers by partition; rows are not moved
    encode      each group as a run of batches

The driver makes logs of the runs (kwire.maintenance.encoded_runs).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire.errors import EncodeError, LogError, OptionError
from kwire.log.files.file_names import LARGEST_PARTITION
from kwire.maintenance.encoded_runs import EncodedRun
from kwire.maintenance.row_batches import TAKEN, batch_options, encode_rows
from kwire.records import Compression
from kwire.records.columns.writer import ColumnWriterOptions
from kwire.spark.log.write_options import LogWriteOptions
from kwire.spark.partitioner import RowPartitioner, group_rows, rows_by_topic
from kwire.storage.driver_errors import cause
from kwire.storage.file_system import FileSystem, OpenFile

__all__ = ["write_rows"]

PLAIN_TYPES: Mapping[str, pa.DataType] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}
STICKY_BYTES = 128 << 10  # rows without key and partition that go to one partition before the next
BUFFER_BYTES = 64 << 20  # rows of all partitions; a full buffer is written


def write_rows(
    batches: Iterable[pa.RecordBatch], columns: tuple[str, ...], options: LogWriteOptions, path: str
) -> list[EncodedRun]:
    """Write the rows of one task and return their runs. Without rows no file is created.

    columns: the columns to write. Raises OptionError for invalid rows, LogError for duplicate offsets and a failed
    write.
    """
    writer = TaskWriter(options, path)
    waiting: list[pa.RecordBatch] = []
    size = 0
    try:
        for batch in batches:
            if not len(batch):
                continue
            waiting.append(batch.select(columns))
            size += waiting[-1].nbytes
            if size >= BUFFER_BYTES:
                writer.write(waiting)
                waiting, size = [], 0
        if waiting:
            writer.write(waiting)
    except (OSError, pa.ArrowException) as error:
        raise LogError(f"cannot be written: {cause(error)}", path) from error
    finally:
        writer.close()
    return writer.runs


class TaskWriter:
    """Writes the file of one task, which is created with the first rows. runs: those written."""

    def __init__(self, options: LogWriteOptions, path: str) -> None:
        self._options, self._path = options, path
        self._batches = batch_options(Compression[options.compression.upper()], None, options.segment_bytes)
        self._file: OpenFile | None = None
        self._partitioners: dict[str, RowPartitioner] = {}
        self.runs: list[EncodedRun] = []

    def write(self, batches: list[pa.RecordBatch]) -> None:
        """Write rows. Raises the errors of write_rows."""
        for batch in pa.Table.from_batches(batches).combine_chunks().to_batches():
            for topic, rows in rows_by_topic(batch, self._options.topic):
                if topic not in self._partitioners:
                    self._partitioners[topic] = RowPartitioner(
                        topic,
                        self._options.partitions,
                        batch_bytes=STICKY_BYTES,
                        named_below=LARGEST_PARTITION + 1,
                        seed=0,
                    )
                partitions = self._partitioners[topic].choose(rows)
                names = [name for name in ("offset", *TAKEN) if name in rows.schema.names]
                selected = with_plain_types(rows.select(names))
                if "timestamp" not in names:
                    now = np.full(len(rows), time.time_ns() // 1_000_000, np.int64)
                    selected = selected.append_column("timestamp", pa.array(now))
                self._write_topic(topic, selected, partitions)

    def _write_topic(self, topic: str, rows: pa.RecordBatch, partitions: npt.NDArray[np.int32]) -> None:
        offsets = offsets_of(rows)
        for partition, order in group_rows(partitions):
            low, high = 0, len(order) - 1
            if offsets is not None:
                order, low, high = by_offset(offsets, order, f"{topic}-{partition}")
            self._write_run(topic, partition, rows, order, low, high)

    def _write_run(
        self, topic: str, partition: int, rows: pa.RecordBatch, order: npt.NDArray[np.int64], low: int, high: int
    ) -> None:
        if self._file is None:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._file = FileSystem().open(self._path, create=True)
        position = self._file.end
        options = self._batches | ColumnWriterOptions(keep_offsets="offset" in rows.schema.names)
        try:
            for data in encode_rows(rows, options, order):
                self._file.append(data)
        except EncodeError as error:
            raise OptionError(f"a row for {topic}-{partition} cannot be encoded: {error}") from error
        run = EncodedRun(
            topic=topic,
            partition=partition,
            position=position,
            size_bytes=self._file.end - position,
            records=len(order),
            low=low,
            high=high,
        )
        self.runs.append(run)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def with_plain_types(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Cast columns of large and view types once: the encoder would do it for each partition.

    Columns of more than 2 GiB keep their types; the encoder splits them.
    """
    for at, field in enumerate(rows.schema):
        plain = PLAIN_TYPES.get(field.name)
        if plain is not None and field.type not in (plain, pa.string()):
            with suppress(pa.ArrowInvalid):
                rows = rows.set_column(at, field.name, rows.column(at).cast(plain))
    return rows


def offsets_of(rows: pa.RecordBatch) -> npt.NDArray[np.int64] | None:
    """Return the offsets of rows, None without the column. Raises OptionError for null and negative ones."""
    if "offset" not in rows.schema.names:
        return None
    column = rows.column("offset")
    if column.null_count:
        raise OptionError("Column 'offset': null values are not allowed; drop the column to number records from 0")
    offsets: npt.NDArray[np.int64] = column.to_numpy()
    if offsets.min() < 0:
        raise OptionError(f"Column 'offset': {offsets.min()} is negative")
    return offsets


def by_offset(
    offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], partition: str
) -> tuple[npt.NDArray[np.int64], int, int]:
    """Return rows in the order of their offsets, and the first and last of these. Raises LogError for duplicates."""
    chosen = offsets[rows]
    if not (chosen[1:] > chosen[:-1]).all():
        order = np.argsort(chosen, kind="stable")
        rows, chosen = rows[order], chosen[order]
        duplicates = np.flatnonzero(chosen[1:] == chosen[:-1])
        if len(duplicates):
            raise LogError(f"offset {chosen[duplicates[0]]} of {partition} is a duplicate")
    return rows, int(chosen[0]), int(chosen[-1])
