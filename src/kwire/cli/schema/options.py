"""Arguments and options that several commands of `kwire schema` share."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Dialect", "DialectOption", "Name", "Output", "Paths", "Release"]


class Dialect(enum.StrEnum):
    """Values of --dialect."""

    STRICT = "strict"
    KAFKA = "kafka"
    KIP = "kip"


Paths = Annotated[list[Path], typer.Argument(metavar="PATH", help="Definition files or directories.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Message name, or definition file.")]
Release = Annotated[
    str | None, typer.Option("--kafka", metavar="RELEASE", help="Definition of this Kafka release, such as 3.9.1.")
]
DialectOption = Annotated[
    Dialect,
    typer.Option(
        "--dialect",
        help="Accepted language: strict, kip (the spellings of KIP-482 and KIP-625, such as unsigned32) or kafka "
        "(the deviations of Kafka's own definitions).",
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Output directory.")]
