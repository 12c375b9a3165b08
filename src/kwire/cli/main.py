"""The command line: `kwire GROUP COMMAND`. This module knows no command; GROUPS does.

A module of GROUPS is imported for `--help`, so it imports the packages it works with inside its functions. How commands
end (exit codes, errors, closed pipes) is in `command`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

import kwire
from kwire.cli import capture, codec, internal, log, schema, serve

__all__ = ["GROUPS", "main", "run"]

# Each adds its commands to the app, in the order `kwire --help` shows them.
GROUPS: tuple[Callable[[typer.Typer], None], ...] = (
    log.register,
    internal.register,
    schema.register,
    codec.register,
    capture.register,
    serve.register,
)


def _version(value: bool) -> None:
    if value:
        print(f"kwire {kwire.__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Kafka's logs, records and messages, without a broker."""


def build() -> typer.Typer:
    """The app with every group."""
    app = typer.Typer(
        name="kwire",
        callback=_root,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for register in GROUPS:
        register(app)
    return app


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (sys.argv by default) and return its exit code."""
    try:
        build()(None if arguments is None else list(arguments), prog_name="kwire")
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else 0
    return 0


def main() -> None:
    """The `kwire` command."""
    sys.exit(run())
