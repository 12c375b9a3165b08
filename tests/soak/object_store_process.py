"""S3 in a separate process, which reports each write and makes it slow: `python -m tests.soak.object_store_process`.

Lines on stdout: the endpoint, then `begin KEY` before each write and `end KEY` after it, before its response is sent.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["BUCKET", "KEYS", "ObjectStoreProcess"]

BUCKET = "lake"
KEYS = {"access_key": "hunter2", "secret_key": "hunter2", "region": "us-east-1"}
DELAY_S = 0.03  # before and after each write, for a kill to meet it


class ObjectStoreProcess:
    """The running server, empty but for one bucket. writes: `begin KEY` and `end KEY`, as they happen."""

    def __init__(self) -> None:
        from pyarrow.fs import S3FileSystem

        command = [sys.executable, "-m", "tests.soak.object_store_process"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        self.endpoint = self._process.stdout.readline().strip()
        self.writes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.files = S3FileSystem(endpoint_override=self.endpoint, allow_bucket_creation=True, **KEYS)
        self.files.create_dir(BUCKET)

    def close(self) -> None:
        """Stop it."""
        with self._process:
            self._process.kill()
            self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.writes.put(line.strip())


class _Reported:
    """A WSGI application whose writes are reported.

    After a request of `/-/kill/PID/K`, it counts them instead, twice each, before and after it is handled, and kills
    that process when the count is K, or stops it when it is -K. `/-/writes` returns the count.
    """

    def __init__(self, served: Callable[..., Iterable[bytes]]) -> None:
        self.served = served
        self._pid, self._kill_at, self._writes = 0, 0, 0
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith("/-/"):
            return self._control(environ["PATH_INFO"].split("/")[2:], start_response)
        if environ["REQUEST_METHOD"] not in ("PUT", "POST", "DELETE"):
            return self.served(environ, start_response)
        if self._pid:
            if self._count():
                start_response("503 Service Unavailable", [])  # to nobody
                return []
            body = list(self.served(environ, start_response))
            self._count()
            return body
        key = environ["PATH_INFO"]
        print(f"begin {key}", flush=True)
        time.sleep(DELAY_S)
        body = list(self.served(environ, start_response))
        print(f"end {key}", flush=True)
        time.sleep(DELAY_S)
        return body

    def _control(self, words: list[str], start_response: Any) -> Iterable[bytes]:
        with self._lock:
            start_response("200 OK", [("Content-Type", "text/plain")])
            if words[0] == "writes":
                return [b"%d" % self._writes]
            self._pid, self._kill_at, self._writes = int(words[1]), int(words[2]), 0
            return []

    def _count(self) -> bool:
        """Count a write; return whether the process was killed at it."""
        with self._lock:
            self._writes += 1
            if self._writes == -self._kill_at:
                os.kill(self._pid, signal.SIGSTOP)
            if self._writes != self._kill_at:
                return False
            os.kill(self._pid, signal.SIGKILL)
            return True


def main() -> None:
    """Serve until the process is killed."""
    import logging

    from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = _Reported(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
