"""The micro-batch that a task belongs to. Source: StreamExecution.QUERY_ID_KEY, MicroBatchExecution.BATCH_ID_KEY."""

from __future__ import annotations

from pyspark import TaskContext

__all__ = ["micro_batch_of_task", "task_number"]

QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"  # local properties of a streaming query


def micro_batch_of_task() -> tuple[str, int] | None:
    """Return the query's id, which its checkpoint keeps, and the batch's number; None outside of a streaming query."""
    context = TaskContext.get()
    if context is None:
        return None
    query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    return (query, int(batch)) if query and batch else None


def task_number() -> int:
    """Return the number of this task in its stage."""
    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
