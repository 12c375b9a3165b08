"""`kwire log restore`: a log directory from Parquet files."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, if_interrupted
from kwire.cli.log.convert import Codec
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
        list[str], typer.Argument(metavar="PATH...", help="Parquet files, directories, globs or URLs of them.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Log directory to make; it must be empty or not there.")
    ],
    topic: Annotated[str | None, typer.Option(help="Topic of rows that do not name one.")] = None,
    codec: Annotated[Codec, typer.Option(help="Codec of the batches.")] = Codec.NONE,
    level: Annotated[int | None, typer.Option(help="Level of the codec.")] = None,
    segment_bytes: Annotated[int, typer.Option(help="Size of segments, as segment.bytes.")] = 1 << 30,
    new_offsets: Annotated[
        bool, typer.Option("--new-offsets", help="Number records from 0 on although the files have offsets.")
    ] = False,
    offset_table: Annotated[
        Path | None, typer.Option(help="With --new-offsets: Parquet file for what became of which offset.")
    ] = None,
    topic_id: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC=ID", help="Id that the cluster knows a topic by. Repeatable.")
    ] = None,
    node_id: Annotated[int, typer.Option(min=0, help="node.id of meta.properties.")] = 1,
    cluster_id: Annotated[str | None, typer.Option(help="cluster.id of meta.properties; random by default.")] = None,
    shape: Annotated[Format, typer.Option("--format", help="How to print what was written.")] = Format.TABLE,
) -> int:
    """Build a log directory from the columns topic, partition, offset, timestamp, key, value, headers.

    Offsets of the files stay, gaps too; without that column records are numbered in the order of the files. An offset
    that is there twice is refused.
    """
    from kwire.maintenance.restore import restore_directory
    from kwire.records.compressor import parse_compression
    from kwire.storage.checkpoints import parse_uuid, render_uuid

    ids: dict[str, uuid.UUID] = {}
    for text in topic_id or ():
        name, equals, value = text.rpartition("=")
        try:
            ids[name] = parse_uuid(value)
        except Malformed as error:
            raise OptionError(f"--topic-id {text!r}: {error.what}") from error
        if not equals:
            raise OptionError(f"--topic-id {text!r}: expected TOPIC=ID")
    state = f"{output} was not written"
    with if_interrupted(state), terminal.progress("Restoring rows", 0) as bar:
        done = restore_directory(
            inputs,
            str(output),
            now_ms=time.time_ns() // 1_000_000,
            topic=topic,
            codec=parse_compression(codec.value),
            level=level,
            segment_bytes=segment_bytes,
            new_offsets=new_offsets,
            offset_table=None if offset_table is None else str(offset_table),
            topic_ids=ids,
            node_id=node_id,
            cluster_id=cluster_id,
            progress=bar.advance,
        )
    rows = (
        {
            "topic": each.topic,
            "partition": each.partition,
            "records": each.records,
            "log_start_offset": each.log_start_offset,
            "log_end_offset": each.log_end_offset,
            "size_bytes": each.size_bytes,
            "topic_id": render_uuid(each.topic_id),
        }
        for each in done
    )
    write_rows(rows, COLUMNS, shape)
    return FINE
