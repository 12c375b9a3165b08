"""The command line: `kwire GROUP COMMAND`.

A command line imports only the module of its command, and `kwire --help` imports them all. Commands import the packages
they work with inside their functions. Both keep the start short. Exit codes, errors and closed pipes are handled in
`command`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated

import typer

import kwire
from kwire.cli.command import new_group, output_failed

__all__ = ["COMMANDS", "build", "run"]

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "kwire.cli.log.group": ("log",),
    "kwire.cli.internal.commands": ("group", "txn", "cluster"),
    "kwire.cli.sql.command": ("sql",),
    "kwire.cli.lake.group": ("lake",),
    "kwire.cli.schema.group": ("schema",),
    "kwire.cli.codec": ("decode", "encode"),
    "kwire.cli.capture": ("capture",),
    "kwire.cli.conformance.group": ("conformance",),
    "kwire.cli.serve": ("serve",),
    "kwire.cli.tap": ("tap",),
}
"""The commands that `register(app)` of each module adds, in the order of `kwire --help`."""


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


def build(command: str | None = None) -> typer.Typer:
    """Return the app with every command, or only the commands of the module that has this one."""
    app = new_group("kwire", help=_root.__doc__ or "")
    app.callback()(_root)
    for module in [module for module, names in COMMANDS.items() if command in names] or COMMANDS:
        import_module(module).register(app)
    return app


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (sys.argv by default) and return its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        try:
            build(words[0] if words else None)(words, prog_name="kwire")
            code = 0
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else 0
        sys.stdout.flush()
    except OSError as error:  # of the output of --version and --help
        return output_failed(error)
    return code
