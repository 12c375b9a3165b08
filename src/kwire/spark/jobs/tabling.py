"""table: the records of logs into an Iceberg or Delta table, from the offsets that the table has to the ends.

    driver    new offsets of each partition -> ranges -> steps of a bounded size
    tasks     ranges as Arrow batches -> Parquet files, whose names return to the driver; small ranges share files
    driver    a commit for each step: the files, and the offsets of their partitions

Rows do not pass through Spark's JVM. Nothing but the table says what is complete, so there is no journal: a job that
was killed loses the files of one step, which `kwire lake clean` deletes. See docs/table-append.md.
"""

from __future__ import annotations

import base64
import logging
import pickle
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, cast

from kwire.errors import KwireError, LogError, OptionError, did_you_mean
from kwire.identifiers import TopicPartition
from kwire.lake import open_table
from kwire.lake.append import ReadNotes, RowOptions, missing_offsets, read_offsets, topic_ids_of
from kwire.lake.changes import Changes
from kwire.lake.data_files import TaskFiles
from kwire.lake.dead_letters import DeadLetterTarget, mode_for_dead_letters, open_dead_letters
from kwire.lake.letter_topic import DeadLetterTopic
from kwire.lake.metrics import write_metrics
from kwire.lake.offset_ranges import Ranges, Spans, subtract, union
from kwire.lake.record_tables import RecordTables
from kwire.lake.row_target import RowTarget, TargetPlan, Written
from kwire.lake.state import Change
from kwire.lake.table import LakeTable, Layout
from kwire.log.reading.paths import StorageOptions, open_logs
from kwire.schemas.choice import SchemaChoice
from kwire.schemas.record_values import ValueDecoding
from kwire.spark.jobs.choice import as_list, select_logs
from kwire.spark.jobs.journal import Row
from kwire.spark.jobs.result import JobResult, result_of
from kwire.spark.jobs.runner import Item, JobRun, Outcome, Progress, ProgressCallback, run_items
from kwire.spark.packing import RECORD_BYTES, SMALLEST_TASK_BYTES, TaskSizes, group_small

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from kwire.log.files.file_names import Ignored
    from kwire.log.reading.readable_log import ReadableLog
    from kwire.log.reading.runs import Isolation
    from kwire.schemas import Registry

__all__ = ["table"]

RECORD_OPTIONS = ("table_by", "max_tables")
VALUE_OPTIONS = ("subject", "schema", "mode", "message", "names", "recursive_field_max_depth", *RECORD_OPTIONS)
STEP_BYTES = 8 << 30  # of logs, in a commit
MERGED_STEP_BYTES = 256 << 20  # with merge_key, since the driver merges the rows of a commit in memory
COLUMNS = {
    "topic": "string",
    "partition": "int",
    "start_offset": "bigint",
    "end_offset": "bigint",
    "rows": "bigint",
    "dead_letters": "bigint",
    "problem": "string",
}

logger = logging.getLogger("kwire.spark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Offsets [start, end) of a partition, for one task. log: None in a cluster, which tasks connect to."""

    key: TopicPartition
    start: int
    end: int
    size_bytes: int
    log: ReadableLog | None
    topic_id: uuid.UUID | None


@dataclass(slots=True, kw_only=True)
class RangesDone:
    """Ranges in the same files: for each the number of rows, notes, and the offsets that the table still lacks.

    failure: why none of it was written.
    """

    written: Written = field(default_factory=TaskFiles)
    ranges: list[tuple[int, list[str], Ranges]] = field(default_factory=list)
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRanges:
    """Writes the files of ranges. rows: what records become. cluster: its URL; settings: of the client.

    Its row is a list, with an entry for each part that has its own files.
    """

    plan: TargetPlan
    rows: RowOptions
    cluster: str | None
    settings: Mapping[str, object] = field(repr=False)

    def __call__(self, item: Item, attempt: str) -> Row:
        parts: Sequence[Range] = item.subject
        try:
            done = [self._write(parts)]
        except KwireError as error:
            # without the one that fails: its rows must not be in the files of the others
            done = [RangesDone(failure=str(error))] if len(parts) == 1 else [self._write_alone(part) for part in parts]
        return {"done": base64.b64encode(pickle.dumps(done)).decode()}

    def _write_alone(self, part: Range) -> RangesDone:
        try:
            return self._write([part])
        except KwireError as error:
            return RangesDone(failure=str(error))

    def _write(self, parts: Sequence[Range]) -> RangesDone:
        done = RangesDone()
        rows = chain.from_iterable(self._read(part, done) for part in parts)
        done.written = self.plan.write(rows)
        return done

    def _read(self, part: Range, done: RangesDone) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range; add their number, and what is not there, to `done`."""
        notes, rows = ReadNotes(), 0
        with self._open(part) as (log, ignored):
            offsets = (part.start, part.end)
            for batch in read_offsets(log, offsets, self.rows, notes):
                rows += len(batch)
                yield batch
            changes = [each.reason for each in ignored if each.name == f"{log.topic}-{log.partition}"]
        done.ranges.append((rows, [*notes.problems, *changes], notes.lacking))

    @contextmanager
    def _open(self, part: Range) -> Iterator[tuple[ReadableLog, Sequence[Ignored]]]:
        """Return the log, and a list to which reading it adds what it skips."""
        if part.log is not None:
            yield part.log, ()
            return
        from kwire.client.cluster_logs import ClusterLogs

        assert self.cluster is not None
        logs = ClusterLogs(self.cluster, **self.settings)
        try:
            log = logs[part.key]
            if log.topic_id != part.topic_id:
                raise LogError("the topic was deleted and created again while the job ran", log.url)
            yield log, logs.ignored
        finally:
            logs.close()


@dataclass(slots=True, kw_only=True)
class Partition:
    """How far a partition is. ranges: what is left. failure: why it stopped. notes: what was not appended, and why."""

    start: int
    end: int
    done: int
    ranges: list[Range]
    rows: int = 0
    dead: int = 0
    failure: str | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _StepFiles:
    """Files that the tasks of a step have written. useful: to commit; useless: after a failure, to delete."""

    useful: list[RangesDone] = field(default_factory=list)
    useless: list[RangesDone] = field(default_factory=list)


def table(
    spark: SparkSession,
    path: str | Sequence[str],
    target: str,
    *,
    catalog: Mapping[str, str] | None = None,
    table_storage: Mapping[str, str] | None = None,
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
    merge_key: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    isolation: Isolation = "read_committed",
    headers: bool = False,
    fill: bool = False,
    registry: str | Registry | None = None,
    values: Mapping[str, object] | None = None,
    changes: str | Changes | None = None,
    dead_letters: str | None = None,
    metrics_file: str | None = None,
    settings: Mapping[str, object] | None = None,
    progress: ProgressCallback | None = None,
    storage: StorageOptions | None = None,
) -> JobResult:
    """Append the records of logs to a table, from the offsets that the table has to the end of each partition.

    path: log directories, partitions, globs or URLs, also tiered+URL; or kafka://host:port[,host:port][/topic]. target:
    an Iceberg table NAMESPACE.NAME, or the path or URL of a Delta table, which has a slash; created if it is missing.
    catalog: properties of an Iceberg catalog. table_storage: options of a Delta table's object store. topics: names and
    patterns (*, ?), all by default. merge_key: columns to replace rows by, as for a compacted topic. partition_by: of a
    new table. fill: also append what the table lacks in holes and before its first offset. registry: a schema registry,
    its URL or a folder. Values are then decoded; values: options subject, schema, mode, message and names of
    kwire.schemas.decode_arrow; by default those of one topic, as its latest schema. With the option table_by "record",
    each record type has a table, up to max_tables (100), and target is their index. changes: "debezium" for changes of
    a database, or a kwire.lake.Changes with order_by or delete_when. dead_letters: a table, in the same catalog or
    object store, or the URL of a topic, for records that cannot be decoded or stored. metrics_file: a local file of the
    driver in Prometheus' text format. settings: of the client of a cluster, also of that topic, by Kafka's names.
    storage: of the logs' file system. The same call appends what is new since, and continues a job that was killed.
    Raises OptionError, LogError, TableError, RegistryError, BrokerError, ConnectionFailed; JobFailed when all other
    partitions are complete.
    """
    from kwire.log.reading.runs import check_bounds
    from kwire.records.columns.reader import COLUMNS as RECORD_COLUMNS

    started = time.monotonic()
    _check_lists(merge_key=merge_key, partition_by=partition_by)
    check_bounds(0, isolation)
    choice = _choice(registry, values or {}, has_dead_letters=dead_letters is not None)
    with ExitStack() as tables:
        open_named = partial(open_table, catalog=catalog, storage=table_storage)
        lake, dead = _open_tables(tables, (target, dead_letters), open_named, settings)
        layout = Layout(partition_by=tuple(partition_by))
        records = _records(values or {}, choice, target, open_named, layout, has_dead_letters=dead is not None)
        with ExitStack() as stack:
            cluster, logs = _open_logs(as_list(path), _settings_of_logs(path, dead, settings), storage or {}, stack)
            chosen = select_logs(logs, topics, partitions)
            rows = RowOptions(
                isolation=isolation,
                columns=tuple(RECORD_COLUMNS) if headers else (),
                decoding=None if records is not None else _resolve(choice, chosen, is_wrapped=dead is not None),
                changes=Changes.of(changes, merge_key),
                merge_key=tuple(merge_key),
                records=records,
            )
            row_target = rows.target(lake, layout, dead)
            group_bytes, planned = _plan(row_target, chosen, rows, fill=fill, is_cluster=cluster is not None)
            topic_ids = topic_ids_of(chosen.values(), lake.name)
        job = TableJob(
            spark=spark,
            target=row_target,
            rows=rows,
            cluster=cluster,
            settings=dict(settings or {}),
            group_bytes=group_bytes,
            topic_ids=topic_ids,
        )
        resumed = sum(each.start == each.end for each in planned.values())
        with _metrics(metrics_file, lake, planned):
            job.run(planned, progress or (lambda state: logger.info("%s", state)))
    run = JobRun(outcomes=_outcomes(planned), resumed=resumed, seconds=time.monotonic() - started)
    return result_of(spark, "table", run, COLUMNS, f"what was committed is in {target}; run the job again to continue")


def _open_tables(
    stack: ExitStack,
    names: tuple[str, str | None],
    open_named: Callable[[str], LakeTable],
    settings: Mapping[str, object] | None,
) -> tuple[LakeTable, DeadLetterTarget | None]:
    """Return the table of rows, and the table or topic of dead letters if there is one."""
    rows = stack.enter_context(open_named(names[0]))
    if names[1] is None:
        return rows, None
    dead = open_dead_letters(names[1], open_named, settings)
    stack.enter_context(dead)
    return rows, dead


def _resolve(
    choice: SchemaChoice | None, topics: Iterable[TopicPartition], *, is_wrapped: bool
) -> ValueDecoding | None:
    """Return how values are decoded. Raises the errors of ValueDecoding.resolve."""
    if choice is None:
        return None
    return ValueDecoding.resolve(choice, (topic for topic, _ in topics), is_wrapped=is_wrapped)


def _settings_of_logs(
    path: str | Sequence[str], dead: DeadLetterTarget | None, settings: Mapping[str, object] | None
) -> dict[str, object]:
    """Return the settings of the client of a cluster; with a log directory, they may be those of dead letters only."""
    from kwire.client.address import is_cluster_url

    if isinstance(dead, DeadLetterTopic) and not any(is_cluster_url(each) for each in as_list(path)):
        return {}
    return dict(settings or {})


def _records(
    values: Mapping[str, object],
    choice: SchemaChoice | None,
    name: str,
    open_named: Callable[[str], LakeTable],
    layout: Layout,
    *,
    has_dead_letters: bool,
) -> RecordTables | None:
    """Return the tables by record type of the option table_by; None without it. Raises OptionError, RegistryError."""
    table_by, limit = (values.get(option) for option in RECORD_OPTIONS)
    if table_by is None and limit is None:
        return None
    if table_by != "record":
        raise OptionError(f"values: table_by: expected 'record', got {table_by!r}")
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise OptionError(f"values: max_tables: expected a number from 1, got {limit!r}")
    if choice is None:
        raise OptionError("values: table_by: requires registry, whose schemas name the record types")
    return RecordTables.of(choice, name, open_named, layout, limit=limit, has_dead_letters=has_dead_letters)


def _check_lists(**given: Sequence[str]) -> None:
    """Raise OptionError for a string instead of a list of columns."""
    for name, columns in given.items():
        if isinstance(columns, str):
            raise OptionError(f"{name}: expected a list of columns, got the string {columns!r}")


def _choice(
    registry: str | Registry | None, options: Mapping[str, object], *, has_dead_letters: bool
) -> SchemaChoice | None:
    """Return the choice of the schema of values. Raises OptionError."""
    unknown = [name for name in options if name not in VALUE_OPTIONS]
    if unknown:
        known = ", ".join(VALUE_OPTIONS)
        raise OptionError(f"values: unknown option '{unknown[0]}'{did_you_mean(unknown[0], VALUE_OPTIONS)}; {known}")
    if has_dead_letters and registry is not None:
        options = {**options, "mode": mode_for_dead_letters(options.get("mode"), "dead_letters")}
    options = {name: value for name, value in options.items() if name not in RECORD_OPTIONS}
    return SchemaChoice.of_options(registry, options)


@contextmanager
def _metrics(path: str | None, lake: LakeTable, planned: Mapping[TopicPartition, Partition]) -> Iterator[None]:
    """Add what the job has committed to a file of metrics at its end, also if it fails."""
    try:
        yield
    finally:
        if path is not None:
            _write_metrics(path, lake, planned)


def _write_metrics(path: str, lake: LakeTable, planned: Mapping[TopicPartition, Partition]) -> None:
    with suppress(KwireError):  # the end offsets are then those of the last commit that was seen
        lake.refresh()
    ends = {key: ranges[-1][1] for key, ranges in lake.state().spans.items()}
    dead = sum(each.dead for each in planned.values())
    write_metrics(path, lake.name, replace(lake.counts, dead_letters=dead, ends=ends))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJob:
    """Writes and commits ranges, step by step."""

    spark: SparkSession
    target: RowTarget
    rows: RowOptions
    cluster: str | None
    settings: Mapping[str, object] = field(repr=False)
    group_bytes: int
    topic_ids: Mapping[str, str]

    def run(self, partitions: Mapping[TopicPartition, Partition], progress: ProgressCallback) -> None:
        """Append all ranges. Raises TableError; what was committed before is noted in `found`."""
        total = [part for each in partitions.values() for part in each.ranges]
        while step := _next_step(partitions, MERGED_STEP_BYTES if self.rows.merge_key else STEP_BYTES):
            self._append(step, partitions)
            left = [part for each in partitions.values() for part in each.ranges]
            total_bytes = sum(part.size_bytes for part in total)
            progress(
                Progress(
                    job="table",
                    done=len(total) - len(left),
                    total=len(total),
                    done_bytes=total_bytes - sum(part.size_bytes for part in left),
                    total_bytes=total_bytes,
                )
            )

    def _append(self, step: Sequence[Range], partitions: Mapping[TopicPartition, Partition]) -> None:
        """Write the files of a step in tasks and commit those before the first failure of each partition."""
        schema = self.rows.table_schema(has_dead_letters=self.target.dead_letters is not None)
        plan = self.target.prepare(schema)
        work = WriteRanges(
            plan=plan,
            rows=self.rows,
            cluster=self.cluster,
            settings=self.settings,
        )
        open_cost = TaskSizes().open_cost
        groups = group_small(step, lambda part: part.size_bytes + open_cost, self.group_bytes)
        items = [_item(parts) for parts in groups]
        done = run_items(self.spark, "table", items, work, progress=lambda _: None)
        written_now = _StepFiles()
        spans, rows = Spans(), dict[TopicPartition, int]()
        ends = dict[TopicPartition, int]()
        held = set[TopicPartition]()  # of which a range is missing; the next step has what can be read of them
        for parts, written in (each for outcome in done.outcomes for each in _results(outcome)):
            if written.failure is not None:
                for part in parts:
                    partitions[part.key].failure = partitions[part.key].failure or written.failure
                continue
            if any(partitions[part.key].failure is not None or part.key in held for part in parts):
                written_now.useless.append(written)
                held.update(part.key for part in parts)
                continue
            written_now.useful.append(written)
            for part, (count, notes, lacking) in zip(parts, written.ranges, strict=True):
                partitions[part.key].notes += notes
                rows[part.key] = rows.get(part.key, 0) + count
                ends[part.key] = max(part.end, ends.get(part.key, 0))
                if done_now := subtract(((part.start, part.end),), lacking):
                    spans[part.key] = union(spans.get(part.key, ()), done_now)
        self.target.discard([each.written for each in written_now.useless], plan)
        if spans:
            topics = {topic for topic, _ in spans}
            change = Change(
                id=uuid.uuid4().hex,
                spans=spans,
                known={},
                merged=spans if self.rows.merge_key and not self.rows.order_by else {},
                topic_ids={topic: topic_id for topic, topic_id in self.topic_ids.items() if topic in topics},
            )
            self.target.commit([each.written for each in written_now.useful], change, plan)
        for key, partition in partitions.items():
            if key in ends:
                partition.done = ends[key]
                dead_rows = sum(each.written.dead_rows.get(key, 0) for each in written_now.useful)
                known_rows = sum(each.written.known_rows.get(key, 0) for each in written_now.useful)
                partition.rows += rows[key] - dead_rows - known_rows
                partition.dead += dead_rows
            left = [part for part in partition.ranges if part.start >= partition.done]
            partition.ranges = [] if partition.failure is not None else left


def _open_logs(
    paths: Sequence[str], settings: Mapping[str, object], storage: StorageOptions, stack: ExitStack
) -> tuple[str | None, Mapping[TopicPartition, ReadableLog]]:
    """Return the URL of the cluster, if it is one, and the logs."""
    from kwire.client.address import is_cluster_url

    clusters = [path for path in paths if is_cluster_url(path)]
    if not clusters:
        if settings:
            raise OptionError("settings: configs of a client, which require the URL of a cluster, kafka://host:port")
        return None, cast("Mapping[TopicPartition, ReadableLog]", open_logs(paths, storage))
    if len(paths) > 1:
        raise OptionError(f"{clusters[0]}: a cluster is read alone; run a job for each path")
    if storage:
        raise OptionError("storage: arguments of a file system, which require the path or URL of logs")
    from kwire.client.cluster_logs import ClusterLogs

    logs = ClusterLogs(clusters[0], **settings)
    stack.callback(logs.close)
    for each in logs.ignored:
        logger.warning("table: ignored %s: %s", each.name, each.reason)
    return clusters[0], cast("Mapping[TopicPartition, ReadableLog]", logs.partitions)


def _plan(
    target: RowTarget,
    logs: Mapping[TopicPartition, ReadableLog],
    rows: RowOptions,
    *,
    fill: bool,
    is_cluster: bool,
) -> tuple[int, dict[TopicPartition, Partition]]:
    """Load the table, and divide the new offsets of each log into ranges.

    Returns the size of ranges, up to which small ones share files, too. Raises TableError for a log that ends before
    the table, and for another layout than the table's.
    """
    lake = target.table
    lake.refresh()
    target.check_layout()
    target.recover()
    warned = set[str]()
    missing = {
        key: missing_offsets(lake, log, rows.isolation, fill=fill, merge_key=rows.merge_key, warned=warned)
        for key, log in logs.items()
    }
    densities = {key: _bytes_per_offset(log) for key, log in logs.items()}
    total = sum(int((each.end - each.start) * densities[key]) for key, spans in missing.items() for each in spans)
    limit = TaskSizes().task_bytes(total, len(logs), SMALLEST_TASK_BYTES)
    partitions = {}
    for key, log in logs.items():
        count = max(int(limit / densities[key]), 1)
        ranges = [
            Range(
                key=key,
                start=first,
                end=min(first + count, each.end),
                size_bytes=int((min(first + count, each.end) - first) * densities[key]),
                log=None if is_cluster else log,
                topic_id=log.topic_id if is_cluster else None,
            )
            for each in missing[key]
            for first in range(each.start, each.end, count)
        ]
        start = missing[key][0].start
        notes = [each.problem for each in missing[key] if each.problem is not None]
        partitions[key] = Partition(start=start, end=missing[key][-1].end, done=start, ranges=ranges, notes=notes)
    return limit, partitions


def _bytes_per_offset(log: ReadableLog) -> float:
    count = log.log_end_offset - log.log_start_offset
    size = log.size_bytes
    return RECORD_BYTES if size is None or count <= 0 else max(size / count, 0.001)


def _next_step(partitions: Mapping[TopicPartition, Partition], max_bytes: int) -> list[Range]:
    """Return the next ranges of all partitions up to a size, in the order of each partition; at least one."""
    step, size = list[Range](), 0
    for turn in range(max((len(each.ranges) for each in partitions.values()), default=0)):
        for each in partitions.values():
            if turn >= len(each.ranges):
                continue
            if step and size + each.ranges[turn].size_bytes > max_bytes:
                return step
            step.append(each.ranges[turn])
            size += each.ranges[turn].size_bytes
    return step


def _item(parts: Sequence[Range]) -> Item:
    size = sum(part.size_bytes for part in parts)
    return Item(name=f"{parts[0].key[0]}-{parts[0].key[1]} from {parts[0].start}", size_bytes=size, subject=parts)


def _results(outcome: Outcome) -> Iterator[tuple[Sequence[Range], RangesDone]]:
    """Return the ranges of an item that share files, with their result."""
    parts: Sequence[Range] = outcome.item.subject
    if outcome.row is None:
        yield parts, RangesDone(failure=outcome.problem)
        return
    done = cast("list[RangesDone]", pickle.loads(base64.b64decode(outcome.row["done"])))
    if len(done) == 1:
        yield parts, done[0]
        return
    for part, each in zip(parts, done, strict=True):
        yield [part], each


def _outcomes(partitions: Mapping[TopicPartition, Partition]) -> tuple[Outcome, ...]:
    """Return the result of each partition."""
    return tuple(
        Outcome(
            item=Item(name=f"{key[0]}-{key[1]}", size_bytes=0, subject=key),
            row={
                "start_offset": each.start,
                "end_offset": each.done,
                "rows": each.rows,
                "dead_letters": each.dead,
                "problem": "; ".join(each.notes) or None,
            }
            if each.failure is None
            else None,
            problem=each.failure,
        )
        for key, each in partitions.items()
    )
