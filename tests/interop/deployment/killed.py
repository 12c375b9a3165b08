"""Executors and Python workers are killed during a query: Spark retries, and rows are correct."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from given import Given, create_topic, of_broker, of_log, rows

SOME_TASKS = 3
LARGE_BYTES = 40_000  # of a value: a task sends when 32 MB of rows wait


def a_worker_in_a_read(given: Given) -> None:
    read_and_kill(given, "killed-worker", kill_workers)


def an_executor_in_a_read(given: Given) -> None:
    read_and_kill(given, "killed-executor", kill_executor)


def read_and_kill(given: Given, name: str, kill: Callable[[int], None]) -> None:
    """Read a topic in small tasks and kill processes after some of them."""
    marks = given.out / name
    marks.mkdir()
    options = {"subscribe": "orders", "includeHeaders": "true", "maxRecordsPerPartition": "2000"}
    frame = given.spark.read.format("kafka-log").options(**options).load(str(given.logs))
    tasks = frame.rdd.getNumPartitions()
    assert tasks > 4 * SOME_TASKS
    slow = frame.where(marking(marks, seconds=0.001)("offset") >= 0)
    found = while_it_runs(
        lambda: rows(slow), lambda: kill_when(lambda: len(list(marks.iterdir())) > SOME_TASKS, marks, kill)
    )
    assert found == of_log(given.logs, "orders")
    assert len(list(marks.iterdir())) > tasks  # a mark an attempt


def an_executor_in_a_transactional_write(given: Given) -> None:
    topic = create_topic(given.servers, "killed-write", 2)
    marks = given.out / "killed-write"
    marks.mkdir()
    numbers = given.spark.range(0, 4000, 1, 2).where(marking(marks, seconds=0.005)("id") >= 0)
    writer = (
        numbers.selectExpr("CAST(id AS string) AS key", f"repeat('x', {LARGE_BYTES}) AS value")
        .write.format("kafka-live")
        .option("kafka.bootstrap.servers", given.servers)
        .options(topic=topic, transactionalIdPrefix="killed")
        .mode("append")
    )

    def is_written() -> bool:
        return len(of_broker(given.servers, topic)) > 2000  # more than one task can have sent

    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = given.spark.conf.get(setting)
    given.spark.conf.set(setting, 100)  # so that a task gets its rows while they are made, and not at its end
    while_it_runs(writer.save, lambda: kill_when(is_written, marks, kill_executor))
    given.spark.conf.set(setting, before)
    found = of_broker(given.servers, topic, "read_committed")
    assert sorted(int(each[3]) for each in found) == list(range(4000))
    assert len(of_broker(given.servers, topic)) > 4000  # what was killed had been written in part, and aborted


def marking(marks: Path, seconds: float) -> Any:
    """Return a function that returns its argument after some time and writes a file with the process id."""
    from pyspark.sql.functions import udf

    folder = str(marks)

    def mark(number: int) -> int:
        import os
        import time

        from pyspark import TaskContext

        context = TaskContext.get()
        path = f"{folder}/{context.partitionId()}-{context.taskAttemptId()}"
        if not os.path.exists(path):
            with open(path, "w") as file:
                file.write(str(os.getppid()))
        time.sleep(seconds)
        return number

    return udf(mark, "long", useArrow=False).asNondeterministic()


def while_it_runs(query: Callable[[], Any], also: Callable[[], None]) -> Any:
    """Run a query and something else concurrently; return the query's result. Raises errors of both."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            also()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    found = query()
    thread.join(600)
    assert not failed, failed
    return found


def kill_when(is_time: Callable[[], bool], marks: Path, kill: Callable[[int], None]) -> None:
    """Kill the process of the newest mark once a condition holds."""
    deadline = time.monotonic() + 600
    while not is_time():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    newest = max(marks.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    kill(int(newest.read_text()))


def kill_workers(daemon: int) -> None:
    """Kill the Python workers of an executor, the children of its daemon."""
    children = [
        int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and parent(path.name) == daemon
    ]
    assert children
    for each in children:
        os.kill(each, signal.SIGKILL)


def kill_executor(daemon: int) -> None:
    """Kill the JVM of an executor, the parent of a daemon."""
    process = parent(str(daemon))
    assert "CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_text()
    os.kill(process, signal.SIGKILL)


def parent(pid: str) -> int:
    """Return the parent of a process, -1 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return -1
