"""Writing to `kafka-live`: what Spark calls on the driver and in tasks, for batch and streaming queries.

    plain            each task writes for good; a task that is tried again writes its rows again, as with Spark's sink
    transactional    each task leaves a transaction open, the driver's commit() ends them all

A transactional stream also keeps marks in Kafka (batch_marks): a batch that was committed in part goes on
with the tasks that are missing. Planning imports neither numba nor pyarrow. docs/live.md.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from kwire.client import Client, OpenTransaction, Producer
from kwire.errors import BrokerError, ConnectionFailed, OptionError
from kwire.spark.live.batch_marks import Mark, find_mark, leave_mark, note_batch
from kwire.spark.live.write_options import LiveWriteOptions
from kwire.spark.worker import prepare_worker

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.spark.live.writing import Written

__all__ = ["LiveStreamWriter", "LiveWriter", "TaskWritten", "abort_all", "commit_all", "commit_batch"]

logger = logging.getLogger("kwire.spark")

# What Spark tells tasks of a streaming query: StreamExecution.QUERY_ID_KEY, MicroBatchExecution.BATCH_ID_KEY.
QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass
class TaskWritten(WriterCommitMessage):
    """What a task tells the driver."""

    written: Written


Messages = Sequence[WriterCommitMessage | None]


class LiveWriter(DataSourceArrowWriter):
    """Writes one batch query. columns: to take."""

    def __init__(self, options: LiveWriteOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Write the rows of one task; called in a worker. Raises as write_task does."""
        prepare_worker()
        from kwire.spark.live.writing import write_task

        mark = mark_of_task() if self.options.once_per_batch else None
        return TaskWritten(write_task(iterator, self.columns, self.options, task=task_number(), mark=mark))

    def commit(self, messages: Messages) -> None:
        """All tasks have written. Raises BrokerError where a transaction cannot be committed."""
        written = written_by(messages)
        if self.options.once_per_batch:
            batch = next((each.mark.batch for each in written if each.mark is not None), 0)
            commit_batch(self.options, written, batch, tasks=len(messages))
        else:
            commit_all(self.options, written)

    def abort(self, messages: Messages) -> None:
        """A task has failed: nothing of the others counts."""
        abort_all(self.options, written_by(messages))


class LiveStreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of one streaming query."""

    def __init__(self, options: LiveWriteOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Write the rows of one task; called in a worker. Raises as write_task does."""
        prepare_worker()
        from kwire.spark.live.writing import write_task

        mark = None if self.options.transactional_prefix is None else mark_of_task()
        return TaskWritten(write_task(iterator, self.columns, self.options, task=task_number(), mark=mark))

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 (Spark's name)
        """All tasks of the micro-batch have written. Raises OptionError, BrokerError."""
        commit_batch(self.options, written_by(messages), batchId, tasks=len(messages))

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """A task has failed: nothing of the others counts."""
        abort_all(self.options, written_by(messages))


def task_number() -> int:
    """The number of this task in its stage."""
    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def mark_of_task() -> Mark:
    """Which micro-batch of which query this task writes."""
    context: Any = TaskContext.get()
    query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if not query or not batch:
        raise OptionError(
            "Option 'transactional' or 'oncePerBatch': Spark names no micro-batch to this task; write with "
            "writeStream, or within foreachBatch (not with Spark Connect)"
        )
    return Mark(query=query, batch=int(batch))


def written_by(messages: Messages) -> list[Written]:
    """What the tasks tell that have come to their end."""
    return [each.written for each in messages if isinstance(each, TaskWritten)]


# ---- on the driver


def commit_all(options: LiveWriteOptions, written: Sequence[Written]) -> None:
    """End the transactions of all tasks, after a look at each: one that is not open any more ends the write.

    Raises BrokerError; what was committed by then stays.
    """
    transactions = [each.transaction for each in written if each.transaction is not None]
    if transactions:
        with Client(**options.kafka) as client:
            producers = [open_again(client, each) for each in transactions]
            for producer in producers:
                producer.commit()


def commit_batch(options: LiveWriteOptions, written: Sequence[Written], batch: int, *, tasks: int) -> None:
    """End the transactions of a micro-batch, each together with the mark that it was.

    Raises OptionError where an earlier run has committed a part of the batch with another number of tasks.
    """
    if options.transactional_prefix is None or not written:
        return
    prefix = options.transactional_prefix
    marks = {each.mark for each in written if each.mark is not None}
    if len(marks) != 1 or next(iter(marks)).batch != batch:
        raise OptionError(f"tasks have written {sorted(map(str, marks))}, and batch {batch} is to be committed")
    transactions = [each.transaction for each in written if each.transaction is not None]
    if not transactions and not any(each.is_done for each in written):
        return
    mark = replace(marks.pop(), tasks=tasks, transactions=len(transactions))
    with Client(**options.kafka) as client:
        if was_committed(client, prefix, mark):
            abort_all(options, written)  # with another number of tasks some did not see it
            return
        producers = [(open_again(client, each), each) for each in transactions]
        if not any(each.is_done for each in written):
            note_batch(client, prefix, mark, transactions[0].partitions[0])
        for producer, each in producers:
            leave_mark(producer, each.transactional_id, mark, each.partitions[0])
        for producer, _ in producers:
            producer.commit()


def was_committed(client: Client, prefix: str, mark: Mark) -> bool:
    """Whether an earlier run has committed this batch, all of it.

    Raises OptionError where it has committed a part of the batch, of another number of tasks.
    """
    begun = find_mark(client, prefix, mark.query)
    if begun is None or begun.batch != mark.batch:
        return False
    done = [
        task
        for task in range(begun.tasks)
        if (found := find_mark(client, f"{prefix}-{task}", mark.query)) is not None and found.batch == mark.batch
    ]
    if len(done) == begun.transactions:
        return True
    if done and begun.tasks != mark.tasks:
        raise OptionError(
            f"batch {mark.batch} was committed in part, {len(done)} of {begun.tasks} tasks, and has {mark.tasks} tasks "
            "now: which rows are missing cannot be told. Run the query with the settings of then until this batch is "
            "done (spark.sql.shuffle.partitions, minPartitions, maxRecordsPerPartition, repartition), or give it "
            f"another transactionalIdPrefix: the rows of those {len(done)} tasks then come twice"
        )
    return False


def open_again(client: Client, transaction: OpenTransaction) -> Producer:
    """A producer that can end a task's transaction. Raises BrokerError where it is not open any more."""
    producer = Producer(client, resume=transaction)
    try:
        producer.check()
    except BrokerError as error:
        raise BrokerError(
            f"the transaction {transaction.transactional_id} is not open any more ({error}): it took longer than "
            "kafka.transaction.timeout.ms, or another query has the same transactionalIdPrefix",
            error.code,
        ) from error
    return producer


def abort_all(options: LiveWriteOptions, written: Sequence[Written]) -> None:
    """Abort the transactions of all tasks that have one. What cannot be aborted now is when its timeout is over."""
    transactions = [each.transaction for each in written if each.transaction is not None]
    if not transactions:
        return
    try:
        with Client(**options.kafka) as client:
            for each in transactions:
                try:
                    Producer(client, resume=each).abort()
                except BrokerError as error:  # committed, aborted, or another producer's by now
                    logger.warning("%s", error)
    except ConnectionFailed as error:
        logger.warning("transactions stay open until kafka.transaction.timeout.ms is over: %s", error)
