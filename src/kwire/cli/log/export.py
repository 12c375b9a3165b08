"""`kwire log export`: the records of a log directory as Parquet, Arrow IPC or JSON lines."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, if_interrupted
from kwire.cli.log.directories import bytes_of, open_directory, selected
from kwire.cli.log.selection import MAX_OFFSET, Selection, parse_offsets, parse_time
from kwire.cli.rows import Column, Format, write_rows
from kwire.errors import OptionError
from kwire.pages.quantities import bytes_text

if TYPE_CHECKING:
    from kwire.maintenance import export as exporting

__all__ = ["export"]


class FileFormat(enum.StrEnum):
    """What --as takes."""

    PARQUET = "parquet"
    ARROW = "arrow"
    JSONL = "jsonl"


class Isolation(enum.StrEnum):
    """What --isolation takes."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


COLUMNS = (
    Column(key="topic", heading="TOPIC"),
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="records", heading="RECORDS", right=True),
    Column(key="start_offset", heading="FROM", right=True),
    Column(key="end_offset", heading="TO", right=True),
    Column(key="size_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="path", heading="FILE"),
)


def export(
    path: Annotated[str, typer.Argument(help="Log directory, partition directory or segment; a local path or a URL.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Directory to make; or a file, with a name like x.parquet.")
    ],
    file_format: Annotated[
        FileFormat | None, typer.Option("--as", help="Format; by default that of the file name, or parquet.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option(help="Only topics of this name or pattern (*, ?). Repeatable.")
    ] = None,
    partition: Annotated[list[int] | None, typer.Option(help="Only this partition. Repeatable.")] = None,
    offsets: Annotated[
        str | None, typer.Option(metavar="A:B", help="Offsets from A up to, not with, B; A:, :B, A.")
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="From this time on: ISO 8601 (UTC) or ms.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Before this time.")] = None,
    isolation: Annotated[
        Isolation, typer.Option(help="read_committed leaves out aborted and open transactions.")
    ] = Isolation.READ_UNCOMMITTED,
    headers: Annotated[bool, typer.Option("--headers", help="The column of headers too.")] = False,
    as_base64: Annotated[
        bool, typer.Option("--base64", help="JSON lines: keys and payloads in base64, not as text.")
    ] = False,
    shape: Annotated[Format, typer.Option("--format", help="How to print what was written.")] = Format.TABLE,
) -> int:
    """Write records to files with the columns of Spark's Kafka source.

    A directory gets TOPIC/partition=N/records.parquet; a file gets everything. Existing files are not overwritten. An
    interrupted export to a directory continues when the same command is given again.
    """
    by_name = output.suffix.removeprefix(".") if output.suffix else ""
    one_file = by_name in list(FileFormat)
    if by_name.isalpha() and not one_file and file_format is None:
        raise OptionError(
            f"{output}: .{by_name} is not a format of export; name a file .parquet, .arrow or .jsonl, "
            "or give --as to make a directory of this name"
        )
    if one_file and file_format is not None and by_name != file_format:
        raise OptionError(f"{output}: the name says {by_name}, --as says {file_format}")
    if not output.parent.is_dir():
        raise OptionError(f"{output.parent}: no such directory")
    if as_base64 and FileFormat.JSONL not in (file_format, by_name):
        raise OptionError("--base64 goes with JSON lines")
    directory = open_directory(path)
    logs = selected(directory, Selection(topics=topic or (), partitions=partition or ()))
    first, end = parse_offsets(offsets) if offsets is not None else (0, MAX_OFFSET + 1)
    from kwire.maintenance.export import Range, export_logs

    wanted = Range(
        start_offset=first,
        end_offset=end if end <= MAX_OFFSET else None,
        since_ms=None if since is None else parse_time(since, "--since"),
        until_ms=None if until is None else parse_time(until, "--until"),
    )
    chosen: exporting.Format = "parquet"
    for each in ("parquet", "arrow", "jsonl"):
        if each == (file_format or by_name):
            chosen = each
    state = (
        f"{output} was not written" if one_file else f"{output}.part has what is done; the same command continues there"
    )
    with if_interrupted(state), terminal.progress("Exporting records", bytes_of(logs)) as bar:
        done = export_logs(
            logs,
            str(output),
            shape=chosen,
            one_file=one_file,
            records=wanted,
            isolation=isolation.value,
            headers=headers,
            as_base64=as_base64,
            progress=bar.advance,
        )
    write_rows(
        (
            {
                "topic": each.topic,
                "partition": each.partition,
                "records": each.records,
                "start_offset": each.start_offset,
                "end_offset": each.end_offset,
                "size_bytes": Path(each.path).stat().st_size,
                "path": each.path,
            }
            for each in done
        ),
        COLUMNS,
        shape,
    )
    return FINE
