"""Commands of kwire in processes that are killed at one of their writes: `python -m tests.soak.kill_at_write`.

The processes are forked from one that has imported the libraries. Writes are those of files below a directory, which
kill_at_write.c counts, or the requests to an object store that change it, each counted before and after it is handled.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import traceback
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.soak.table_files import TableFiles

__all__ = ["Commands", "Ended", "await_kill"]

ROOT = Path(__file__).parents[2]
COMMAND, TASKS = range(2)  # KILL_PAIR
STOPPED = "stopped\n"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. writes: how many it has made, the one that it was killed at included.

    lost_task: whether a task of it was killed, which Spark runs again.
    """

    code: int
    writes: int
    errors: str
    lost_task: bool = False

    @property
    def is_killed(self) -> bool:
        """Whether it was killed."""
        return self.code == -signal.SIGKILL


class Commands:
    """Runs commands on a table. scratch: an empty or new directory that is not the table's."""

    def __init__(self, files: TableFiles, scratch: Path) -> None:
        self.files, self.scratch = files, scratch
        scratch.mkdir(exist_ok=True)
        library = scratch / "kill_at_write.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
        (scratch / "page").write_bytes(bytes(4096))
        self.environment = {
            "LD_PRELOAD": str(library),
            "KILL_UNDER": f"{files.folder}/" if files.store is None else "-",
            "KILL_PAGE": str(scratch / "page"),
            "KILL_PAIR": str(COMMAND),
            "PYTHONPATH": str(ROOT),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.kill_at_write"],
            env=os.environ | files.secrets | self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """End the process that commands are forked from."""
        with self._process:
            self._process.kill()

    def run(self, *words: str, kill_at: int = 0, meanwhile: Callable[[], None] | None = None) -> Ended:
        """Run `kwire WORDS`. kill_at: number of the write that it is killed at, from 1; 0: it is not killed.

        meanwhile: the command is stopped at that write instead, until this is done.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {
            **self.order(kill_at if meanwhile is None else -kill_at),
            "words": [*words, *self.files.settings],
            "scratch": str(self.scratch),
        }
        print(json.dumps(order), file=self._process.stdin, flush=True)
        said = self._process.stdout.readline()
        if said == STOPPED:
            assert meanwhile is not None
            meanwhile()
            print(file=self._process.stdin, flush=True)
            said = self._process.stdout.readline()
        code = int(said)
        return Ended(code, self.writes(), (self.scratch / "errors").read_text())

    def order(self, kill_at: int, task_kill_at: int = 0) -> dict[str, Any]:
        """Set what the next command and its tasks are killed at, or stopped (below 0); return what await_kill needs."""
        with (self.scratch / "page").open("r+b") as page:
            page.write(struct.pack("4q", 0, kill_at, 0, task_kill_at))
        return {"store": None if self.files.store is None else self.files.store.endpoint, "at": kill_at}

    def writes(self, pair: int = COMMAND) -> int:
        """Return the number of writes of the last command, or of its tasks."""
        if self.files.store is None:
            with (self.scratch / "page").open("rb") as page:
                return int(struct.unpack("4q", page.read(32))[2 * pair])
        with urllib.request.urlopen(f"{self.files.store.endpoint}/-/writes") as answer:
            return int(answer.read())


def await_kill(order: Mapping[str, Any]) -> None:
    """Let this process be killed or stopped at a request to an object store, if there is one. order: of Commands."""
    if order["store"] is not None:
        urllib.request.urlopen(f"{order['store']}/-/kill/{os.getpid()}/{order['at']}").close()


def obey(order: Mapping[str, Any]) -> int:
    """Run a command in this process, which was forked for it; return its exit code."""
    await_kill(order)
    for number, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(f"{order['scratch']}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    from kwire.cli.main import run

    return run(order["words"])


def main() -> None:
    """Run commands as told on stdin; print the exit code of each."""
    import deltalake  # noqa: F401
    import pyiceberg.catalog.sql  # noqa: F401

    import kwire.cli.lake.group
    import kwire.lake.verify  # noqa: F401

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            code = 70
            try:
                code = obey(json.loads(line))
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        status = os.waitpid(pid, os.WUNTRACED)[1]
        if os.WIFSTOPPED(status):
            print(STOPPED, end="", flush=True)
            sys.stdin.readline()
            os.kill(pid, signal.SIGCONT)
            status = os.waitpid(pid, 0)[1]
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
