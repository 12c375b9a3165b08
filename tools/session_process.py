"""A Spark session in a separate process, with another PySpark than the environment's.

The process runs functions of modules with its session, so that tests and benchmarks can call the same functions on
several engines and releases.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ROOT", "SessionError", "SessionProcess", "serve", "variables"]

ROOT = Path(__file__).parents[1]


class SessionError(Exception):
    """An exception of the process: its type and message."""


def variables(packages: Path) -> dict[str, str]:
    """Return the environment variables of a process that finds these packages first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    path = os.pathsep.join([str(packages), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**kept, "PYTHONPATH": path, "TZ": "UTC"}


class SessionProcess:
    """A process with a session. module: has a main() that calls serve(). arguments: of its command line."""

    error: ClassVar[type[SessionError]] = SessionError

    def __init__(self, module: str, environment: dict[str, str], *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=ROOT,
        )

    def __call__(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Return function(session, *arguments). Raises SessionError for its exception."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump((function.__module__, function.__name__, arguments), self._process.stdin)
        self._process.stdin.flush()
        succeeded, result = pickle.load(self._process.stdout)
        if not succeeded:
            raise self.error(result)
        return result

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


def serve(start: Callable[[], SparkSession]) -> None:
    """Run the functions that the caller sends, with the session that start() returns."""
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    session = start()
    while True:
        try:
            module, name, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            break
        try:
            found = True, getattr(importlib.import_module(module), name)(session, *arguments)
        except Exception as error:
            found = False, f"{type(error).__name__}: {error}"
        pickle.dump(found, results)
        results.flush()
    session.stop()
