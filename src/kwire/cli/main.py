"""The command line: `kwire GROUP COMMAND`.

This module knows no command; GROUPS does. Every module of GROUPS is imported for `--help`, so commands import the
packages they work with inside their functions. Exit codes, errors and closed pipes are handled in `command`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

import kwire
from kwire.cli import capture, codec, internal, log, schema, serve
from kwire.cli.command import new_group

__all__ = ["GROUPS", "build", "main", "run"]

# Each adds its commands to the app, in the order of `kwire --help`.
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
        from kwire import native

        print(f"kwire {kwire.__version__} (kernels: {native.LEVEL or 'none, plain Python'})")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Read, check and write Kafka's logs, records and messages, without a running Kafka."""


def build() -> typer.Typer:
    """Return the app with every group."""
    app = new_group("kwire", help=_root.__doc__ or "")
    app.callback()(_root)
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
    """Run the `kwire` command and exit."""
    sys.exit(run())
