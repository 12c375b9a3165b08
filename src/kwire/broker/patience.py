"""How long tests wait for a broker: until a timeout, and no longer than anyone wants the result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from kwire.errors import OptionError

__all__ = ["Abandoned", "Patience", "check_count"]

STEP_S = 0.25
"""Seconds between two looks whether anyone still waits."""


class Abandoned(Exception):
    """Nobody waits for the result any more."""


class Patience:
    """A timeout in seconds that has begun. is_abandoned: whether nobody waits any more, None if someone does.

    Raises OptionError for a timeout that is not a number from 0 to what threads can wait.
    """

    def __init__(self, timeout: float, is_abandoned: Callable[[], bool] | None = None) -> None:
        is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not is_number or not 0 <= timeout <= threading.TIMEOUT_MAX:
            raise OptionError(f"invalid timeout {timeout!r}: must be seconds, 0 to {threading.TIMEOUT_MAX:.0f}")
        self.timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._is_abandoned = is_abandoned

    def left_s(self) -> float:
        """Return the seconds until the timeout, 0 or less once it has passed. Raises Abandoned."""
        if self._is_abandoned is not None and self._is_abandoned():
            raise Abandoned
        return self._deadline - time.monotonic()

    def wait(self, changed: threading.Condition) -> bool:
        """Wait until a condition is notified, or for a while; returns False once the timeout has passed."""
        left = self.left_s()
        if left <= 0:
            return False
        changed.wait(left if self._is_abandoned is None else min(left, STEP_S))
        return True


def check_count(name: str, value: Any) -> None:
    """Raise OptionError unless a value is an integer of 0 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise OptionError(f"invalid {name} {value!r}: must be 0 or more")
