"""The writers of `kafka-live`, which Spark calls on the driver and in tasks.

    without transactions    each task writes; a task that is retried writes its rows again, as with Spark's sink
    with transactions       each task leaves a transaction open, and commit() on the driver commits all of them

A transactional streaming query also stores marks in Kafka (batch_marks): after a partial commit, it continues with the
missing tasks. Planning does not import pyarrow. See docs/live.md.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from kwire.client import Client, OpenTransaction, Producer
from kwire.errors import BrokerError, ConnectionFailed, OptionError
from kwire.spark.live.batch_marks import Mark, add_mark, driver_group, find_mark, replace_mark
from kwire.spark.live.write_options import LiveWriteOptions
from kwire.spark.plain_errors import plain_errors
from kwire.spark.process.worker import SentToWorkers, report_small_batches, warm_up
from kwire.spark.streaming.micro_batch_ids import micro_batch_of_task, task_number

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.spark.live.writing import Written

__all__ = ["LiveStreamWriter", "LiveWriter", "TaskWritten", "abort_all", "commit_all", "commit_batch"]

logger = logging.getLogger("kwire.spark")


@dataclass
class TaskWritten(WriterCommitMessage):
    """The message of a task to the driver."""

    written: Written


Messages = Sequence[WriterCommitMessage | None]


@plain_errors
class LiveWriter(SentToWorkers, DataSourceArrowWriter):
    """Writes one batch query. columns: the columns to write."""

    def __init__(self, options: LiveWriteOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Write the rows of one task; called in a worker. Raises the errors of write_task."""
        return _write(iterator, self.options, self.columns, is_marked=self.options.once_per_batch)

    def commit(self, messages: Messages) -> None:
        """Commit the transactions of all tasks. Raises OptionError, BrokerError."""
        written = _written(messages)
        if self.options.once_per_batch:
            batch = next((each.mark.batch for each in written if each.mark is not None), 0)
            commit_batch(self.options, written, batch, tasks=len(messages))
        else:
            commit_all(self.options, written)

    def abort(self, messages: Messages) -> None:
        """Abort the transactions of all tasks; a task has failed."""
        abort_all(self.options, _written(messages))


@plain_errors
class LiveStreamWriter(SentToWorkers, DataSourceStreamArrowWriter):
    """Writes the micro-batches of one streaming query."""

    def __init__(self, options: LiveWriteOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Write the rows of one task; called in a worker. Raises the errors of write_task."""
        return _write(iterator, self.options, self.columns, is_marked=self.options.transactional_prefix is not None)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 (Spark's name)
        """Commit the transactions of a micro-batch. Raises OptionError, BrokerError."""
        commit_batch(self.options, _written(messages), batchId, tasks=len(messages))

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Abort the transactions of all tasks; a task has failed."""
        abort_all(self.options, _written(messages))


def _write(
    rows: Iterator[pa.RecordBatch], options: LiveWriteOptions, columns: tuple[str, ...], *, is_marked: bool
) -> TaskWritten:
    """Write the rows of one task. is_marked: whether it records its micro-batch."""
    from kwire.spark.live.writing import write_task

    warm_up()
    mark = _task_mark() if is_marked else None
    given = report_small_batches(rows)
    return TaskWritten(write_task(given, columns, options, task=task_number(), mark=mark))


def _task_mark() -> Mark:
    """Return the query and micro-batch of this task. Raises OptionError."""
    micro_batch = micro_batch_of_task()
    if micro_batch is None:
        raise OptionError(
            "Option 'transactional' or 'oncePerBatch': this task belongs to no micro-batch; use writeStream, or "
            "foreachBatch without Spark Connect"
        )
    return Mark(query=micro_batch[0], batch=micro_batch[1])


def _written(messages: Messages) -> list[Written]:
    """Return the messages of completed tasks."""
    return [each.written for each in messages if isinstance(each, TaskWritten)]


# ---- on the driver


def commit_all(options: LiveWriteOptions, written: Sequence[Written]) -> None:
    """Commit the transactions of all tasks, after checking that all of them are open.

    Raises BrokerError; transactions that are already committed stay so.
    """
    transactions = [each.transaction for each in written if each.transaction is not None]
    if transactions:
        with Client(**options.kafka) as client:
            producers = [_resume(client, each) for each in transactions]
            for producer in producers:
                producer.commit()


def commit_batch(options: LiveWriteOptions, written: Sequence[Written], batch: int, *, tasks: int) -> None:
    """Commit the transactions of a micro-batch, each with its mark.

    Raises OptionError if an earlier run committed a part of the batch with another number of tasks.
    """
    if options.transactional_prefix is None or not written:
        return
    prefix = options.transactional_prefix
    marks = {each.mark for each in written if each.mark is not None}
    if len(marks) != 1 or next(iter(marks)).batch != batch:
        raise OptionError(f"cannot commit batch {batch}: the tasks have written {sorted(map(str, marks))}")
    transactions = [each.transaction for each in written if each.transaction is not None]
    if not transactions and not any(each.is_done for each in written):
        return
    mark = replace(marks.pop(), tasks=tasks, transactions=len(transactions))
    with Client(**options.kafka) as client:
        if _was_committed(client, prefix, mark):
            abort_all(options, written)  # tasks that the earlier run did not have
            return
        producers = [(_resume(client, each), each) for each in transactions]
        if not any(each.is_done for each in written):
            replace_mark(client, driver_group(prefix), mark, transactions[0].partitions[0])
        for producer, each in producers:
            add_mark(producer, each.transactional_id, mark, each.partitions[0])
        for producer, _ in producers:
            producer.commit()


def _was_committed(client: Client, prefix: str, mark: Mark) -> bool:
    """Return whether an earlier run committed the whole batch.

    Raises OptionError if it committed a part of the batch with another number of tasks.
    """
    recorded = find_mark(client, driver_group(prefix), mark.query) or find_mark(client, prefix, mark.query)
    if recorded is None or recorded.batch != mark.batch:
        return False
    done = [
        task
        for task in range(recorded.tasks)
        if (committed := find_mark(client, f"{prefix}-{task}", mark.query)) is not None
        and committed.batch == mark.batch
    ]
    if len(done) == recorded.transactions:
        return True
    if done and recorded.tasks != mark.tasks:
        raise OptionError(
            f"batch {mark.batch} was committed in part, {len(done)} of {recorded.tasks} tasks, and now has "
            f"{mark.tasks} tasks, so its missing rows are unknown; run the query with its earlier configuration "
            "(spark.sql.shuffle.partitions, minPartitions, maxRecordsPerPartition, repartition) until this batch is "
            f"complete, or set another transactionalIdPrefix, which writes the rows of those {len(done)} tasks twice"
        )
    return False


def _resume(client: Client, transaction: OpenTransaction) -> Producer:
    """Return a producer that can commit a task's transaction. Raises BrokerError if it is no longer open."""
    producer = Producer(client, resume=transaction)
    try:
        producer.check()
    except BrokerError as error:
        raise BrokerError(
            f"transaction '{transaction.transactional_id}' is no longer open ({error}): it took longer than "
            "kafka.transaction.timeout.ms, or another query uses the same transactionalIdPrefix",
            error.code,
        ) from error
    return producer


def abort_all(options: LiveWriteOptions, written: Sequence[Written]) -> None:
    """Abort the transactions of all tasks; those that cannot be aborted end with their timeout."""
    transactions = [each.transaction for each in written if each.transaction is not None]
    if not transactions:
        return
    try:
        with Client(**options.kafka) as client:
            for each in transactions:
                try:
                    Producer(client, resume=each).abort()
                except BrokerError as error:  # already committed or aborted, or fenced
                    logger.warning("%s", error)
    except ConnectionFailed as error:
        logger.warning("transactions stay open until kafka.transaction.timeout.ms is over: %s", error)
