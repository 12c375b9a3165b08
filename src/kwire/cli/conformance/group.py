"""The commands of `kwire conformance`."""

from __future__ import annotations

import typer

from kwire.cli.command import add_command, add_group, new_group
from kwire.cli.conformance.compare import compare

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `conformance` and its commands to the app."""
    group = new_group("conformance", help="Test brokers and codecs against Kafka's protocol.")
    add_command(
        group,
        "compare",
        compare,
        "kwire conformance compare kafka-4.4.json mine.json",
        "kwire conformance compare kafka-4.4.json mine.json --all --format json",
    )
    add_group(app, group, "Protocol")
