"""A codec under test as a child process: requests and responses as JSON, each after its length.

    length   4 bytes, big-endian: of the JSON in bytes
    JSON     UTF-8; an object

One request at a time. A child that dies, hangs or writes something else fails its request, and a new one is started for
the next. docs/conformance-vectors.md has the objects.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import struct
import subprocess
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from kwire.conformance.child_process import StandardError, start_child
from kwire.errors import KwireError

__all__ = ["GIVE_UP_AFTER", "Runner", "RunnerFault"]

LENGTH = struct.Struct(">I")
MAX_RESPONSE_BYTES = 64 << 20
GIVE_UP_AFTER = 20
"""Deaths and hangs in a row after which no further child is started."""
CHUNK = 1 << 16


class RunnerFault(KwireError):
    """The child did not respond as the protocol says."""


class Runner:
    """Runs the command for one request after the other; a context manager.

    command: program and arguments. timeout_s: for one response; the first of a child may take ten times as long.
    """

    def __init__(self, command: Sequence[str], *, timeout_s: float = 10) -> None:
        self.command, self.timeout_s = list(command), timeout_s
        self.starts = 0
        self.faults_in_a_row = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._stderr = StandardError()
        self._is_new = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._stderr.close()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the response to a request. Raises RunnerFault; OptionError if the command cannot be started."""
        if self.faults_in_a_row >= GIVE_UP_AFTER:
            raise RunnerFault(f"not asked: the program failed {GIVE_UP_AFTER} times in a row")
        try:
            response = self._exchange(json.dumps(request, separators=(",", ":")).encode())
        except RunnerFault:
            self.faults_in_a_row += 1
            self._stop()
            raise
        self.faults_in_a_row = 0
        return response

    def _exchange(self, request: bytes) -> dict[str, Any]:
        child = self._started()
        deadline = time.monotonic() + self.timeout_s * (10 if self._is_new else 1)
        self._is_new = False
        received = self._transfer(child, LENGTH.pack(len(request)) + request, deadline)
        try:
            response = json.loads(received)
        except (ValueError, RecursionError):
            raise RunnerFault(f"the response is not JSON: {received[:60]!r}") from None
        if not isinstance(response, dict):
            raise RunnerFault(f"the response is not a JSON object: {received[:60]!r}")
        return response

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            self._child = start_child(self.command, self._stderr, stdin=subprocess.PIPE, bufsize=0)
            assert self._child.stdin is not None
            assert self._child.stdout is not None
            os.set_blocking(self._child.stdin.fileno(), False)
            os.set_blocking(self._child.stdout.fileno(), False)
            self.starts += 1
            self._is_new = True
        return self._child

    def _transfer(self, child: subprocess.Popen[bytes], out: bytes, deadline: float) -> bytes:
        """Write the request and read the response at once, so that neither side waits for the other's pipe."""
        assert child.stdin is not None
        assert child.stdout is not None
        left, received, size = memoryview(out), bytearray(), None
        with selectors.DefaultSelector() as ready:
            ready.register(child.stdout, selectors.EVENT_READ)
            ready.register(child.stdin, selectors.EVENT_WRITE)
            while size is None or len(received) < LENGTH.size + size:
                wait = deadline - time.monotonic()
                events = ready.select(wait) if wait > 0 else []
                if not events:
                    raise RunnerFault(f"no response within {self.timeout_s:g} s{self._stderr.last_words()}")
                for key, _ in events:
                    if key.fileobj is child.stdin:
                        left = self._write(child, left)
                        if not left:
                            ready.unregister(child.stdin)
                    else:
                        received += self._read(child)
                if size is None and len(received) >= LENGTH.size:
                    size = LENGTH.unpack_from(received)[0]
                    if size > MAX_RESPONSE_BYTES:
                        raise RunnerFault(f"a response of {size} bytes; is there other output on stdout?")
        if len(received) > LENGTH.size + size:
            raise RunnerFault(f"{len(received) - LENGTH.size - size} bytes after the response")
        return bytes(received[LENGTH.size :])

    def _write(self, child: subprocess.Popen[bytes], left: memoryview) -> memoryview:
        assert child.stdin is not None
        try:
            return left[os.write(child.stdin.fileno(), left[:CHUNK]) :]
        except BlockingIOError:
            return left
        except OSError:
            raise RunnerFault(self._end(child)) from None

    def _read(self, child: subprocess.Popen[bytes]) -> bytes:
        assert child.stdout is not None
        try:
            chunk = os.read(child.stdout.fileno(), CHUNK)
        except BlockingIOError:
            return b""
        if not chunk:
            raise RunnerFault(self._end(child))
        return chunk

    def _end(self, child: subprocess.Popen[bytes]) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(1)
        code = child.poll()
        how = "closed its output" if code is None else f"ended with exit code {code}"
        return f"the program {how} before its response{self._stderr.last_words()}"

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        try:
            child.wait(0.5)  # its input has ended
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
