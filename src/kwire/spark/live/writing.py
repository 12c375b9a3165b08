"""What a task that writes to `kafka-live` does: Arrow batches in, Kafka batches out.

    rows        to their partitions; they wait there until there are enough
    encode      the rows of each partition into batches
    send        one batch of each partition, a request a broker; brokers work while the next ones are encoded

In the transactional mode a task leaves its transaction open, for the driver to end.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kwire.client import Client, OpenTransaction, OutgoingBatch, Producer
from kwire.errors import BrokerError, EncodeError, OptionError
from kwire.identifiers import TopicPartition
from kwire.log.file_names import check_topic
from kwire.protocol.error_codes import ErrorCode
from kwire.records import ColumnWriter
from kwire.records.batch_header import DEFAULT_HEADER, batch_spans
from kwire.spark.live.batch_marks import Mark, find_mark
from kwire.spark.live.cluster import find_topic
from kwire.spark.live.write_options import LiveWriteOptions
from kwire.spark.partitioner import RowPartitioner

__all__ = ["NULL_TOPIC", "Written", "rows_by_partition", "rows_by_topic", "write_task"]

WAITING_BYTES = 32 << 20  # rows of all partitions together; then they are written
REQUEST_BYTES = 4 << 20  # of batches that are sent at one time
BASE_OFFSET = b"\0" * 8  # brokers number batches, and want 0 from producers
NULL_TOPIC = "null topic present in the data. Use the topic option for setting a default topic."


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a task has done. transaction: left open, None without one or without rows.

    mark: of the micro-batch in a transactional stream. is_done: an earlier run committed this task's rows.
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
    """Write the rows of one task and wait until brokers have them.

    columns: to take of the batches. task: its number. mark: of the micro-batch, in a stream.
    Raises OptionError for rows that cannot be written, BrokerError, ConnectionFailed; a transaction is aborted then.
    """
    if options.transactional_prefix is None:
        with Client(**options.kafka) as client:
            return Written(task=task, records=write_rows(batches, columns, options, Producer(client)))
    name = f"{options.transactional_prefix}-{task}"
    with Client(**options.kafka, **{"transactional.id": name}) as client, Producer(client) as producer:
        if mark is not None:
            found = find_mark(client, name, mark.query)
            if found is not None and found.batch > mark.batch:
                raise OptionError(
                    f"batch {mark.batch} is to be written, and {found.batch} of this query was already: the checkpoint "
                    "is older than what is in Kafka. Restore a newer one, or start with a new checkpoint"
                )
            if found is not None and found.batch == mark.batch:
                return Written(task=task, records=0, mark=mark, is_done=True)
        producer.begin()
        records = write_rows(batches, columns, options, producer)
        return Written(task=task, records=records, transaction=producer.leave(), mark=mark)


def write_rows(
    batches: Iterable[pa.RecordBatch], columns: tuple[str, ...], options: LiveWriteOptions, producer: Producer
) -> int:
    """Write rows through a producer and wait until brokers have them; returns how many. Raises as write_task does."""
    writer = TaskWriter(producer, options)
    for batch in batches:
        writer.add(batch.select(columns))
    writer.flush()
    return writer.records


def rows_by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows of each topic. topic: of all of them, else the column says. Raises OptionError for a null."""
    if topic is not None:
        yield topic, batch
        return
    column = batch.column("topic")
    if column.null_count:
        raise OptionError(NULL_TOPIC)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    for name in names:
        check_topic(name)
    if len(names) == 1:
        yield names[0], batch
        return
    for code, rows in groups(encoded.indices.to_numpy(zero_copy_only=False)):
        yield names[code], batch.take(pa.array(rows))


def rows_by_partition(rows: pa.RecordBatch, chosen: Any) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows of each partition, in their order. chosen: the partition of each row."""
    first = int(chosen[0])
    if (chosen == first).all():
        yield first, rows
        return
    # numpy sorts 16 bits by their digits, five times as fast as it merges 32
    order = np.argsort(chosen if chosen.max() >= 1 << 16 else chosen.astype(np.uint16), kind="stable")
    sorted_rows = rows.take(pa.array(order))
    ends = [*(np.flatnonzero(np.diff(chosen[order])) + 1).tolist(), len(order)]
    start = 0
    for end in ends:
        yield int(chosen[order[start]]), sorted_rows.slice(start, end - start)
        start = end


def groups(codes: Any) -> Iterator[tuple[int, Any]]:
    """Each number among codes, with where it is."""
    order = np.argsort(codes, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        if len(rows):
            yield int(codes[rows[0]]), rows


class TaskWriter:
    """Writes rows through a producer. Leave it by flush(): what waits is lost otherwise."""

    def __init__(self, producer: Producer, options: LiveWriteOptions) -> None:
        self._producer, self._options = producer, options
        self._partitioners: dict[str, RowPartitioner] = {}
        self._waiting: dict[TopicPartition, list[pa.RecordBatch]] = {}
        self._waiting_bytes = 0
        self.records = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows; writes when many wait. Raises as write_task does."""
        if not len(batch):
            return
        for topic, rows in rows_by_topic(batch, self._options.topic):
            chosen = self._partitioner(topic).choose(rows)
            names = [name for name in ("key", "value", "headers") if name in rows.schema.names]
            now = pa.repeat(pa.scalar(time.time_ns() // 1_000_000, pa.int64()), len(rows))
            for partition, some in rows_by_partition(rows.select(names), chosen):
                timed = some.append_column("timestamp", now[: len(some)])
                self._waiting.setdefault((topic, partition), []).append(timed)
                self._waiting_bytes += timed.nbytes
        self.records += len(batch)
        if self._waiting_bytes >= WAITING_BYTES:
            self._send_waiting()

    def flush(self) -> None:
        """Write everything and wait until brokers have it."""
        self._send_waiting()
        with self._errors_explained():
            self._producer.flush()

    def _partitioner(self, topic: str) -> RowPartitioner:
        if topic not in self._partitioners:
            with self._errors_explained():
                self._producer.flush()  # answers to other requests come behind those
            found = find_topic(self._producer.client, topic)
            self._partitioners[topic] = RowPartitioner(
                topic,
                len(found.partitions),
                batch_bytes=self._options.batch_bytes,
                available=[number for number, each in found.partitions.items() if each.leader >= 0],
            )
        return self._partitioners[topic]

    def _send_waiting(self) -> None:
        """Encode what waits, and send it round by round; the last rounds may be on their way still."""
        left = {key: self._encoded(key, rows) for key, rows in self._waiting.items()}
        self._waiting, self._waiting_bytes = {}, 0
        while left:
            together: list[OutgoingBatch] = []
            size = 0
            for key in list(left):
                batch = next(left[key], None)
                if batch is None:
                    del left[key]
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
        for batch in pa.Table.from_batches(rows).combine_chunks().to_batches():  # few rows of many make small batches
            try:
                for piece in writer.write(batch):
                    for start, end in batch_spans(piece):
                        data = piece[start:end]
                        data[: len(BASE_OFFSET)] = BASE_OFFSET  # outside of the checksum
                        count = DEFAULT_HEADER.unpack_from(data)[-1]
                        yield OutgoingBatch(*key, bytes(data), count)
            except EncodeError as error:
                raise OptionError(f"a row for {key[0]}-{key[1]} has no place in Kafka's format: {error}") from error

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
                f"{error}; batches are of {self._options.batch_bytes} bytes before compression: set the option "
                "kafka.batch.size to less than the topic's max.message.bytes, or raise that for large records",
                error.code,
            ) from error
