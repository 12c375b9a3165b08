"""The writers of `kwire-iceberg` and `kwire-delta`, which Spark calls on the driver and in tasks.

    driver   LakeWriter()    creates or evolves the table; the writer carries a FilePlan and the state to the tasks
    tasks    write()         compares offsets with the table's, writes files and returns their metadata and offsets
    driver   commit()        one commit with the micro-batch's number, the query's id and the offsets

Spark makes a writer for each micro-batch. A task of a batch that is committed already writes nothing; if the batch is
committed meanwhile, commit() deletes the files. See docs/table-streams.md.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from kwire.errors import OptionError, TableError
from kwire.lake import Change, KnownOffsets, LakeTable, Mark, Spans, TaskFiles, hull_of, unwrapped_schema
from kwire.lake.arrow_columns import offsets_of
from kwire.lake.compact import compact_table
from kwire.lake.metrics import write_metrics
from kwire.lake.offset_ranges import overlap, subtract, text_of, union
from kwire.lake.row_target import Written
from kwire.lake.state import WRITE_AGAIN
from kwire.spark.lake.options import LakeOptions
from kwire.spark.plain_errors import plain_errors
from kwire.spark.process.worker import SentToWorkers, report_small_batches, warm_up
from kwire.spark.streaming.micro_batch_ids import micro_batch_of_task, task_number

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LakeStreamWriter", "LakeWriter", "TaskWritten"]


logger = logging.getLogger("kwire.spark")


@dataclass
class TaskWritten(WriterCommitMessage):
    """The message of a task to the driver. mark: its micro-batch. skipped: offsets that the table has already.

    topic_ids: of the topics of the rows, where they are known: rows of Spark have none.
    """

    files: Written
    mark: Mark | None
    skipped: Spans = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)


Messages = Sequence[WriterCommitMessage | None]


@plain_errors
class _Writing(SentToWorkers):
    """Base class of batch and streaming writers. overwrite: replace all rows; in a stream, output mode complete."""

    def __init__(self, options: LakeOptions, schema: pa.Schema, *, overwrite: bool) -> None:
        if overwrite and options.merge_key:
            raise OptionError("Option 'mergeKey': requires appending; remove it, or use mode append")
        self.options, self.overwrite = options, overwrite
        if overwrite and options.dead_letters is not None:
            raise OptionError("Option 'deadLetters': requires appending; remove it, or use mode append")
        if overwrite and options.is_by_record:
            raise OptionError("Option 'tableBy': requires appending; remove it, or use mode append")
        with options.open_target() as target:
            wanted = schema
            if not options.is_by_record:
                wanted = schema if options.dead_letters is None else unwrapped_schema(schema)
                wanted = wanted if options.changes is None else options.changes.schema(wanted)
            self.plan = target.prepare(wanted)
        warm_up()

    def write_task(self, rows: Iterator[pa.RecordBatch], mark: Mark | None) -> TaskWritten:
        """Write the rows of one task, unless its batch is committed. Raises TableError."""
        warm_up()
        query = None if mark is None else mark.query
        if mark is not None and mark.is_done(self.plan.state.batches.get(mark.query), self.plan.table):
            spans = hull_of(offsets_of(each) for each in rows)  # commit() compares them with the table's
            return TaskWritten(TaskFiles(spans=spans), mark)
        known = {} if self.overwrite else self.plan.state.foreign(query)
        is_merged = bool(self.options.merge_key) and not self.options.order_by
        new = KnownOffsets(known=known, mode=self.options.on_known_offsets, table=self.plan.table, is_merged=is_merged)
        files = self.plan.write(new.new_rows(report_small_batches(rows)), mark=mark, task=task_number())
        return TaskWritten(files, mark, new.skipped)

    def commit_all(self, messages: Messages) -> None:
        """Commit the files of all tasks. Raises TableError."""
        tasks = [each for each in messages if isinstance(each, TaskWritten)]
        written = [each.files for each in tasks]
        mark = next((each.mark for each in tasks if each.mark is not None), None)
        skipped = hull_of(each.skipped for each in tasks)
        dead = sum(sum(each.dead_rows.values()) for each in written)
        rows = hull_of(each.spans for each in written)  # also of records without a row: dead letters, tombstones
        has_rows = any(each.rows for each in written)
        state = self.plan.state
        is_repeated = mark is not None and mark.is_done(state.batches.get(mark.query), self.plan.table)
        if not has_rows and not rows and not self.overwrite and not is_repeated and (mark is None or not skipped):
            return
        spans = hull_of([skipped, rows])
        is_compared = not self.overwrite and self.options.on_known_offsets != "append"
        known = state.spans if is_compared else None
        merged = rows if self.options.merge_key and not self.options.order_by else {}
        topics = {topic for topic, _ in spans}
        change = Change(
            id=uuid.uuid4().hex,
            mark=mark,
            spans=spans,
            overwrite=self.overwrite,
            known=known,
            merged=merged,
            base=overlap(skipped, state.spans),
            is_repeated=is_repeated,
            topic_ids={name: id for each in tasks for name, id in each.topic_ids.items() if name in topics},
        )
        for (topic, partition), ranges in skipped.items():
            logger.warning(
                "table %s: rows of %s-%d among offsets %s were skipped; the table has them already",
                *(self.plan.table, topic, partition, text_of(ranges)),
            )
        if dead:
            logger.warning("table %s: %d records were dead letters", self.plan.table, dead)
        with self.options.open_target() as target:
            is_new = target.commit(written, change, self.plan)
            if self.options.metrics_file is not None and is_new:
                newest = [each.newest_us for each in written if each.newest_us is not None]
                ends = {key: ranges[-1][1] for key, ranges in state.after(change).spans.items()}
                counts = target.table.counts
                counts = replace(counts, dead_letters=dead, newest_us=max(newest, default=None), ends=ends)
                write_metrics(self.options.metrics_file, self.plan.table, counts)
            if is_new and mark is not None and self._compacts_after(mark):
                for table in target.tables(written, self.plan):
                    self._compact(table)
        if is_new and not self.overwrite:
            self._warn_of_holes(change)
            self._warn_of_earlier_batches(mark)
        warm_up()

    def _compacts_after(self, mark: Mark) -> bool:
        every = self.options.compact_every
        return every is not None and (mark.batch + 1) % every == 0

    def _compact(self, table: LakeTable) -> None:
        """Join small files. A failure leaves the table as it is, with the batch."""
        try:
            for each in compact_table(table):
                logger.info("table %s: %d files are joined into %s", table.name, each.files, each.files_after)
        except TableError as error:
            logger.warning(
                "%s; option compactEvery tries again after %d micro-batches", error, self.options.compact_every
            )

    def _warn_of_earlier_batches(self, mark: Mark | None) -> None:
        """Warn of a checkpoint whose batches went to another table, or to one that was dropped."""
        state = self.plan.state
        if mark is None or not mark.is_strict or not mark.batch or mark.query in {*state.batches, *state.rolled_back}:
            return
        logger.warning(
            "table %s: batch %d is the first one of this query in it; rows of its earlier batches, if there were some, "
            "are in another table or in one that was dropped. 'kwire lake append --fill' appends them",
            *(self.plan.table, mark.batch),
        )

    def _warn_of_holes(self, change: Change) -> None:
        before, after = self.plan.state.holes, self.plan.state.after(change).holes
        remedy = WRITE_AGAIN if self.options.merge_key else "append them with 'kwire lake append --fill'"
        for key in change.spans:
            made = subtract(after.get(key, ()), union(before.get(key, ()), self.plan.state.rows_only.get(key, ())))
            if made:
                logger.warning(
                    "table %s: it has a hole: rows of %s-%d at offsets %s are in no commit. They may be lost, or there "
                    "may be none, as for markers of transactions; %s",
                    *(self.plan.table, *key, text_of(made), remedy),
                )

    def abort_all(self, messages: Messages) -> None:
        """Delete the files of all tasks, if a task has failed.

        Engines abort after a failed commit, too, which has the messages of all tasks. Its files stay: the commit may be
        in the table, and only its response was lost.
        """
        if None not in messages:
            return
        written = [each.files for each in messages if isinstance(each, TaskWritten)]
        if written:
            with self.options.open_target() as target:
                target.discard(written, self.plan)


@plain_errors
class LakeWriter(_Writing, DataSourceArrowWriter):
    """Writes one batch query."""

    def __init__(self, options: LakeOptions, schema: pa.Schema, *, overwrite: bool) -> None:
        if options.compact_every is not None and options.app is None:
            raise OptionError("Option 'compactEvery': requires a stream, or txnVersion; see 'kwire lake compact'")
        super().__init__(options, schema, overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Write the rows of one task; called in a worker. Raises TableError."""
        app = self.options.app
        return self.write_task(iterator, None if app is None else Mark(query=app[0], batch=app[1], is_strict=False))

    def commit(self, messages: Messages) -> None:
        """Commit the files of all tasks. Raises TableError."""
        self.commit_all(messages)

    def abort(self, messages: Messages) -> None:
        """Delete the files of all tasks."""
        self.abort_all(messages)


@plain_errors
class LakeStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """Writes one micro-batch of a streaming query."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Write the rows of one task; called in a worker. Raises TableError, OptionError."""
        micro_batch = micro_batch_of_task()
        if micro_batch is None:
            raise OptionError("this task belongs to no micro-batch, so its rows cannot be written once; use Spark")
        return self.write_task(iterator, Mark(query=micro_batch[0], batch=micro_batch[1]))

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 (Spark's name)
        """Commit the files of a micro-batch. Raises TableError."""
        self.commit_all(messages)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Delete the files of a micro-batch; a task has failed."""
        self.abort_all(messages)
