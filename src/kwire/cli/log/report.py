"""`kwire log report`: one HTML page about the topics of a log directory."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.log.directories import bytes_of, open_directory, selected
from kwire.cli.log.selection import Selection
from kwire.errors import OptionError
from kwire.pages.escaping import printable

__all__ = ["report"]


def report(
    path: Annotated[str, typer.Argument(help="Log directory, partition directory or segment; a local path or a URL.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")],
    topic: Annotated[
        list[str] | None, typer.Option(help="Only topics of this name or pattern (*, ?). Repeatable.")
    ] = None,
    partition: Annotated[list[int] | None, typer.Option(help="Only this partition. Repeatable.")] = None,
) -> int:
    """Write an HTML report: per topic records over time, codecs, offset holes, keys, tombstones, transactions.

    Reads every record once. The page needs no network and no scripts. Exit code 1 if something could not be read; the
    page then says what.
    """
    directory = open_directory(path)
    logs = selected(directory, Selection(topics=topic or (), partitions=partition or ()))
    if output.is_dir() or not output.parent.is_dir():
        raise OptionError(f"{output}: not the name of a file in a directory that exists")
    from kwire.maintenance.statistics import count_topics
    from kwire.pages.log_report import render_report

    with terminal.progress("Reading records", bytes_of(logs)) as bar:
        topics = count_topics(logs, bar.advance)
    page = render_report(topics, source=path, made_at=datetime.datetime.now(datetime.UTC))
    try:
        output.write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        raise OptionError(f"{output}: cannot be written: {error.strerror}") from error
    records = sum(each.records for each in topics)
    print(printable(f"{output}: {len(topics)} topics, {records} records"))
    unread = [line for each in topics for line in each.unread]
    for line in unread:
        terminal.warn(printable(line))
    return FOUND if unread else FINE
