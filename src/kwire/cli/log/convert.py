"""`kwire log convert`: a log directory in another record format or with another codec."""

from __future__ import annotations

import enum
import time
from pathlib import Path
from typing import Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, if_interrupted, unfinished
from kwire.cli.log.directories import open_directory, selected
from kwire.cli.log.selection import Selection
from kwire.cli.options import FormatOption, Partitions, Topics
from kwire.cli.rows import TOPIC, Column, Format, write_rows
from kwire.errors import OptionError
from kwire.pages.quantities import bytes_text

__all__ = ["convert"]


class Codec(enum.StrEnum):
    """Values of --codec."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


COLUMNS = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="segments", heading="SEGMENTS", right=True),
    Column(key="batches", heading="BATCHES", right=True),
    Column(key="records", heading="RECORDS", right=True),
    Column(key="source_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="target_bytes", heading="CONVERTED", show=bytes_text, right=True),
    Column(key="largest_batch_bytes", heading="LARGEST BATCH", show=bytes_text, right=True),
    Column(key="lost", heading="LOST"),
)


def convert(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="Log directory or partition directory; with -o also a URL.")
    ],
    magic: Annotated[
        int | None, typer.Option(metavar="N", help="Record format: 0, 1 or 2; unchanged by default.")
    ] = None,
    codec: Annotated[Codec | None, typer.Option(help="Compression codec; unchanged by default.")] = None,
    level: Annotated[int | None, typer.Option(metavar="N", help="Compression level of the codec.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="New log directory; must be empty or missing.")
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Convert in place; no broker may run on the directory.")
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Drop what the target format cannot hold instead of refusing.")
    ] = False,
    topic: Topics = None,
    partition: Partitions = None,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of processes; chosen by size by default. Not with --apply."),
    ] = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Convert batches to another record format (magic) or compression codec.

    Offsets, timestamps and transactions are kept as far as the format can hold them. Without -o or --apply, a dry run:
    converts in memory and prints sizes and losses. Exit code 1 if something would be lost. Running the same command
    again continues an interrupted conversion.
    """
    if magic is None and codec is None:
        raise OptionError("no target: set --magic, --codec or both")
    if level is not None and codec is None:
        raise OptionError("--level requires --codec")
    _check_in_place(output, jobs, apply=apply)
    with if_interrupted(f"{path} is unchanged"):
        directory = open_directory(path)
        logs = selected(directory, Selection.parse(topic, partition))
    from kwire.maintenance.convert import TargetFormat, convert_directory, convert_in_place, examine
    from kwire.maintenance.convert.directory import choose_processes
    from kwire.records.compression.compressor import check_level, parse_compression

    wanted = None if codec is None else parse_compression(codec.value)
    target = TargetFormat(magic=magic, codec=wanted, level=None if wanted is None else check_level(wanted, level))
    keys = [(log.topic, log.partition) for log in logs]
    size = sum(log.size_bytes for log in logs)
    processes = jobs or choose_processes(size, len(logs))
    now_ms = time.time_ns() // 1_000_000
    if output is not None:
        state = f"{output}.part has the finished part; run the command again to continue"
    elif apply:
        state = unfinished(path)
    else:
        state = f"{path} is unchanged"
    with if_interrupted(state), terminal.progress("Converting", size) as bar:
        if output is not None:
            done = convert_directory(
                directory,
                str(output),
                target,
                keys,
                whole=not topic and not partition,
                accept_loss=accept_loss,
                now_ms=now_ms,
                jobs=processes,
                progress=bar.advance,
            )
        elif apply:
            done = convert_in_place(path, target, keys, accept_loss=accept_loss, now_ms=now_ms, progress=bar.advance)
        else:
            done = examine(directory, target, keys, jobs=processes, progress=bar.advance)
    rows = [each.to_json() | {"lost": each.loss.described() if each.loss else None} for each in done]
    write_rows(rows, COLUMNS, format)
    if output is None and not apply:
        terminal.warn("dry run, nothing was written: -o DIR writes a new log directory, --apply converts in place")
        return FOUND if any(each.loss for each in done) else FINE
    return FINE


def _check_in_place(output: Path | None, jobs: int | None, *, apply: bool) -> None:
    """Raise OptionError for options that --apply does not have."""
    if output is not None and apply:
        raise OptionError("--apply and -o are mutually exclusive")
    if jobs is not None and apply:
        raise OptionError("--jobs and --apply are mutually exclusive: one process converts in place")
