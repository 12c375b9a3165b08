"""The commands for internal topics."""

from __future__ import annotations

import typer

from kwire.cli.command import add_command
from kwire.cli.internal.cluster import cluster
from kwire.cli.internal.group import group
from kwire.cli.internal.txn import txn

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `group`, `txn` and `cluster` to the app."""
    section = "Internal topics"
    add_command(
        app,
        "group",
        group,
        "kwire group /var/lib/kafka/data",
        "kwire group /var/lib/kafka/data orders-app --members",
        "kwire group /var/lib/kafka/data orders-app --at-time 2025-10-09T08:55Z",
        section=section,
    )
    add_command(
        app,
        "txn",
        txn,
        "kwire txn /var/lib/kafka/data --open",
        "kwire txn /var/lib/kafka/data 'orders-*' --history",
        section=section,
    )
    add_command(
        app,
        "cluster",
        cluster,
        "kwire cluster /var/lib/kafka/data",
        "kwire cluster /var/lib/kafka/data topics",
        "kwire cluster /var/lib/kafka/data configs --at-offset 100 --format json",
        section=section,
    )
