"""The commands of `kwire lake`."""

from __future__ import annotations

import typer

from kwire.cli.command import add_command, add_group, new_group
from kwire.cli.lake.append import append
from kwire.cli.lake.clean import clean
from kwire.cli.lake.compact import compact
from kwire.cli.lake.expire import expire
from kwire.cli.lake.offsets import offsets
from kwire.cli.lake.verify import verify

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `lake` and its commands to the app."""
    group = new_group("lake", help="Write logs and topics to Iceberg and Delta tables.")
    catalog = "--catalog type=sql --catalog uri=sqlite:////lake/catalog.db --catalog warehouse=file:///lake"
    add_command(
        group,
        "append",
        append,
        "kwire lake append kafka://broker:9092 /lake/orders --topic orders",
        f"kwire lake append /var/lib/kafka/data sales.orders --topic orders {catalog}",
        "kwire lake append kafka://broker:9092 /lake/orders --topic orders --registry http://localhost:8081",
        "kwire lake append kafka://broker:9092 /lake/orders --offsets orders-0=100..200 --replace",
    )
    add_command(
        group,
        "offsets",
        offsets,
        "kwire lake offsets /lake/orders",
        "kwire lake offsets /lake/orders --format spark",
    )
    add_command(
        group,
        "verify",
        verify,
        "kwire lake verify /lake/orders kafka://broker:9092 --topic orders",
        f"kwire lake verify sales.orders /var/lib/kafka/data --topic orders {catalog}",
    )
    add_command(
        group,
        "compact",
        compact,
        "kwire lake compact /lake/orders",
        "kwire lake compact /lake/orders --target 256 --apply",
    )
    add_command(
        group,
        "expire",
        expire,
        "kwire lake expire /lake/orders",
        "kwire lake expire /lake/orders --older-than 24 --apply",
    )
    add_command(
        group, "clean", clean, "kwire lake clean /lake/orders", "kwire lake clean /lake/orders --older-than 24 --apply"
    )
    add_group(app, group, section="Logs")
