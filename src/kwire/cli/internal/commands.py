"""The commands about internal topics."""

from __future__ import annotations

import typer

from kwire.cli.command import add_command
from kwire.cli.internal.cluster import cluster
from kwire.cli.internal.group import group
from kwire.cli.internal.txn import txn

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `group`, `txn` and `cluster` to the app."""
    add_command(app, "group", group)
    add_command(app, "txn", txn)
    add_command(app, "cluster", cluster)
