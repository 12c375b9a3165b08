"""The commands of `kwire conformance`."""

from __future__ import annotations

import typer

from kwire.cli.command import add_command, add_group, new_group
from kwire.cli.conformance.broker import broker
from kwire.cli.conformance.client import client
from kwire.cli.conformance.codec import codec
from kwire.cli.conformance.compare import compare
from kwire.cli.conformance.explain import explain
from kwire.cli.conformance.list import list_checks
from kwire.cli.conformance.vectors import vectors

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `conformance` and its commands to the app."""
    group = new_group("conformance", help="Test brokers, clients and codecs against Kafka's protocol.")
    add_command(
        group,
        "broker",
        broker,
        "kwire conformance broker kafka://broker:9092 -o report --only RANGE-FETCH",
        "kwire conformance broker kafka://broker:9092 --release 3.9 --only FRAME --config-file client.properties",
    )
    add_command(
        group,
        "client",
        client,
        "kwire conformance client -o report -- python my_client.py",
        "kwire conformance client --stdin --only PRODUCER -- java -cp 'client/*' MyClient.java",
    )
    add_command(group, "list", list_checks, "kwire conformance list --only FRAME", "kwire conformance list --client")
    add_command(group, "explain", explain, "kwire conformance explain ERROR-FETCH-12")
    add_command(
        group,
        "vectors",
        vectors,
        "kwire conformance vectors -o vectors --release 4.4",
        "kwire conformance vectors -o vectors --only primitives --only batches",
    )
    add_command(
        group,
        "codec",
        codec,
        "kwire conformance codec -o report -- python my_runner.py",
        "kwire conformance codec --only messages/FetchRequest --expected-failures known.txt -- ./my-runner",
    )
    add_command(
        group,
        "compare",
        compare,
        "kwire conformance compare kafka-4.4.json mine.json",
        "kwire conformance compare kafka-4.4.json mine.json --all --format json",
    )
    add_group(app, group, "Protocol")
