"""`kwire log export`: the records of a log directory as Parquet, Arrow IPC or JSON lines."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, if_interrupted
from kwire.cli.log.directories import bytes_of, open_logs, selected, warn_of_ignored
from kwire.cli.log.selection import Selection
from kwire.cli.options import (
    ClientConfigFile,
    ClientConfigs,
    FormatOption,
    LogPath,
    Offsets,
    Partitions,
    Since,
    SkipMissing,
    Topics,
    Until,
)
from kwire.cli.rows import TOPIC, Column, Format, Row, write_rows
from kwire.errors import OptionError
from kwire.identifiers import MAX_OFFSET
from kwire.pages.quantities import bytes_text
from kwire.storage.staged_directory import check_writable

if TYPE_CHECKING:
    from kwire.maintenance.export import Exported

__all__ = ["export"]


class FileFormat(enum.StrEnum):
    """Values of --file-format."""

    PARQUET = "parquet"
    ARROW = "arrow"
    JSONL = "jsonl"


class Isolation(enum.StrEnum):
    """Values of --isolation."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


COLUMNS = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="records", heading="RECORDS", right=True),
    Column(key="start_offset", heading="FROM", right=True),
    Column(key="end_offset", heading="TO", right=True),
    Column(key="size_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="path", heading="FILE"),
)


def export(
    path: LogPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="PATH", help="New directory, or file with a name like x.parquet.")
    ],
    file_format: Annotated[
        FileFormat | None,
        typer.Option("--file-format", help="File format; by default that of the file name, or parquet."),
    ] = None,
    topic: Topics = None,
    partition: Partitions = None,
    offsets: Offsets = None,
    since: Since = None,
    until: Until = None,
    isolation: Annotated[
        Isolation, typer.Option(help="read_committed excludes aborted and open transactions.")
    ] = Isolation.READ_UNCOMMITTED,
    headers: Annotated[bool, typer.Option("--headers", help="Column of record headers.")] = False,
    as_base64: Annotated[
        bool, typer.Option("--base64", help="Keys and values of JSON lines in base64 instead of text.")
    ] = False,
    threads: Annotated[int, typer.Option(min=1, max=256, help="Threads that decompress and decode a log.")] = 1,
    skip_missing: SkipMissing = False,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Export records to Parquet, Arrow or JSON lines, with the columns of Spark's Kafka source.

    A directory gets TOPIC/partition=N/records.parquet, a file gets all records. Existing files are not overwritten.
    Running the same command again continues an interrupted export to a directory.
    """
    chosen, one_file = _file_format(output, file_format)
    if as_base64 and chosen is not FileFormat.JSONL:
        raise OptionError("--base64 requires JSON lines: --file-format jsonl")
    selection = Selection.parse(topic, partition, offsets=offsets, since=since, until=until)
    source = open_logs(path, config, config_file)
    logs = selected(source, selection)
    from kwire.maintenance.export import ExportOptions, Range, export_logs

    options = ExportOptions(
        format=chosen.value,
        records=Range(
            start_offset=selection.first_offset,
            end_offset=selection.end_offset if selection.end_offset <= MAX_OFFSET else None,
            since_ms=selection.since_ms,
            until_ms=selection.until_ms,
        ),
        isolation=isolation.value,
        headers=headers,
        as_base64=as_base64,
        threads=threads,
        skip_missing=skip_missing,
    )
    terminal.show_warnings("kwire.log")
    state = f"{output}.part has the finished part; run the command again to continue"
    if one_file:
        state = f"{output} was not written"
    with if_interrupted(state), terminal.progress("Exporting records", bytes_of(logs)) as bar:
        exported = export_logs(logs, str(output), options, one_file=one_file, progress=bar.advance)
    write_rows(map(_row, exported), COLUMNS, format)
    warn_of_ignored(source.ignored)
    return FINE


def _file_format(output: Path, given: FileFormat | None) -> tuple[FileFormat, bool]:
    """Return the format to write, and whether output is one file. Raises OptionError if they disagree."""
    suffix = output.suffix.removeprefix(".")
    by_name = FileFormat(suffix) if suffix in list(FileFormat) else None
    if suffix.isalpha() and by_name is None and given is None:
        raise OptionError(
            f"{output}: .{suffix} is not an export format; name a file .parquet, .arrow or .jsonl, "
            "or set --file-format for a directory of this name"
        )
    if by_name is not None and given not in (None, by_name):
        raise OptionError(f"{output}: the name says {by_name}, --file-format says {given}")
    if not output.parent.is_dir():
        raise OptionError(f"{output.parent}: no such directory")
    check_writable(str(output.parent))
    return given or by_name or FileFormat.PARQUET, by_name is not None


def _row(exported: Exported) -> Row:
    return {
        "topic": exported.topic,
        "partition": exported.partition,
        "records": exported.records,
        "start_offset": exported.start_offset,
        "end_offset": exported.end_offset,
        "size_bytes": Path(exported.path).stat().st_size,
        "path": exported.path,
    }
