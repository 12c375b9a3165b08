"""Options that commands of `kwire conformance` share."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Only", "Skip", "Strict"]

WHAT = "id, beginning of ids (such as FRAME or PRODUCER) or chapter. Repeatable."
Only = Annotated[list[str] | None, typer.Option("--only", metavar="CHECK", help=f"Run only these checks: {WHAT}")]
Skip = Annotated[list[str] | None, typer.Option("--skip", metavar="CHECK", help=f"Leave out these checks: {WHAT}")]
Strict = Annotated[bool, typer.Option("--strict", help="Allowed deviations and unsupported features are failures too.")]
