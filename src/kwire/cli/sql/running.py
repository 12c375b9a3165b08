"""Statements in a thread of their own, so that Ctrl-C ends them at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from kwire.cli import terminal
from kwire.cli.command import SIGNALS

if TYPE_CHECKING:
    from kwire.sql.session import Session

__all__ = ["leave", "run_interruptible"]

SECONDS_TO_END = 10  # a broker that hangs is left alone after these


def run_interruptible(session: Session, work: Callable[[], None]) -> None:
    """Do work with a session; raise what it raises.

    A signal reaches the main thread only, and must not be raised inside of DuckDB or Arrow, which would report it as an
    error of theirs. So the work is done in another thread, and ended from here. KeyboardInterrupt then says how many
    records had been read.
    """
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # raised again in the main thread
            raised.append(error)

    thread = threading.Thread(target=run, name="kwire-sql", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt as interrupt:
        _end(session, thread)
        interrupt.args = (f"{session.rows_read:,} records had been read",)
        raise
    if raised:
        raise raised[0]


def leave(interrupt: KeyboardInterrupt) -> NoReturn:
    """End the process after an interruption, with the message and the code of every command.

    Without Python's own end, which waits for nothing that DuckDB may still do in its threads.
    """
    number = getattr(interrupt, "number", signal.SIGINT)
    terminal.warn(": ".join((SIGNALS[number], *map(str, interrupt.args))))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(128 + number)


def _end(session: Session, thread: threading.Thread) -> None:
    """Interrupt the statement until its thread has ended: one that has not begun yet does not notice the first time."""
    deadline = time.monotonic() + SECONDS_TO_END
    while thread.is_alive() and time.monotonic() < deadline:
        session.interrupt()
        thread.join(0.05)
    if thread.is_alive():
        leave(KeyboardInterrupt(f"{session.rows_read:,} records had been read; the statement did not end"))
