"""The frame of every command: its help text, its exit code, its errors.

Exit codes:

    0    success
    1    the command found something: damage, errors in the data, differences
    2    wrong usage: an unknown option, a missing path; output that cannot be written, such as on a full disk
    129  the terminal was closed (128 + SIGHUP)
    130  interrupted (128 + SIGINT); ended by SIGINT itself while it loads, which shells show as 130
    141  the reader of a pipe has closed it (128 + SIGPIPE)
    143  terminated (128 + SIGTERM), as by systemd
"""

from __future__ import annotations

import errno
import functools
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec

import typer
from typer.core import TyperCommand, TyperGroup

from kwire.cli import terminal
from kwire.errors import DirectoryInUse, KwireError, OptionError
from kwire.extras import needing
from kwire.pages.escaping import printable
from kwire.storage.driver_errors import NO_ROOM, system_error

__all__ = [
    "FINE",
    "FOUND",
    "SIGNALS",
    "USAGE",
    "Group",
    "add_command",
    "add_group",
    "forget_signals",
    "if_interrupted",
    "new_group",
    "output_failed",
    "raise_again",
    "unfinished",
]

FINE, FOUND, USAGE = 0, 1, 2
BROKEN_PIPE = 128 + signal.SIGPIPE
SECTIONS = ("Logs", "Internal topics", "Protocol", "Broker", "Commands")
"""Sections of a group's help in their order; the last is that of commands without one."""
MAX_SUMMARY = 200

SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}

OF_PATHS = frozenset({errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR})
"""Errors of the operating system that are about a path itself, not about what is there."""

P = ParamSpec("P")


class Signalled(KeyboardInterrupt):
    """A signal that ends a command as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = signal.Signals(number)


# Newer releases of typer have their own copy of click, older ones use click's: contexts, formatters and groups have no
# name that both share, hence Any in the overrides below.


class Command(TyperCommand):
    """A command whose epilog is its examples, one per line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the arguments. `-o -` must not write a folder of that name."""
        rest: list[str] = super().parse_args(ctx, args)
        if str(ctx.params.get("output")) == "-":
            ctx.fail("--output -: this command does not write to standard output; give a file or folder")
        return rest

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line: NAME for an argument, [NAME] without need, NAME... for several."""
        pieces = ["[OPTIONS]"]
        for each in self.get_params(ctx):
            if each.param_type_name == "argument":
                name = f"{each.metavar or str(each.name).upper()}{'...' if each.nargs == -1 else ''}"
                pieces.append(name if each.required else f"[{name}]")
        return pieces

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples as a section, one per line."""
        if self.epilog:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self.epilog.splitlines()))


class Group(TyperGroup):
    """A group whose help lists its commands by section, each section with an example."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each `rich_help_panel`, with an example."""
        sections: dict[str, list[Any]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            sections.setdefault(getattr(command, "rich_help_panel", None) or SECTIONS[-1], []).append(command)
        for title, commands in sorted(sections.items(), key=lambda item: SECTIONS.index(item[0])):
            with formatter.section(title):
                formatter.write_dl([(each.name, each.get_short_help_str(MAX_SUMMARY)) for each in commands])
                if title != SECTIONS[-1]:
                    formatter.write(f"\n    {_example(commands[0])}\n")


def _example(command: Any) -> str:
    """Return the first example of a command, or of a group's first command."""
    if isinstance(command, TyperGroup):
        return _example(next(iter(command.commands.values())))
    examples: str = command.epilog or ""
    return examples.partition("\n")[0]


def new_group(name: str | None, help: str) -> typer.Typer:
    """An empty group of commands. help: one sentence, for its own help and that of its parent."""
    return typer.Typer(
        name=name,
        help=help,
        cls=Group,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def add_group(app: typer.Typer, group: typer.Typer, section: str) -> None:
    """Add a group of commands to app, under that section of its help."""
    app.add_typer(group, rich_help_panel=section)


def add_command(
    app: typer.Typer, name: str, function: Callable[P, int], *examples: str, section: str | None = None
) -> None:
    """Add function to app as the command `name`.

    function returns the exit code. A KwireError that it raises is printed as one line; any other exception is a bug
    and keeps its traceback. examples: command lines for the help text. section: of the parent's help text.
    """

    @functools.wraps(function)
    def ended(*args: P.args, **kwargs: P.kwargs) -> None:
        gc.enable()
        try:
            with _interruptible(), needing(name):
                code = function(*args, **kwargs)
                sys.stdout.flush()
        except KwireError as error:
            code = _report_error(error)
        except OSError as error:
            code = output_failed(error)
        except KeyboardInterrupt as interrupt:
            number = interrupt.number if isinstance(interrupt, Signalled) else signal.SIGINT
            terminal.warn(printable(": ".join((SIGNALS[number], *map(str, interrupt.args)))))
            code = 128 + number
        raise typer.Exit(code)

    app.command(name, cls=Command, epilog="\n".join(examples), rich_help_panel=section)(ended)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C, SIGTERM and SIGHUP inside the block, unless they are ignored.

    Elsewhere they end the process: see kwire.cli.__main__.
    """
    is_main = threading.current_thread() is threading.main_thread()  # others cannot change what signals do
    handled = [number for number in SIGNALS if is_main and signal.getsignal(number) is signal.SIG_DFL]
    forget_signals()
    for number in handled:
        signal.signal(number, _raise_signalled)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


_raised: list[int] = []
"""Numbers, not exceptions: those would keep the frames of the command until Python has taken its modules down."""


def _raise_signalled(number: int, _: object) -> None:
    _raised.append(number)
    raise Signalled(number)


def forget_signals() -> None:
    """Let raise_again raise only signals that come after this."""
    _raised.clear()


def raise_again() -> None:
    """Raise the last signal again if there was one: for loops that would never end without it.

    Python drops what is raised inside of a finalizer or a weak reference's callback, and imports have such.
    """
    if _raised:
        raise Signalled(_raised[-1])


def unfinished(path: str | os.PathLike[str]) -> str:
    """Return the state of a directory after an interruption of work in place, for `if_interrupted`."""
    return f"{path} is valid: finished segments are changed, the others are not; run the command again for the rest"


@contextmanager
def if_interrupted(state: str) -> Iterator[None]:
    """End the command with this message on a signal inside the block: what is on disk, and how to continue."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.args = (state,)
        raise


def _report_error(error: KwireError) -> int:
    try:
        terminal.warn(printable(str(error)))
    except OSError as failed:
        return output_failed(failed)
    is_refused = isinstance(error.__cause__, PermissionError) or system_error(error) in NO_ROOM | OF_PATHS
    return USAGE if is_refused or isinstance(error, (OptionError, DirectoryInUse)) else FOUND


def output_failed(error: OSError) -> int:
    """Return the exit code for an error of standard output, or of a path that cannot be; raise any other error.

    Of standard output nothing more is printed: the reader (`head`, a pager) is gone, or the disk is full, and Python
    must not flush what is left at exit.
    """
    if error.filename is not None and error.errno in OF_PATHS:
        terminal.warn(printable(f"{os.fsdecode(error.filename)}: {error.strerror}"))
        return USAGE
    if error.filename is not None or not (isinstance(error, BrokenPipeError) or error.errno in NO_ROOM):
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    terminal.warn(f"standard output: cannot be written: {error.strerror}")
    return USAGE
