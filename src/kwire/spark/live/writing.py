"""The tasks that write `kafka-live`: Arrow batches in, Kafka batches out.

    assign      rows to partitions, where they are buffered
    encode      the rows of each partition as batches
    send        one batch of each partition, one request per broker; brokers process it while the next ones are encoded

A transactional task leaves its transaction open for the driver.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from kwire.client import Client, OpenTransaction, OutgoingBatch, Producer
from kwire.errors import BrokerError, EncodeError, OptionError
from kwire.identifiers import TopicPartition
from kwire.protocol.error_codes import ErrorCode
from kwire.records import ColumnWriter
from kwire.records.format.batch_header import DEFAULT_HEADER, batch_spans
from kwire.spark.live.batch_marks import Mark, find_mark
from kwire.spark.live.planning import find_topic
from kwire.spark.live.reading import borrow_client
from kwire.spark.live.write_options import LiveWriteOptions
from kwire.spark.partitioner import RowPartitioner, rows_by_topic, taken_by_group

__all__ = ["Written", "write_task"]

BUFFER_BYTES = 32 << 20  # rows of all partitions; a full buffer is written
REQUEST_BYTES = 4 << 20  # batches that are sent together
BASE_OFFSET = b"\0" * 8  # brokers assign offsets, and require 0 from producers


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The result of a task. transaction: open; None without transactions and without rows.

    mark: the micro-batch of a transactional stream. is_done: an earlier run committed this task's rows.
    """

    task: int
    records: int
    transaction: OpenTransaction | None = None
    mark: Mark | None = None
    is_done: bool = False


def write_task(
    batches: Iterable[pa.RecordBatch],
    columns: tuple[str, ...],
    options: LiveWriteOptions,
    *,
    task: int,
    mark: Mark | None = None,
) -> Written:
    """Write the rows of one task and wait for the brokers' acknowledgments.

    columns: the columns to write. task: its number. mark: the micro-batch of a streaming query.
    Raises OptionError for rows that cannot be written, BrokerError, ConnectionFailed, after aborting the transaction.
    """
    if options.transactional_prefix is None:
        with borrow_client(options.kafka) as client:
            return Written(task=task, records=write_rows(batches, columns, options, Producer(client)))
    name = f"{options.transactional_prefix}-{task}"
    with Client(**options.kafka, **{"transactional.id": name}) as client, Producer(client) as producer:
        if mark is not None:
            committed = find_mark(client, name, mark.query)
            if committed is not None and committed.batch > mark.batch:
                raise OptionError(
                    f"batch {mark.batch} precedes batch {committed.batch}, which this query has committed: the "
                    "checkpoint is older than the data in Kafka; restore a newer checkpoint, or start with a new one"
                )
            if committed is not None and committed.batch == mark.batch:
                return Written(task=task, records=0, mark=mark, is_done=True)
        producer.begin()
        records = write_rows(batches, columns, options, producer)
        return Written(task=task, records=records, transaction=producer.leave(), mark=mark)


def write_rows(
    batches: Iterable[pa.RecordBatch], columns: tuple[str, ...], options: LiveWriteOptions, producer: Producer
) -> int:
    """Write rows with a producer and wait for acknowledgments; return their number. Raises the errors of write_task."""
    writer = TaskWriter(producer, options)
    for batch in batches:
        writer.add(batch.select(columns))
    writer.flush()
    return writer.records


class TaskWriter:
    """Writes rows with a producer. Call flush() at the end: buffered rows are lost otherwise."""

    def __init__(self, producer: Producer, options: LiveWriteOptions) -> None:
        self._producer, self._options = producer, options
        self._partitioners: dict[str, RowPartitioner] = {}
        self._buffered: dict[TopicPartition, list[pa.RecordBatch]] = {}
        self._buffered_bytes = 0
        self.records = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Buffer rows; write a full buffer. Raises the errors of write_task."""
        if not len(batch):
            return
        for topic, rows in rows_by_topic(batch, self._options.topic):
            chosen = self._partitioner(topic).choose(rows)
            names = [name for name in ("key", "value", "headers") if name in rows.schema.names]
            now = pa.repeat(pa.scalar(time.time_ns() // 1_000_000, pa.int64()), len(rows))
            for partition, some in taken_by_group(rows.select(names), chosen):
                timed = some.append_column("timestamp", now[: len(some)])
                self._buffered.setdefault((topic, partition), []).append(timed)
                self._buffered_bytes += timed.nbytes
        self.records += len(batch)
        if self._buffered_bytes >= BUFFER_BYTES:
            self._send_buffered()

    def flush(self) -> None:
        """Write the buffered rows and wait for acknowledgments."""
        self._send_buffered()
        with self._errors_explained():
            self._producer.flush()

    def _partitioner(self, topic: str) -> RowPartitioner:
        if topic not in self._partitioners:
            with self._errors_explained():
                self._producer.flush()  # responses arrive in order: complete these first
            described = find_topic(self._producer.client, topic)
            self._partitioners[topic] = RowPartitioner(
                topic,
                len(described.partitions),
                batch_bytes=self._options.batch_bytes,
                available=[number for number, each in described.partitions.items() if each.leader >= 0],
            )
        return self._partitioners[topic]

    def _send_buffered(self) -> None:
        """Encode and send the buffered rows, a batch of each partition at a time; does not wait for responses."""
        remaining = {key: self._encoded(key, rows) for key, rows in self._buffered.items()}
        self._buffered, self._buffered_bytes = {}, 0
        while remaining:
            together: list[OutgoingBatch] = []
            size = 0
            for key in list(remaining):
                batch = next(remaining[key], None)
                if batch is None:
                    del remaining[key]
                    continue
                together.append(batch)
                size += len(batch.data)
                if size >= REQUEST_BYTES:
                    self._post(together)
                    together, size = [], 0
            self._post(together)

    def _encoded(self, key: TopicPartition, rows: list[pa.RecordBatch]) -> Iterator[OutgoingBatch]:
        writer = ColumnWriter(
            compression=self._producer.client.settings.compression_type,
            level=self._producer.client.settings.compression_level,
            batch_size=self._options.batch_bytes,
            **self._producer.fields(*key),
        )
        table = pa.Table.from_batches(rows)
        for batch in table.combine_chunks().to_batches():  # many short slices would become small batches
            try:
                for piece in writer.write(batch):
                    for start, end in batch_spans(piece):
                        data = piece[start:end]
                        data[: len(BASE_OFFSET)] = BASE_OFFSET  # not covered by the checksum
                        count = DEFAULT_HEADER.unpack_from(data)[-1]
                        yield OutgoingBatch(*key, bytes(data), count)
            except EncodeError as error:
                raise OptionError(f"a row for {key[0]}-{key[1]} cannot be encoded: {error}") from error

    def _post(self, together: list[OutgoingBatch]) -> None:
        if together:
            with self._errors_explained():
                self._producer.post(together)

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        try:
            yield
        except BrokerError as error:
            if error.code != ErrorCode.MESSAGE_TOO_LARGE:
                raise
            raise BrokerError(
                f"{error}; batches have {self._options.batch_bytes} bytes before compression: set kafka.batch.size "
                "below the topic's max.message.bytes, or increase max.message.bytes for large records",
                error.code,
            ) from error
