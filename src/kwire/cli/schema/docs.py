"""`kwire schema docs`: a static site of message definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kwire.cli.command import FOUND
from kwire.cli.options import Dialect, DialectOption, FormatOption
from kwire.cli.rows import Format
from kwire.cli.schema.definitions import report_written, valid_definitions
from kwire.cli.schema.options import Output

__all__ = ["docs"]


def docs(
    into: Output,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Definition files or directories; Kafka's protocol by default."),
    ] = None,
    dialect: DialectOption = Dialect.STRICT,
    format: FormatOption = Format.TABLE,
) -> int:
    """Write a static site with a page per message.

    A page has a diagram of each version, the fields, and the versions by release; the site has a search. Open
    index.html, no server is needed. Files of an earlier run are not removed.
    """
    from kwire.codegen import write_files
    from kwire.pages.site.protocol import kafka, of_definitions
    from kwire.pages.site.render import render_site

    if paths:
        messages = valid_definitions(paths, dialect)
        if messages is None:
            return FOUND
        protocol = of_definitions(messages)
    else:
        protocol = kafka()
    return report_written(write_files(render_site(protocol), into), format)
