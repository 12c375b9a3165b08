"""Arguments and options that several commands share, so that one name means one thing."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from kwire.cli.rows import Format

__all__ = [
    "TIME",
    "AtOffset",
    "AtTime",
    "ClientConfigFile",
    "ClientConfigs",
    "ConfigValues",
    "Dialect",
    "DialectOption",
    "FormatOption",
    "History",
    "LogPath",
    "MessageName",
    "Offsets",
    "Partitions",
    "Release",
    "Since",
    "SkipMissing",
    "Topics",
    "Until",
]


class Dialect(enum.StrEnum):
    """Values of --dialect."""

    STRICT = "strict"
    KAFKA = "kafka"
    KIP = "kip"


TIME = "ISO 8601 (UTC) or milliseconds since 1970"

LogPath = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="Log directory, partition directory or segment: local path or URL; "
        "or a cluster: kafka://HOST:PORT[,HOST:PORT][/TOPIC[-PARTITION]].",
    ),
]
Topics = Annotated[
    list[str] | None, typer.Option("--topic", metavar="NAME", help="Topic name or pattern (*, ?). Repeatable.")
]
Partitions = Annotated[list[int] | None, typer.Option("--partition", metavar="N", help="Partition number. Repeatable.")]
Offsets = Annotated[
    str | None, typer.Option("--offsets", metavar="A:B", help="Offsets from A (inclusive) to B (exclusive); A:, :B, A.")
]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help=f"Earliest timestamp, inclusive: {TIME}.")]
SkipMissing = Annotated[
    bool, typer.Option("--skip-missing", help="Go on after offsets whose segment is missing; otherwise an error.")
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help=f"Latest timestamp, exclusive: {TIME}.")]
ConfigValues = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="NAME=VALUE",
        help="Config by Kafka's name, such as delete.retention.ms=0. Repeatable.",
    ),
]
ClientConfigs = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="NAME=VALUE",
        help="With kafka://: client config, such as security.protocol=SSL. Repeatable. No secrets.",
    ),
]
ClientConfigFile = Annotated[
    str | None,
    typer.Option(
        "--config-file",
        metavar="FILE",
        help="With kafka://: client configs in the format of Kafka's client.properties, secrets included.",
    ),
]
MessageName = Annotated[str, typer.Argument(metavar="NAME", help="Message name, or definition file.")]
Release = Annotated[
    str | None,
    typer.Option("--kafka-version", metavar="RELEASE", help="Definition of this Kafka release, such as 3.9.1."),
]
DialectOption = Annotated[
    Dialect,
    typer.Option(
        "--dialect",
        help="Accepted language: strict, kip (the spellings of KIP-482 and KIP-625, such as unsigned32) or kafka "
        "(the deviations of Kafka's own definitions).",
    ),
]
FormatOption = Annotated[Format, typer.Option("--format", help="Output format.")]
History = Annotated[bool, typer.Option("--history", help="All records instead of the resulting state, in log order.")]
AtOffset = Annotated[
    int | None, typer.Option("--at-offset", metavar="N", help="State before the record at this partition offset.")
]
AtTime = Annotated[str | None, typer.Option("--at-time", metavar="TIME", help=f"State at this time: {TIME}.")]
