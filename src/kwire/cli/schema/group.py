"""The commands of `kwire schema`."""

from __future__ import annotations

import typer

from kwire.cli.command import add_command
from kwire.cli.schema.advise import advise
from kwire.cli.schema.check import check
from kwire.cli.schema.diff import diff
from kwire.cli.schema.docs import docs
from kwire.cli.schema.generate import generate, import_
from kwire.cli.schema.show import show
from kwire.cli.schema.size import size

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `schema` and its commands to the app."""
    group = typer.Typer(
        name="schema", help="Check, show and compile message definitions.", no_args_is_help=True, rich_markup_mode=None
    )
    add_command(group, "check", check)
    add_command(group, "diff", diff)
    add_command(group, "show", show)
    add_command(group, "size", size)
    add_command(group, "advise", advise)
    add_command(group, "generate", generate)
    add_command(group, "import", import_)
    add_command(group, "docs", docs)
    app.add_typer(group)
