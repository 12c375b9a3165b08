"""The program under test: started for each task, or once for many that it reads from its standard input.

It prints JSON objects, a line each. Lines that are not JSON objects are ignored, as clients like to print warnings.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Self

from kwire.conformance.child_process import StandardError, start_child
from kwire.conformance.client.task import Task

__all__ = ["BOOTSTRAP", "TASK", "Outcome", "Program"]

TASK, BOOTSTRAP = "KWIRE_TASK", "KWIRE_BOOTSTRAP"
"""Environment variables: the task as JSON, and the broker's address."""
MAX_OUTPUT_BYTES = 64 << 20
FIRST_START_S = 20.0
"""Added to the deadline of the first task of a program that keeps running."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What a program printed for a task.

    acked: record's index -> its line, of the first transaction's records on. failed: index -> error. received: records.
    errors: of the task as a whole. ended: how each transaction ended. unsupported: what the program says it cannot do.
    late: whether it was stopped at the deadline. complaint: how it died, with the end of its standard error.
    """

    acked: dict[int, dict[str, Any]] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    doubled: list[int] = field(default_factory=list)
    received: list[dict[str, Any]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    committed: bool = False
    unsupported: str | None = None
    late: bool = False
    complaint: str = ""
    seconds: float = 0.0

    def add(self, line: dict[str, Any]) -> None:
        """Add a line that the program printed."""
        if "acked" in line:
            if line["acked"] in self.acked:
                self.doubled.append(line["acked"])
            self.acked[line["acked"]] = line
        elif "failed" in line:
            self.failed[line["failed"]] = str(line.get("error", ""))
        elif "offset" in line and "value" in line:
            self.received.append(line)
        elif "ended" in line:
            self.ended.append(str(line["ended"]))
        elif "committed" in line:
            self.committed = True
        elif "unsupported" in line:
            self.unsupported = str(line["unsupported"])
        elif "error" in line:
            self.errors.append(str(line["error"]))

    @property
    def told(self) -> list[str]:
        """The errors that the client reported to the program; that the program died is none."""
        return [*self.errors, *self.failed.values()]

    @property
    def complaints(self) -> list[str]:
        """Those, and how the program died."""
        return [*self.told, *([self.complaint] if self.complaint else [])]


class Program:
    """The command; a context manager. One task at a time.

    keeps_running: tasks are lines of its standard input, and it ends the output of each with {"done": ID}.
    """

    def __init__(self, command: Sequence[str], *, keeps_running: bool = False, deadline_s: float = 20.0) -> None:
        self.command, self.keeps_running, self.deadline_s = list(command), keeps_running, deadline_s
        self._child: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._stderr = StandardError()
        self._is_new = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._stderr.close()

    def run(self, task: Task, task_id: str, bootstrap: str) -> Outcome:
        """Run a task. Raises OptionError if the command cannot be started."""
        text = task.to_json(task_id, bootstrap)
        began = time.monotonic()
        outcome = Outcome()
        child = self._child
        if child is None or child.poll() is not None:
            self.stop()
            child = self._start({} if self.keeps_running else {TASK: text, BOOTSTRAP: bootstrap})
        deadline = (
            began
            + min(self.deadline_s, task.deadline_s or self.deadline_s)
            + (FIRST_START_S if self.keeps_running and self._is_new else 0)
        )
        self._is_new = False
        if self.keeps_running:
            assert child.stdin is not None
            with contextlib.suppress(OSError):  # it has died; its output tells
                child.stdin.write(text.encode() + b"\n")
                child.stdin.flush()
        self._read(outcome, child, task_id, deadline)
        outcome.seconds = time.monotonic() - began
        if not self.keeps_running or outcome.late or outcome.complaint:
            self.stop()
        return outcome

    def _start(self, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        self._lines = queue.Queue()
        child = start_child(
            self.command,
            self._stderr,
            stdin=subprocess.PIPE if self.keeps_running else subprocess.DEVNULL,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        assert child.stdout is not None
        threading.Thread(target=_pump, args=(child.stdout, self._lines), daemon=True).start()
        self._child, self._is_new = child, True
        return child

    def _read(self, outcome: Outcome, child: subprocess.Popen[bytes], task_id: str, deadline: float) -> None:
        """Read lines until the program is done, ends, or is too late."""
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                outcome.late = True
                return
            if line is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(1)
                if child.returncode or self.keeps_running:
                    outcome.complaint = (
                        f"the program ended with exit code {child.returncode}{self._stderr.last_words()}"
                    )
                return
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                if self.keeps_running and value.get("done") == task_id:
                    return
                outcome.add(value)

    def stop(self) -> None:
        """End the program and what it has started."""
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(OSError):
            if child.stdin is not None:
                child.stdin.close()
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _pump(output: IO[bytes], lines: queue.Queue[bytes | None]) -> None:
    """Move lines into the queue; None marks the end."""
    size = 0
    with contextlib.suppress(OSError, ValueError):
        for line in output:
            size += len(line)
            if size > MAX_OUTPUT_BYTES:
                break
            lines.put(line)
    lines.put(None)
