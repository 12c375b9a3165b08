"""A fault that was added: its counts, waiting for it, releasing what it holds, removing it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kwire.broker.faults.effects import Effect, Kind
from kwire.broker.patience import Patience, check_count
from kwire.errors import counted

if TYPE_CHECKING:
    from kwire.broker.faults.conditions import Conditions, Seen, Trigger

__all__ = ["WAIT_S", "Fault", "Gate"]

WAIT_S = 30.0
"""Default timeout of waiting, in seconds."""


class Gate:
    """What a request waits for that is held. Made on the broker's thread, opened on any."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[None] = self._loop.create_future()

    def open(self) -> None:
        """Let the request continue."""
        try:
            self._loop.call_soon_threadsafe(self._open)
        except RuntimeError:  # the broker has stopped: its connections are closed
            return

    def _open(self) -> None:
        if not self.opened.done():
            self.opened.set_result(None)


class Fault:
    """A fault, as returned by the methods of Faults; a context manager that removes it at the end. Thread-safe.

    number: identifies it among the faults of a broker. given: the arguments with which it was added.
    """

    def __init__(
        self,
        *,
        effect: Effect,
        conditions: Conditions | None,
        trigger: Trigger,
        changed: threading.Condition,
        given: Mapping[str, Any],
    ) -> None:
        self.effect, self.conditions, self.given = effect, conditions, dict(given)
        self.number = 0
        self._trigger, self._changed = trigger, changed
        self._gates: list[Gate] = []
        self._problem: BaseException | None = None
        self._is_removed = False

    def __repr__(self) -> str:
        words = ", ".join(f"{name}={value!r}" for name, value in self.given.items())
        return f"<{self.effect.kind} {words}: {self._trigger.hits} of {counted(self._trigger.calls, 'request')}>"

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    # State

    @property
    def calls(self) -> int:
        """How many requests met the conditions so far, also since it was used up."""
        return self._trigger.calls

    @property
    def hits(self) -> int:
        """How many requests it has applied to so far. Raises the exception of a function that it was given."""
        with self._changed:
            self._raise_problem()
            return self._trigger.hits

    @property
    def times(self) -> int | None:
        """How many more requests it applies to, None for no limit."""
        return self._trigger.times

    @property
    def held(self) -> int:
        """How many requests are held now."""
        with self._changed:
            return len(self._gates)

    @property
    def is_removed(self) -> bool:
        """Whether it was removed, and does not count requests any more."""
        return self._is_removed

    @property
    def is_active(self) -> bool:
        """Whether it may apply to future requests."""
        return not self._is_removed and not self._trigger.is_spent

    def wait(self, n: int = 1, timeout: float = WAIT_S) -> int:
        """Wait until it has applied to n requests in total; returns hits. Raises TimeoutError.

        A request counts when it arrives: one that is held, delayed or dropped has been counted. Waiting ends early if
        the fault cannot apply to so many. Raises OptionError for an invalid number or timeout.
        """
        return self.wait_with(Patience(timeout), n)

    def wait_with(self, patience: Patience, n: int = 1) -> int:
        """See wait."""
        check_count("number of hits", n)
        with self._changed:
            while self._trigger.hits < n and self._problem is None and self.is_active and patience.wait(self._changed):
                pass
            self._raise_problem()
            if self._trigger.hits < n:
                ended = f"after {patience.timeout:g} s"
                if not self.is_active:
                    ended = "it was removed" if self._is_removed else "it is used up"
                raise TimeoutError(f"{self!r} has not applied to {counted(n, 'request')}: {ended}")
            return self._trigger.hits

    def release(self, n: int | None = None) -> int:
        """Let the requests continue that are held, the oldest n or all; returns how many.

        Later ones are held as before. A silenced request has no way to continue: its connection is closed. Raises
        OptionError for an invalid number.
        """
        if n is not None:
            check_count("number of requests", n)
        with self._changed:
            gates = self._gates[:n]
            del self._gates[: len(gates)]
        for gate in gates:
            gate.open()
        return len(gates)

    def remove(self) -> None:
        """Remove it, and release what it holds. The counts remain."""
        with self._changed:
            self._is_removed = True
            self._changed.notify_all()
        self.release()

    # On the broker's thread, by Faults

    def applies_to(self, seen: Seen) -> bool:
        """Return whether it applies to a request, and count it."""
        if self._is_removed or self.conditions is None:
            return False
        try:
            if not self.conditions.hold_for(seen):
                return False
        except Exception as error:  # of the function `when`
            self.report(error)
            return False
        return self.fires()

    def fires(self) -> bool:
        """Count a request, or a connection, that meets the conditions; return whether it applies."""
        fires = self._trigger.fires()
        if fires:
            self._changed.notify_all()
        return fires

    def hold(self) -> Gate:
        """Return what a request that it holds waits for."""
        gate = Gate()
        self._gates.append(gate)
        return gate

    def forget(self, gate: Gate) -> None:
        """Forget a request that is no longer held, as its client has disconnected."""
        with self._changed:
            if gate in self._gates:
                self._gates.remove(gate)

    def report(self, error: BaseException) -> None:
        """Keep the exception of a function that it was given, for the test."""
        with self._changed:
            self._problem = self._problem or error
            self._changed.notify_all()

    @property
    def holds(self) -> bool:
        """Whether requests wait for it until they are released."""
        return self.effect.kind in (Kind.HOLD, Kind.SILENCE)

    def _raise_problem(self) -> None:
        if self._problem is not None:
            raise self._problem
