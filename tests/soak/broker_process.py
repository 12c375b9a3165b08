"""`kwire serve` in a separate process that is killed and restarted on the same port and directory."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from tests.waiting import HANG_S
from tools.kafka import free_port

__all__ = ["BrokerProcess"]

SETTINGS = {
    "log.segment.bytes": 1 << 20,  # so that a kill meets rolled segments and the making of new ones
    "num.partitions": 3,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}


class BrokerProcess:
    """The broker. directory: its data in `data`, its output in `broker.log`. settings: configs by Kafka's names."""

    def __init__(self, directory: Path, **settings: str | int) -> None:
        self.directory, self.data = directory, directory / "data"
        self.settings = {**SETTINGS, **settings}
        self.port = free_port()
        self.bootstrap_servers = f"127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | None = None
        self.kills = 0
        self.slowest_start_s = 0.0

    def start(self, *, kill_after_s: float | None = None) -> None:
        """Start and wait until it serves. kill_after_s: kill it this long after its start instead, at any stage.

        Raises RuntimeError when it ends by itself.
        """
        settings = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        command = [sys.executable, "-m", "kwire.cli", "serve", "--data-dir", str(self.data), "--port", str(self.port)]
        with (self.directory / "broker.log").open("ab") as log:
            self.process = subprocess.Popen([*command, *settings], stdout=subprocess.PIPE, stderr=log, text=True)
        if kill_after_s is not None:
            time.sleep(kill_after_s)
            self.kill()
            return
        started = time.monotonic()
        out: IO[str] | None = self.process.stdout
        assert out is not None
        line = out.readline()
        if line != f"BROKERS={self.bootstrap_servers}\n":
            self.process.wait(HANG_S)
            raise RuntimeError(f"the broker did not start: {line!r}\n{self.log_tail()}")
        self.slowest_start_s = max(self.slowest_start_s, time.monotonic() - started)

    def kill(self) -> None:
        """Kill it with SIGKILL, so that nothing is written or closed."""
        self._end(signal.SIGKILL)
        self.kills += 1

    def stop(self) -> None:
        """Stop it cleanly. Raises RuntimeError if it does not stop."""
        if self._end(signal.SIGTERM) not in (0, None):
            raise RuntimeError(f"the broker did not stop cleanly:\n{self.log_tail()}")

    def close(self) -> None:
        """Kill it if it is still running."""
        if self.process is not None:
            self._end(signal.SIGKILL)

    def _end(self, number: int) -> int | None:
        if self.process is None:
            return None
        self.process.send_signal(number)
        code = self.process.wait(HANG_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return code

    def log_tail(self) -> str:
        """Return the last 3,000 characters of its output."""
        return (self.directory / "broker.log").read_text(errors="replace")[-3000:]
