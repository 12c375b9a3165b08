"""How every command ends: exit codes, errors as one line, closed pipes.

0    fine
1    something was found: damage, errors in the data, differences
2    wrong usage: an unknown option, a path that is not there
130  interrupted (128 + SIGINT)         141  the reader of a pipe has enough (128 + SIGPIPE), as for any program
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

import typer

from kwire.cli import terminal
from kwire.errors import KwireError, OptionError
from kwire.pages.escaping import printable

__all__ = ["FINE", "FOUND", "USAGE", "add_command", "if_interrupted"]

FINE, FOUND, USAGE = 0, 1, 2
INTERRUPTED, BROKEN_PIPE = 130, 141

P = ParamSpec("P")


def add_command(app: typer.Typer, name: str, function: Callable[P, int]) -> None:
    """Add function to app as the command `name`; it returns its exit code and may raise what kwire raises.

    Only KwireError becomes a message. Anything else is a bug of ours, and its traceback is wanted.
    """

    @functools.wraps(function)
    def ended(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = function(*args, **kwargs)
            sys.stdout.flush()
        except KwireError as error:
            code = _refused(error)
        except BrokenPipeError:
            code = _pipe_closed()
        except KeyboardInterrupt as interrupt:
            terminal.warn(printable(": ".join(("interrupted", *map(str, interrupt.args)))))
            code = INTERRUPTED
        raise typer.Exit(code)

    app.command(name)(ended)


@contextmanager
def if_interrupted(state: str) -> Iterator[None]:
    """Ctrl-C inside the block ends the command with this message: what is on disk, and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(state) from None


def _refused(error: KwireError) -> int:
    try:
        terminal.warn(printable(str(error)))
    except BrokenPipeError:
        return _pipe_closed()
    return USAGE if isinstance(error, OptionError) else FOUND


def _pipe_closed() -> int:
    """The reader (`head`, a pager) has enough: say nothing, and keep Python from flushing into the pipe at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE
