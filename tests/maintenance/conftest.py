"""Fixtures of the tests of whole directories."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kwire.log import LogDirectory


@pytest.fixture(scope="module")
def modern(kafka_logs: dict[str, Path]) -> LogDirectory:
    """The log directory of a real broker."""
    return LogDirectory(kafka_logs["modern"] / "data")


@pytest.fixture
def limit_file_size() -> Iterator[Callable[[], None]]:
    """A function that simulates a full disk: after the call, no file can grow beyond 20 kB."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, old[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, old)
    signal.signal(signal.SIGXFSZ, handler)
