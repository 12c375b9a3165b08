"""Arguments and options that several commands of `kwire schema` share."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Dialect", "DialectOption", "Output", "Paths"]


class Dialect(enum.StrEnum):
    """Values of --dialect."""

    STRICT = "strict"
    KAFKA = "kafka"
    KIP = "kip"


Paths = Annotated[list[Path], typer.Argument(metavar="PATH", help="Definition files or directories.")]
DialectOption = Annotated[
    Dialect,
    typer.Option(
        "--dialect",
        help="Accepted language: strict, kip (the spellings of KIP-482 and KIP-625, such as unsigned32) or kafka "
        "(the deviations of Kafka's own definitions).",
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Output directory.")]
