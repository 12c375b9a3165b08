"""How jobs run on Spark: work items spread over Python tasks, a row back from each.

    driver      plans items -> groups them into tasks -> spark.range(n).select(udf(id)) -> collects an answer an item
    worker      does its items one after another; an item that fails has an answer too, with its cause

A plain function works with Spark Connect as well, where there is no SparkContext, and without pandas, which mapInArrow
asks for. Executors need the package installed, as for the data sources. Spark itself retries a task whose process dies;
an item's own error is not tried again, since another attempt reads the same bytes.
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
from kwire.spark.jobs.journal import Journal, Row, file_name, remove
from kwire.spark.log.planning import OPEN_COST_BYTES, TASK_BYTES
from kwire.spark.worker import prepare_worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Done", "Item", "Outcome", "Progress", "ToldProgress", "Work", "group_items", "raise_failures", "run_items"]

Answer = tuple[int, str | None, str | None]
"""Number of the item, its row as JSON, its problem."""

ANSWERS = "array<struct<item: int, row: string, problem: string>>"
SECONDS_BETWEEN_LOOKS = 1.0

logger = logging.getLogger("kwire.spark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One piece of work, for one task.

    name: in errors and in the journal (orders-0). size_bytes: how much it is. subject: what the job's work takes;
    pickles. fingerprint: what changes when the input does, in JSON's types. place: the file or directory that is there
    when it is done, None without one.
    """

    name: str
    size_bytes: int
    subject: Any
    fingerprint: Any = None
    place: str | None = None


class Work(Protocol):
    """What a job does with an item, in a worker; pickles."""

    def __call__(self, item: Item, attempt: str) -> Row:
        """Do it; returns the row of the result, in JSON's types. attempt: a directory to write to, "" without journal.

        Whatever it raises is the item's failure.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a job is. done, total: items; done_bytes, total_bytes: their sizes."""

    job: str
    done: int
    total: int
    done_bytes: int
    total_bytes: int

    def __str__(self) -> str:
        return f"{self.job}: {self.done} of {self.total} done, {self.done_bytes >> 20} of {self.total_bytes >> 20} MiB"


ToldProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an item: its row, or its problem."""

    item: Item
    row: Row | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of all items, in their order. resumed: how many an earlier run had done."""

    outcomes: tuple[Outcome, ...]
    resumed: int
    seconds: float

    @property
    def rows(self) -> list[Row]:
        """Those of the items that were done."""
        return [each.row for each in self.outcomes if each.row is not None]

    @property
    def failures(self) -> tuple[tuple[str, str], ...]:
        """(name, cause) of the others."""
        return tuple((each.item.name, each.problem) for each in self.outcomes if each.problem is not None)


def group_items(items: Sequence[Item]) -> list[list[Item]]:
    """Items as tasks: large ones alone and first, small ones together until they come to TASK_BYTES."""
    tasks: list[list[Item]] = []
    waiting: list[Item] = []
    size = 0
    for item in sorted(items, key=lambda each: -each.size_bytes):
        cost = item.size_bytes + OPEN_COST_BYTES
        if waiting and size + cost > TASK_BYTES:
            tasks.append(waiting)
            waiting, size = [], 0
        waiting.append(item)
        size += cost
    return [*tasks, waiting] if waiting else tasks


def run_items(
    spark: SparkSession,
    job: str,
    items: Sequence[Item],
    work: Work,
    *,
    journal: Journal | None = None,
    progress: ToldProgress | None = None,
) -> Done:
    """Do all items that the journal does not have; raises no item's error. The journal has begun.

    progress: told about once a second from a thread of its own where there is a journal, otherwise at the end only:
    Spark tells nobody of a task's rows before a job ends. Without one, the log has a line whenever something was done.
    Raises what Spark raises when it gives up on a task.
    """
    began = time.monotonic()
    kept = {} if journal is None else done_before(journal, items)
    todo = [item for item in items if item.name not in kept]
    total_bytes = sum(item.size_bytes for item in items)
    tell = progress or (lambda state: logger.info("%s", state))

    def told(names: Iterable[str]) -> None:
        there = set(names)
        done = [item for item in items if item.name in there]
        tell(
            Progress(
                job=job,
                done=len(done),
                total=len(items),
                done_bytes=sum(item.size_bytes for item in done),
                total_bytes=total_bytes,
            )
        )

    found: dict[str, Outcome] = {}
    if todo:
        with watched(journal, items, told):
            found = on_spark(spark, todo, work, journal)
        for each in found.values():
            place = each.item.place
            if each.row is not None and journal is not None and place is not None and not journal.files.exists(place):
                raise LogError("not here: driver and executors need a file system that all of them see", place)
    outcomes = tuple(
        Outcome(item=item, row=kept[item.name]) if item.name in kept else found[item.name] for item in items
    )
    told(each.item.name for each in outcomes if each.row is not None)
    return Done(outcomes=outcomes, resumed=len(kept), seconds=time.monotonic() - began)


def raise_failures(job: str, done: Done, result: object, hint: str) -> None:
    """Raise JobFailed where items have failed. result: what the job returns otherwise. hint: what to do."""
    if not done.failures:
        return
    name, cause = done.failures[0]
    more = f", and {len(done.failures) - 1} more" if len(done.failures) > 1 else ""
    failed = JobFailed(
        f"{job}: {len(done.failures)} of {len(done.outcomes)} failed: {name}: {cause}{more}; {hint}", done.failures
    )
    failed.result = result
    raise failed


def done_before(journal: Journal, items: Sequence[Item]) -> dict[str, Row]:
    """Rows of items that an earlier run has done; of others, what may stand in their places is removed."""
    kept: dict[str, Row] = {}
    for item in items:
        row = journal.done(item.name, item.fingerprint)
        if row is not None and (item.place is None or journal.files.exists(item.place)):
            kept[item.name] = row
            continue
        journal.forget([item.name])
        if item.place is not None:
            remove(journal.files, item.place)
    return kept


@contextmanager
def watched(journal: Journal | None, items: Sequence[Item], told: Callable[[Iterable[str]], None]) -> Iterator[None]:
    """Tell of what appears in the journal, while the block runs."""
    if journal is None:
        yield
        return
    names = {file_name(item.name): item.name for item in items}
    over = threading.Event()

    def look() -> None:
        before = -1
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            try:
                there = [names[name] for name in journal.files.list(f"{journal.path}/done") if name in names]
            except KwireError:  # a look too few; what is wrong with the directory, tasks will say
                continue
            if len(there) != before:
                before = len(there)
                told(there)

    watcher = threading.Thread(target=look, name="kwire-job-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def on_spark(spark: SparkSession, items: Sequence[Item], work: Work, journal: Journal | None) -> dict[str, Outcome]:
    """The outcomes of items by name, from one Spark job."""
    from pyspark.sql.functions import udf

    numbers = {item.name: number for number, item in enumerate(items)}
    tasks = [[numbers[item.name] for item in task] for task in group_items(items)]
    everything = tuple(items)

    def task(number: int) -> list[Answer]:
        return do_task(tasks[number], everything, work, journal)

    # not deterministic: Spark may not leave out or repeat a call as it likes. One row a partition: range() cuts evenly
    answers = udf(task, ANSWERS, useArrow=False).asNondeterministic()
    frame = spark.range(0, len(tasks), 1, len(tasks)).select(answers("id"))
    outcomes: dict[str, Outcome] = {}
    for (found,) in frame.collect():
        for number, row, problem in found:
            item = items[number]
            outcomes[item.name] = Outcome(item=item, row=None if row is None else json.loads(row), problem=problem)
    return outcomes


def do_task(task: Sequence[int], items: Sequence[Item], work: Work, journal: Journal | None) -> list[Answer]:
    """Do the items of a task, which are told by their numbers; in a worker."""
    prepare_worker()
    answers = []
    for number in task:
        row, problem = do_item(items[number], work, journal)
        answers.append((number, None if row is None else json.dumps(row), problem))
    return answers


def do_item(item: Item, work: Work, journal: Journal | None) -> tuple[Row | None, str | None]:
    """(row, problem) of an item, one of them None."""
    try:
        if journal is None:
            return work(item, ""), None
        with journal.attempt() as attempt:
            row = work(item, attempt)
        journal.add(item.name, item.fingerprint, row)
        return row, None
    except KwireError as error:
        return None, str(error)
    except Exception as error:  # ours or not: the other partitions go on, and this one is told
        where = traceback.extract_tb(error.__traceback__)[-1]
        return None, f"{type(error).__name__}: {error} ({where.name}, line {where.lineno} of {where.filename})"
