"""The commands of `kwire schema`."""

from __future__ import annotations

import typer

from kwire.cli.command import add_command, add_group, new_group
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
    group = new_group("schema", help="Check, show, compare and compile message definitions.")
    add_command(
        group,
        "show",
        show,
        "kwire schema show FetchRequest",
        "kwire schema show FetchRequest --version 12",
        "kwire schema show FetchRequest --kafka-version 2.8.2",
    )
    add_command(group, "check", check, "kwire schema check definitions")
    add_command(
        group,
        "diff",
        diff,
        "kwire schema diff main:definitions definitions",
        "kwire schema diff kafka-clients-3.9.1.jar kafka-clients-4.4.0.jar --like-kafka",
    )
    add_command(
        group,
        "size",
        size,
        "kwire schema size MetadataRequest",
        "kwire schema size MetadataRequest request.json --version 9",
    )
    add_command(
        group,
        "advise",
        advise,
        "kwire schema advise FetchRequest --version 17 kafka.pcap",
        "kwire schema advise FetchRequest --version 17 kafka.pcap -o advice.html",
    )
    add_command(group, "generate", generate, "kwire schema generate definitions -o messages")
    add_command(group, "import", import_, "kwire schema import kafka-clients-4.4.0.jar -o definitions/kafka-4.4.0")
    add_command(group, "docs", docs, "kwire schema docs -o site", "kwire schema docs definitions -o site")
    add_group(app, group, section="Protocol")
