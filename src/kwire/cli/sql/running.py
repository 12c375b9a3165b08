"""Statements in a separate thread, so that Ctrl-C ends them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from kwire.cli import terminal
from kwire.cli.command import SIGNALS, forget_signals, raise_again

if TYPE_CHECKING:
    from kwire.sql.session import Session

__all__ = ["leave", "run_interruptible"]

SECONDS_UNTIL_PROGRESS = 1.0
SECONDS_TO_END = 10  # then the process ends, whatever the statement waits for


def run_interruptible(session: Session, work: Callable[[], None]) -> None:
    """Do work with a session; raise what it raises.

    A signal is raised in the main thread. If that thread were inside of DuckDB or Arrow, these would report it as an
    error. So another thread does the work, and this one interrupts it. The KeyboardInterrupt says how many records had
    been read.
    """
    raised: list[BaseException] = []
    ended = threading.Event()  # before Python 3.13, a thread counts as ended when a signal interrupts its join()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # raised again in the main thread
            raised.append(error)
        finally:
            ended.set()

    forget_signals()
    try:
        threading.Thread(target=run, name="kwire-sql", daemon=True).start()
        _wait(session, ended)
    except KeyboardInterrupt as interrupt:
        _end(session, ended, interrupt)
        interrupt.args = (f"{session.rows_read:,} records had been read",)
        raise
    if raised:
        raise raised.pop()  # kept here, it would keep this frame, and so all of DuckDB's objects, until Python ends


def _wait(session: Session, ended: threading.Event) -> None:
    """Wait for the end of a statement; show how much a long one has read until it has rows."""
    while not ended.is_set():
        ended.wait(SECONDS_UNTIL_PROGRESS)
        raise_again()
        if not ended.is_set() and not session.has_rows:
            _show_progress(session, ended)


def _show_progress(session: Session, ended: threading.Event) -> None:
    progress = terminal.RecordProgress("Reading")
    session.before_rows = progress.stop
    try:
        while not ended.is_set() and not session.has_rows:
            progress.show(session.rows_read, session.rows_planned)
            ended.wait(0.2)
            raise_again()
    finally:
        session.before_rows = None
        progress.stop()


def leave(interrupt: KeyboardInterrupt) -> NoReturn:
    """End the process after an interruption, with the message and the exit code that every command has.

    Python's own exit aborts if a thread is still inside of DuckDB, so it is not used.
    """
    number = getattr(interrupt, "number", signal.SIGINT)
    terminal.warn(": ".join((SIGNALS[number], *map(str, interrupt.args))))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(128 + number)


def _end(session: Session, ended: threading.Event, interrupt: KeyboardInterrupt) -> None:
    """Interrupt the statement until it has ended: one that has not begun yet does not notice the first time."""
    deadline = time.monotonic() + SECONDS_TO_END
    while not ended.is_set() and time.monotonic() < deadline:
        session.interrupt()
        ended.wait(0.05)
    if not ended.is_set():
        interrupt.args = (f"{session.rows_read:,} records had been read; the statement did not end",)
        leave(interrupt)
