"""`kwire log report`: one HTML page about the topics of a log directory."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.log.directories import bytes_of, open_logs, selected, warn_of_ignored
from kwire.cli.log.selection import Selection
from kwire.cli.options import ClientConfigFile, ClientConfigs, LogPath, Partitions, Topics
from kwire.errors import OptionError, counted, hide_secrets
from kwire.pages.escaping import printable
from kwire.target_paths import write_whole

__all__ = ["check_page_path", "report", "write_page"]


def report(
    path: LogPath,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.html", help="HTML file to write.")],
    topic: Topics = None,
    partition: Partitions = None,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
) -> int:
    """Write an HTML report about the topics of a log directory.

    Per topic: records over time, codecs, missing offsets, keys, tombstones, transactions. The page is one file without
    scripts. Exit code 1 if a part of a log could not be read; the page lists those parts.
    """
    source = open_logs(path, config, config_file)
    logs = selected(source, Selection.parse(topic, partition))
    check_page_path(output)
    from kwire.maintenance.statistics import count_topics
    from kwire.pages.log_report import render_report

    with terminal.progress("Reading records", bytes_of(logs)) as bar:
        topics = count_topics(logs, bar.advance)
    page = render_report(topics, source=hide_secrets(path), made_at=datetime.datetime.now(datetime.UTC))
    write_page(output, page)
    records = sum(each.records for each in topics)
    print(printable(f"{output}: {counted(len(topics), 'topic')}, {counted(records, 'record')}"))
    warn_of_ignored(source.ignored)
    unread = [line for each in topics for line in each.unread]
    for line in unread:
        terminal.warn(printable(line))
    return FOUND if unread else FINE


def check_page_path(path: Path) -> None:
    """Raise OptionError unless path can be an HTML file: its directory exists and it is not a directory itself."""
    if path.is_dir():
        raise OptionError(f"{path}: is a directory; name an HTML file")
    if not path.parent.is_dir():
        raise OptionError(f"{path.parent}: no such directory")


def write_page(path: Path, page: str) -> None:
    """Write an HTML page. Raises OptionError when the file cannot be written."""
    write_whole(path, page.encode("utf-8", "replace"))
