"""Run a job on Spark: work items as Python tasks, each of which returns a row.

    driver      plans items -> groups them into tasks -> spark.range(n).select(udf(id)) -> collects a result per item
    worker      processes its items one by one; a failed item returns its error

A plain UDF also works with Spark Connect, which has no SparkContext, and without pandas, which mapInArrow requires.
Executors need kwire. Spark retries a task whose process is killed; an item's own error is not retried, because another
attempt reads the same bytes.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kwire.errors import JobFailed, KwireError, LogError
from kwire.spark.jobs.journal import Journal, Row, entry_name, remove
from kwire.spark.packing import OPEN_COST_BYTES, SMALLEST_TASK_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "Item",
    "JobRun",
    "Outcome",
    "Progress",
    "ProgressCallback",
    "Work",
    "group_items",
    "raise_failures",
    "run_items",
]

ItemResult = tuple[int, str | None, str | None]
"""Number of the item, its row as JSON, its error."""

RESULTS_DDL = "array<struct<item: int, row: string, problem: string>>"
POLL_INTERVAL_S = 1.0

logger = logging.getLogger("kwire.spark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A unit of work, processed by one task.

    name: for errors and the journal (orders-0). size_bytes: size of the input. subject: input of the job's Work;
    pickles. fingerprint: changes with the input; in JSON's types. output: the file or directory that exists when the
    item is complete, or None.
    """

    name: str
    size_bytes: int
    subject: Any
    fingerprint: object = None
    output: str | None = None


class Work(Protocol):
    """The work of a job on one item, in a worker. Picklable."""

    def __call__(self, item: Item, attempt: str) -> Row:
        """Process an item and return its row. attempt: a directory to write to, "" without a journal.

        An exception fails the item.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a job. done, total: items; done_bytes, total_bytes: their sizes."""

    job: str
    done: int
    total: int
    done_bytes: int
    total_bytes: int

    def __str__(self) -> str:
        return f"{self.job}: {self.done} of {self.total} done, {self.done_bytes >> 20} of {self.total_bytes >> 20} MiB"


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of an item: its row, or its error."""

    item: Item
    row: Row | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """The results of all items, in their order. resumed: number of items that an earlier run completed."""

    outcomes: tuple[Outcome, ...]
    resumed: int
    seconds: float

    @property
    def rows(self) -> list[Row]:
        """The rows of successful items."""
        return [each.row for each in self.outcomes if each.row is not None]

    @property
    def failures(self) -> tuple[tuple[str, str], ...]:
        """(name, error) of failed items."""
        return tuple((each.item.name, each.problem) for each in self.outcomes if each.problem is not None)


def group_items(items: Sequence[Item]) -> list[list[Item]]:
    """Group items into tasks: large ones alone and first, small ones together up to SMALLEST_TASK_BYTES."""
    tasks: list[list[Item]] = []
    task: list[Item] = []
    size = 0
    for item in sorted(items, key=lambda each: -each.size_bytes):
        cost = item.size_bytes + OPEN_COST_BYTES
        if task and size + cost > SMALLEST_TASK_BYTES:
            tasks.append(task)
            task, size = [], 0
        task.append(item)
        size += cost
    return [*tasks, task] if task else tasks


def run_items(
    spark: SparkSession,
    job: str,
    items: Sequence[Item],
    work: Work,
    *,
    journal: Journal | None = None,
    progress: ProgressCallback | None = None,
) -> JobRun:
    """Process all items that are not in the journal; failed items do not raise. The journal has been started.

    progress: with a journal, called about once a second from another thread; without one only at the end, since Spark
    returns the rows of tasks when the job ends. The default logs each change.
    Raises Spark's error if it gives up on a task.
    """
    started = time.monotonic()
    done_before = {} if journal is None else _completed(journal, items)
    todo = [item for item in items if item.name not in done_before]
    total_bytes = sum(item.size_bytes for item in items)
    callback = progress or (lambda state: logger.info("%s", state))

    def report(names: Iterable[str]) -> None:
        completed = set(names)
        done = [item for item in items if item.name in completed]
        callback(
            Progress(
                job=job,
                done=len(done),
                total=len(items),
                done_bytes=sum(item.size_bytes for item in done),
                total_bytes=total_bytes,
            )
        )

    by_name: dict[str, Outcome] = {}
    if todo:
        with _watch(journal, items, report):
            by_name = on_spark(spark, todo, work, journal)
        for each in by_name.values():
            output = each.item.output
            if each.row is not None and journal is not None and output is not None and not journal.files.exists(output):
                raise LogError("missing: driver and executors must share a file system", output)
    outcomes = tuple(
        Outcome(item=item, row=done_before[item.name]) if item.name in done_before else by_name[item.name]
        for item in items
    )
    report(each.item.name for each in outcomes if each.row is not None)
    return JobRun(outcomes=outcomes, resumed=len(done_before), seconds=time.monotonic() - started)


def raise_failures(job: str, run: JobRun, result: object, hint: str) -> None:
    """Raise JobFailed if items have failed. result: of the successful items. hint: the remedy."""
    if not run.failures:
        return
    name, cause = run.failures[0]
    more = f", and {len(run.failures) - 1} more" if len(run.failures) > 1 else ""
    failed = JobFailed(
        f"{job}: {len(run.failures)} of {len(run.outcomes)} failed: {name}: {cause}{more}; {hint}", run.failures
    )
    failed.result = result
    raise failed


def _completed(journal: Journal, items: Sequence[Item]) -> dict[str, Row]:
    """Return the rows of items that an earlier run completed; the output of other items is removed."""
    rows: dict[str, Row] = {}
    for item in items:
        row = journal.row(item.name, item.fingerprint)
        if row is not None and (item.output is None or journal.files.exists(item.output)):
            rows[item.name] = row
            continue
        journal.forget([item.name])
        if item.output is not None:
            remove(journal.files, item.output)
    return rows


@contextmanager
def _watch(journal: Journal | None, items: Sequence[Item], report: Callable[[Iterable[str]], None]) -> Iterator[None]:
    """Report the entries that appear in the journal while the block runs."""
    if journal is None:
        yield
        return
    names = {entry_name(item.name): item.name for item in items}
    stopped = threading.Event()

    def poll() -> None:
        before = -1
        while not stopped.wait(POLL_INTERVAL_S):
            try:
                done = [names[name] for name in journal.files.list(f"{journal.path}/done") if name in names]
            except KwireError:  # skip one report; tasks report errors of the directory
                continue
            if len(done) != before:
                before = len(done)
                report(done)

    thread = threading.Thread(target=poll, name="kwire-job-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def on_spark(spark: SparkSession, items: Sequence[Item], work: Work, journal: Journal | None) -> dict[str, Outcome]:
    """Process items in one Spark job; return outcomes by name."""
    from pyspark.sql.functions import udf

    numbers = {item.name: number for number, item in enumerate(items)}
    tasks = [[numbers[item.name] for item in task] for task in group_items(items)]
    all_items = tuple(items)

    def task(number: int) -> list[ItemResult]:
        return do_task(tasks[number], all_items, work, journal)

    # nondeterministic: Spark may neither skip nor repeat calls. range() creates one row per partition
    results = udf(task, RESULTS_DDL, useArrow=False).asNondeterministic()
    frame = spark.range(0, len(tasks), 1, len(tasks)).select(results("id"))
    outcomes: dict[str, Outcome] = {}
    for (task_results,) in frame.collect():
        for number, row, problem in task_results:
            item = items[number]
            outcomes[item.name] = Outcome(item=item, row=None if row is None else json.loads(row), problem=problem)
    return outcomes


def do_task(task: Sequence[int], items: Sequence[Item], work: Work, journal: Journal | None) -> list[ItemResult]:
    """Process the items of a task, given by number; called in a worker."""
    results = []
    for number in task:
        row, problem = _do_item(items[number], work, journal)
        results.append((number, None if row is None else json.dumps(row), problem))
    return results


def _do_item(item: Item, work: Work, journal: Journal | None) -> tuple[Row | None, str | None]:
    """Return (row, error) of an item, one of them None."""
    try:
        if journal is None:
            return work(item, ""), None
        with journal.attempt() as attempt:
            row = work(item, attempt)
        journal.add(item.name, item.fingerprint, row)
        return row, None
    except KwireError as error:
        return None, str(error)
    except Exception as error:  # a bug fails its item, and other items continue
        where = traceback.extract_tb(error.__traceback__)[-1]
        return None, f"{type(error).__name__}: {error} ({where.name}, line {where.lineno} of {where.filename})"
