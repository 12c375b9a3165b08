"""Arguments and options that several commands of `kwire schema` share."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from kwire.cli.rows import Format

__all__ = ["Dialect", "DialectOption", "Name", "Output", "Paths", "Release", "Shape"]


class Dialect(enum.StrEnum):
    """What --dialect takes."""

    STRICT = "strict"
    KAFKA = "kafka"
    KIP = "kip"


Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Definition files, or directories of them.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A message of Kafka's, or a definition file.")]
Release = Annotated[str | None, typer.Option("--kafka", help="As this Kafka release has it, such as 3.9.1.")]
Shape = Annotated[Format, typer.Option("--format", help="table, json or jsonl.")]
DialectOption = Annotated[
    Dialect,
    typer.Option(
        "--dialect",
        help="kip: the spellings of KIP-482 and KIP-625 (a tag needs no ranges, unsigned32). "
        "kafka: what Kafka's own releases need accepted.",
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="Directory to write to.")]
