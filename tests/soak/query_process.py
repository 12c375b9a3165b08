"""A streaming query in a separate process whose driver and JVM, or Python workers, are killed. Linux only."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.spark.conftest import environment_of_a_new_session
from tests.waiting import HANG_S

__all__ = ["QueryProcess"]

ROOT = Path(__file__).parents[2]
REST_S = 600  # on a machine that does other things too


class QueryProcess:
    """tests.soak.stream_query. folder: its checkpoint, files and output (`query.log`). data: the broker's directory."""

    def __init__(self, folder: Path, variant: str, servers: str, data: Path) -> None:
        self.folder, self.log = folder, folder / "query.log"
        self.arguments = [variant, servers, str(folder), str(data)]
        self.process: subprocess.Popen[bytes] | None = None
        self.lost_a_worker = False  # since it was started: it may have ended of that
        self.kills = self.worker_kills = self.ended = 0
        self._groups: set[int] = set()  # of its processes, when it was looked last

    def start(self, *, rest: bool = False) -> None:
        """Start it. rest: it ends when all available records have been read."""
        environment = environment_of_a_new_session() | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-m", "tests.soak.stream_query", *self.arguments, *(["--rest"] if rest else [])]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self.lost_a_worker = False

    def look(self) -> None:
        """Restart it if it ended because it lost a worker. Raises AssertionError if it ended otherwise."""
        if self.process is None or self.process.poll() is None:
            return
        if not self.lost_a_worker:
            raise AssertionError(f"the query ended by itself:\n{self.log_tail()}")
        self.ended += 1
        self._reap()
        self.start()

    def aim(self) -> None:
        """Find its processes, so that kill() is immediate, since finding them takes longer than a commit."""
        assert self.process is not None
        self._groups = {self.process.pid}
        for pid in descendants(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                self._groups.add(os.getpgid(pid))

    def kill(self, *, with_workers: bool = True) -> None:
        """Kill it with SIGKILL. Its workers end by themselves while the next run starts."""
        assert self.process is not None
        if not self._groups:
            self.aim()
        for group in {self.process.pid, *(self._groups if with_workers else ())}:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._reap()
        self._groups = set()
        self.kills += 1

    def wait_for_workers(self, timeout_s: float) -> None:
        """Wait until Spark has started Python processes for tasks and the stream, or until a timeout."""
        assert self.process is not None
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and not any(works(pid) for pid in descendants(self.process.pid)):
            time.sleep(0.1)

    def kill_worker(self, choose: random.Random) -> None:
        """Kill one Python process of a task, the stream's planner or a commit, if any."""
        assert self.process is not None
        workers = [pid for pid in descendants(self.process.pid) if works(pid)]
        if workers:
            self.lost_a_worker = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(choose.choice(workers), signal.SIGKILL)
            self.worker_kills += 1

    def finish(self) -> None:
        """Process the remaining records without kills. Raises AssertionError if that fails."""
        self.start(rest=True)
        assert self.process is not None
        try:
            code = self.process.wait(REST_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the rest was not read in {REST_S} s:\n{self.log_tail()}") from None
        assert code == 0, self.log_tail()
        self.process = None

    def close(self) -> None:
        """Kill it if it is still running."""
        if self.process is not None:
            self.kill()

    @property
    def batches(self) -> int:
        """Return the micro-batches that are committed in its checkpoint."""
        commits = self.folder / "checkpoint" / "commits"
        return max((int(each.name) + 1 for each in commits.glob("[0-9]*") if each.name.isdecimal()), default=0)

    def wait_for_batch(self, timeout_s: float) -> None:
        """Wait for a micro-batch that is started and not committed in the checkpoint, or until a timeout."""
        deadline = time.monotonic() + timeout_s
        offsets = self.folder / "checkpoint" / "offsets"
        while time.monotonic() < deadline:
            if (offsets / str(self.batches)).exists():
                return
            time.sleep(0.01)

    def log_tail(self) -> str:
        """Return the last 5,000 characters of its output."""
        return self.log.read_text(errors="replace")[-5000:]

    def _reap(self) -> None:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # a JVM that outlived its Python
        self.process.wait(HANG_S)
        self.process = None


def descendants(pid: int) -> list[int]:
    """Return every descendant of a process."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            children.setdefault(int(stat.read_text().rpartition(") ")[2].split()[1]), []).append(int(stat.parent.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def works(pid: int) -> bool:
    """Return whether a process is a Python process of Spark's JVM for a task or a stream."""
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"pyspark.worker" in command or b"streaming" in command
    return False
