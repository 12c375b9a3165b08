"""Arguments and options that several commands of `kwire schema` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Output", "Paths"]

Paths = Annotated[list[Path], typer.Argument(metavar="PATH", help="Definition files or directories.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Output directory.")]
