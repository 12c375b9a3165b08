"""Waiting for events in tests; no result may depend on a duration."""

from __future__ import annotations

import time
from collections.abc import Callable

HANG_S = 240.0
"""Upper bound of every wait, in seconds. It only ends hangs: tests must pass on a machine that is ten times slower."""
HANG_MS = int(HANG_S * 1000)
POLL_S = 0.01


def until(is_so: Callable[[], object], what: str = "it did not happen") -> None:
    """Return when is_so() is true; fail with the message `what` after HANG_S."""
    deadline = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(POLL_S)
