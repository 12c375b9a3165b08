"""`kwire schema docs`: a site about message definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kwire.cli.command import FOUND
from kwire.cli.rows import Format
from kwire.cli.schema.definitions import say_written, sound_definitions
from kwire.cli.schema.options import Dialect, DialectOption, Output, Shape

__all__ = ["docs"]


def docs(
    into: Output,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH...]", help="Definition files, or directories of them; without, Kafka's protocol."
        ),
    ] = None,
    dialect: DialectOption = Dialect.STRICT,
    shape: Shape = Format.TABLE,
) -> int:
    """Write a site: a page a message with a diagram of each version, its fields, versions by release, and a search.

    It works from the file system: open index.html. Files of an earlier run with other definitions stay.
    """
    from kwire.codegen import write_files
    from kwire.pages.site.protocol import kafka, of_definitions
    from kwire.pages.site.render import render_site

    if paths:
        messages = sound_definitions(paths, dialect)
        if messages is None:
            return FOUND
        protocol = of_definitions(messages)
    else:
        protocol = kafka()
    return say_written(write_files(render_site(protocol), into), shape)
