"""Sail in a separate process, with the PySpark that it supports: the environment's is newer.

`./dev test` installs both into build/sail. The process runs functions of modules with a session, so that tests and
benchmarks can call the same functions on Spark.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.kafka import Unavailable

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "build" / "sail"


class SailError(Exception):
    """An exception of the process: its type and message."""


def environment() -> dict[str, str]:
    """Return the environment variables of a process with Sail. Raises Unavailable."""
    if not (PACKAGES / ".stamp").exists():
        raise Unavailable("Sail is not installed in build/sail; ./dev test installs it")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    path = os.pathsep.join([str(PACKAGES), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**kept, "PYTHONPATH": path, "RUST_LOG": "error", "TZ": "UTC"}


class SailEngine:
    """A running Sail server and its client."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.sail"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            cwd=ROOT,
        )

    def __call__(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Return function(session, *arguments). Raises SailError for its exception."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump((function.__module__, function.__name__, arguments), self._process.stdin)
        self._process.stdin.flush()
        succeeded, result = pickle.load(self._process.stdout)
        if not succeeded:
            raise SailError(result)
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


def main() -> None:
    """Run the functions that the caller sends."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    server = SparkConnectServer()
    server.start(background=True)
    assert server.listening_address is not None
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
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
    server.stop()


if __name__ == "__main__":
    main()
