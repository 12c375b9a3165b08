"""`kwire log restore`: a log directory from Parquet files."""

from __future__ import annotations

import time
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, if_interrupted
from kwire.cli.log.convert import Codec
from kwire.cli.options import FormatOption
from kwire.cli.rows import Column, Format, write_rows
from kwire.errors import Malformed, OptionError
from kwire.pages.quantities import bytes_text

__all__ = ["restore"]

COLUMNS = (
    Column(key="topic", heading="TOPIC"),
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="records", heading="RECORDS", right=True),
    Column(key="log_start_offset", heading="START", right=True),
    Column(key="log_end_offset", heading="END", right=True),
    Column(key="size_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="topic_id", heading="TOPIC ID"),
)


def restore(
    inputs: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Parquet files, or directories, globs or URLs of them.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="New log directory; must be empty or missing.")
    ],
    topic: Annotated[str | None, typer.Option(metavar="NAME", help="Topic of rows without one.")] = None,
    codec: Annotated[Codec, typer.Option(help="Compression codec of the batches.")] = Codec.NONE,
    level: Annotated[int | None, typer.Option(metavar="N", help="Compression level of the codec.")] = None,
    segment_bytes: Annotated[int, typer.Option(metavar="N", help="Segment size, as segment.bytes.")] = 1 << 30,
    new_offsets: Annotated[
        bool, typer.Option("--new-offsets", help="New offsets from 0, ignoring those of the files.")
    ] = False,
    offset_table: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --new-offsets: Parquet file of old and new offsets.")
    ] = None,
    topic_id: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC=ID", help="Topic id in the target cluster. Repeatable.")
    ] = None,
    node_id: Annotated[int, typer.Option(metavar="N", min=0, help="node.id of meta.properties.")] = 1,
    cluster_id: Annotated[
        str | None, typer.Option(metavar="ID", help="cluster.id of meta.properties; random by default.")
    ] = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Build a log directory from Parquet files.

    The columns are topic, partition, offset, timestamp, key, value and headers. Offsets are kept, with their gaps;
    without an offset column, records are numbered in the order of the files. Duplicate offsets are refused.
    """
    from kwire.identifiers import render_uuid
    from kwire.maintenance.restore import RestoreOptions, restore_directory
    from kwire.records.compressor import parse_compression

    state = f"{output} was not written"
    with if_interrupted(state), terminal.progress("Restoring rows", 0) as bar:
        done = restore_directory(
            inputs,
            str(output),
            RestoreOptions(
                topic=topic,
                codec=parse_compression(codec.value),
                level=level,
                segment_bytes=segment_bytes,
                new_offsets=new_offsets,
                offset_table=None if offset_table is None else str(offset_table),
                topic_ids=dict(map(_topic_id, topic_id or ())),
                node_id=node_id,
                cluster_id=cluster_id,
            ),
            now_ms=time.time_ns() // 1_000_000,
            progress=bar.advance,
        )
    write_rows((asdict(each) | {"topic_id": render_uuid(each.topic_id)} for each in done), COLUMNS, format)
    return FINE


def _topic_id(text: str) -> tuple[str, uuid.UUID]:
    """Parse a value of --topic-id. Raises OptionError."""
    from kwire.identifiers import parse_uuid

    name, equals, value = text.rpartition("=")
    if not equals:
        raise OptionError(f"--topic-id {text!r}: expected TOPIC=ID")
    try:
        return name, parse_uuid(value)
    except Malformed as error:
        raise OptionError(f"--topic-id {text!r}: {error.what}") from error
