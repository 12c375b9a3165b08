"""The commands of `kwire log`."""

from __future__ import annotations

import typer

from kwire.cli.command import add_command
from kwire.cli.log.compact import compact
from kwire.cli.log.convert import convert
from kwire.cli.log.dump import dump
from kwire.cli.log.export import export
from kwire.cli.log.ls import ls
from kwire.cli.log.repair import index, repair
from kwire.cli.log.report import report
from kwire.cli.log.restore import restore
from kwire.cli.log.verify import verify

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `log` and its commands to the app."""
    group = typer.Typer(
        name="log", help="Look into log directories, segments and indexes.", no_args_is_help=True, rich_markup_mode=None
    )
    add_command(group, "ls", ls)
    add_command(group, "dump", dump)
    add_command(group, "report", report)
    add_command(group, "verify", verify)
    add_command(group, "repair", repair)
    add_command(group, "index", index)
    add_command(group, "convert", convert)
    add_command(group, "export", export)
    add_command(group, "restore", restore)
    add_command(group, "compact", compact)
    app.add_typer(group)
