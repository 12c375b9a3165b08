"""Waiting in tests: for an event, never for a length of time that decides a result."""

from __future__ import annotations

import time
from collections.abc import Callable

HANG_S = 240.0
"""Upper bound of any single wait, in seconds. It only ends a hang: a test must pass on a machine that is ten times as
slow, so nothing may depend on how much of it is used."""
HANG_MS = int(HANG_S * 1000)
POLL_S = 0.01


def until(is_so: Callable[[], object], what: str = "it did not happen") -> None:
    """Return as soon as is_so() is true; fail with `what` after HANG_S."""
    deadline = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(POLL_S)
