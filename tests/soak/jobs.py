"""jobs.table in a Spark driver that is killed at one of its writes, or whose tasks are: `python -m tests.soak.jobs`.

Jobs has the interface of kill_at_write.Commands, and runs the job instead of `kwire lake append`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.soak.kill_at_write import COMMAND, ROOT, TASKS, Commands, Ended, await_kill
from tests.soak.table_files import TableFiles
from tests.spark.conftest import environment_of_a_new_session
from tools.kafka import SHORT_LIVED

__all__ = ["Jobs"]

LISTS = {"--merge-key": "merge_key", "--partition-by": "partition_by", "--partition": "partitions"}
NAMES = {"--registry": "registry", "--changes": "changes", "--dead-letters": "dead_letters"}


class Jobs(Commands):
    """Runs jobs. Each second kill is one of a task, which Spark runs again, unless in an object store."""

    def __init__(self, files: TableFiles, scratch: Path) -> None:
        super().__init__(files, scratch)
        self._driver: subprocess.Popen[str] | None = self._start()
        self._next = self._start()

    def close(self) -> None:
        """End the drivers."""
        super().close()
        for driver in (self._driver, self._next):
            if driver is not None:
                with driver, contextlib.suppress(ProcessLookupError):
                    os.killpg(driver.pid, signal.SIGKILL)

    def run(self, *words: str, kill_at: int = 0, meanwhile: Callable[[], None] | None = None) -> Ended:
        """Run a job; other commands than an append, and what is stopped, run as they are."""
        if words[1] != "append" or meanwhile is not None:
            return super().run(*words, kill_at=kill_at, meanwhile=meanwhile)
        if self._driver is None:
            self._driver, self._next = self._next, self._start()
        driver, of_tasks = self._driver, kill_at % 2 == 0 and self.files.store is None
        order = self.order(0, kill_at // 2) if of_tasks else self.order(kill_at)
        assert driver.stdin is not None
        assert driver.stdout is not None
        print(json.dumps({**order, **self._arguments(words)}), file=driver.stdin, flush=True)
        for line in driver.stdout:
            if line.startswith("@ended "):
                errors = line.removeprefix("@ended ").strip()
                lost_task = of_tasks and 0 < kill_at // 2 <= self.writes(TASKS)
                return Ended(1 if errors else 0, self.writes(), errors, lost_task)
        self._driver = None
        with driver:  # waits for its end
            pass
        return Ended(driver.returncode, self.writes(), "")

    def _arguments(self, words: tuple[str, ...]) -> dict[str, Any]:
        """Return the arguments of jobs.table for those of `kwire lake append`."""
        arguments: dict[str, Any] = {}
        options = iter(words[4:])
        for option in options:
            if option in LISTS:
                value = next(options)
                arguments.setdefault(LISTS[option], []).append(int(value) if option == "--partition" else value)
            elif option == "--table-by":
                arguments["values"] = {"table_by": next(options)}
            elif option == "--fill":
                arguments["fill"] = True
            else:
                arguments[NAMES[option]] = next(options)
        key = "catalog" if self.files.format == "iceberg" else "table_storage"
        place = self.files.catalog if self.files.format == "iceberg" else self.files.storage
        return {"path": words[2], "target": words[3], "arguments": {**arguments, key: place}}

    def _start(self) -> subprocess.Popen[str]:
        environment = environment_of_a_new_session() | {
            "PYTHONPATH": str(ROOT),
            "SPARK_SUBMIT_OPTS": " ".join(SHORT_LIVED),
        }
        environment |= {"PYSPARK_PYTHON": sys.executable, **self.environment, "KILL_PAIR": str(TASKS)}
        with (self.scratch / "drivers").open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.soak.jobs"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )


def main() -> None:
    """Run jobs as told on stdin."""
    from pyspark.sql import SparkSession

    import kwire.spark  # noqa: F401
    from kwire.spark import jobs

    spark = (
        SparkSession.builder.master("local[2,4]")  # tasks whose worker is killed are tried again
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    os.environ["KILL_PAIR"] = str(COMMAND)  # of this process, and not of the tasks
    for line in sys.stdin:
        order = json.loads(line)
        await_kill(order)
        try:
            jobs.table(spark, order["path"], order["target"], **order["arguments"])
        except Exception as error:
            print(f"@ended {type(error).__name__} {' '.join(str(error).split())[:1500]}", flush=True)
        else:
            print("@ended ", flush=True)


if __name__ == "__main__":
    main()
