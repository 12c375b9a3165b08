"""`kwire log convert`: a log directory in another record format or with another codec."""

from __future__ import annotations

import enum
import time
from pathlib import Path
from typing import Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, if_interrupted
from kwire.cli.log.directories import open_directory, selected
from kwire.cli.log.selection import Selection
from kwire.cli.rows import Column, Format, write_rows
from kwire.errors import OptionError
from kwire.pages.quantities import bytes_text

__all__ = ["convert"]


class Codec(enum.StrEnum):
    """What --codec takes."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


COLUMNS = (
    Column(key="topic", heading="TOPIC"),
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
    path: Annotated[str, typer.Argument(help="Log directory or partition directory; with -o also a URL.")],
    magic: Annotated[int | None, typer.Option(help="Record format: 0, 1 or 2; by default it stays.")] = None,
    codec: Annotated[Codec | None, typer.Option(help="Codec; by default each batch keeps its own.")] = None,
    level: Annotated[int | None, typer.Option(help="Level of the codec.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a new log directory; one that is there must be empty.")
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Convert in place; no broker may run on the directory.")
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Go on where the format has no place for something.")
    ] = False,
    topic: Annotated[
        list[str] | None, typer.Option(help="Only topics of this name or pattern (*, ?). Repeatable.")
    ] = None,
    partition: Annotated[list[int] | None, typer.Option(help="Only this partition. Repeatable.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; by default as many as are worth it.")] = None,
    shape: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> int:
    """Convert batches to another magic or codec; offsets, times and transactions stay as far as the format lets.

    A dry run without -o and --apply: converts in memory and prints sizes and losses. Exit code 1 if something would be
    lost. An interrupted run continues when the same command is given again.
    """
    if magic is None and codec is None:
        raise OptionError("nothing to convert to: give --magic, --codec or both")
    if output is not None and apply:
        raise OptionError("either --apply or -o")
    if level is not None and codec is None:
        raise OptionError("--level goes with --codec")
    directory = open_directory(path)
    logs = selected(directory, Selection(topics=topic or (), partitions=partition or ()))
    from kwire.maintenance.convert import TargetFormat, convert_directory, convert_in_place, examine
    from kwire.maintenance.convert.directory import good_processes
    from kwire.records.compressor import check_level, parse_compression

    wanted = None if codec is None else parse_compression(codec.value)
    target = TargetFormat(magic=magic, codec=wanted, level=None if wanted is None else check_level(wanted, level))
    keys = [(log.topic, log.partition) for log in logs]
    size = sum(log.size_bytes for log in logs)
    processes = jobs or good_processes(size, len(logs))
    now_ms = time.time_ns() // 1_000_000
    if output is not None:
        state = f"{output}.part has what is done; the same command continues there"
    elif apply:
        state = (
            f"{path} is valid: finished segments are converted, the others unchanged; the same command does the rest"
        )
    else:
        state = "nothing was changed"
    with if_interrupted(state), terminal.progress("Converting", size) as bar:
        if output is not None:
            whole = not topic and not partition
            done = convert_directory(
                directory,
                str(output),
                target,
                keys,
                whole=whole,
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
    write_rows(rows, COLUMNS, shape)
    if output is None and not apply:
        terminal.warn("a dry run: nothing was written; -o DIR writes a new log directory, --apply converts in place")
        return FOUND if any(each.loss for each in done) else FINE
    return FINE
