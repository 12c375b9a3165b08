"""Statements that signals end."""

from __future__ import annotations

import os
import signal
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.cli.command import Signalled, _interruptible
from kwire.cli.sql import running


class Thing:
    pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("has_rows", [False, True])
def test_a_signal_that_python_drops_ends_a_statement_all_the_same(
    has_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python drops what is raised inside of a weak reference's callback, and imports of the main thread have such."""
    monkeypatch.setattr(running, "SECONDS_UNTIL_PROGRESS", 0.05)
    ended = threading.Event()

    class Session:
        rows_read, rows_planned, before_rows, asked = 7, 0, None, 0
        interrupt = staticmethod(ended.set)

        @property
        def has_rows(self) -> bool:
            self.asked += 1
            if self.asked == 2:
                thing = Thing()
                _ = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGTERM))
                del thing
            return has_rows

    session: Any = Session()
    with _interruptible(), pytest.raises(Signalled) as raised:
        running.run_interruptible(session, lambda: ended.wait(30) and None)
    assert raised.value.number == signal.SIGTERM
    assert raised.value.args == ("7 records had been read",)
    assert ended.is_set()
    with _interruptible():  # the next statement of a prompt does not see it
        running.run_interruptible(SimpleNamespace(has_rows=True), lambda: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("has_rows", [False, True])
def test_a_signal_while_a_statement_runs_interrupts_it(has_rows: bool) -> None:
    """Python before 3.13 says that a thread has ended whose join() a signal interrupts: the statement ran on."""
    interrupted, done = threading.Event(), threading.Event()

    def work() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        interrupted.wait(30)
        done.set()

    session: Any = SimpleNamespace(
        has_rows=has_rows, rows_read=7, rows_planned=0, before_rows=None, interrupt=interrupted.set
    )
    with _interruptible(), pytest.raises(Signalled) as raised:
        running.run_interruptible(session, work)
    assert raised.value.number == signal.SIGTERM
    assert done.is_set()
