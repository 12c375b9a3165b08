"""`kwire log restore`: a log directory from Parquet files, or from another one at a moment."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, if_interrupted
from kwire.cli.log.convert import Codec
from kwire.cli.log.restore_logs import is_log_directory, restore_logs
from kwire.cli.options import TIME, FormatOption
from kwire.cli.rows import TOPIC, Column, Format, write_rows
from kwire.errors import Malformed, OptionError
from kwire.pages.quantities import bytes_text

if TYPE_CHECKING:
    from kwire.maintenance.from_parquet import FromParquetOptions
    from kwire.maintenance.new_directory import WrittenPartition

__all__ = ["restore", "write_partitions"]

COLUMNS = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="records", heading="RECORDS", right=True),
    Column(key="log_start_offset", heading="START", right=True),
    Column(key="log_end_offset", heading="END", right=True),
    Column(key="size_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="topic_id", heading="TOPIC ID"),
)


At = Annotated[str | None, typer.Option("--at", metavar="TIME", help=f"Log directory: as of this time: {TIME}.")]
AtOffsets = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Log directory: log end offsets: JSON, or lines topic,partition,offset."),
]
Nodes = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Log directory: spread over N nodes, DIR/node-1 and so on.")
]
KafkaVersion = Annotated[
    str | None,
    typer.Option(metavar="X.Y", help="Log directory: features of this Kafka release; default: the source's."),
]
TopicIds = Annotated[
    list[str] | None, typer.Option(metavar="TOPIC=ID", help="Parquet: topic id in the target cluster. Repeatable.")
]
OffsetTable = Annotated[
    Path | None, typer.Option(metavar="FILE", help="With --new-offsets: Parquet file of old and new offsets.")
]
SegmentBytes = Annotated[
    int | None, typer.Option(metavar="N", help="Parquet: segment size, as segment.bytes.", show_default="1 GiB")
]


def restore(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="A log directory; or Parquet files, directories, globs or URLs of them."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="New log directory; must be empty or missing.")
    ],
    at: At = None,
    at_offsets: AtOffsets = None,
    nodes: Nodes = None,
    kafka_version: KafkaVersion = None,
    topic: Annotated[str | None, typer.Option(metavar="NAME", help="Parquet: topic of rows without one.")] = None,
    codec: Annotated[
        Codec | None, typer.Option(help="Parquet: compression codec of the batches.", show_default="none")
    ] = None,
    level: Annotated[int | None, typer.Option(metavar="N", help="Parquet: compression level of the codec.")] = None,
    segment_bytes: SegmentBytes = None,
    new_offsets: Annotated[
        bool, typer.Option("--new-offsets", help="Parquet: new offsets from 0, ignoring the files' offsets.")
    ] = False,
    offset_table: OffsetTable = None,
    topic_id: TopicIds = None,
    node_id: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Parquet: node.id of meta.properties.", show_default="1")
    ] = None,
    cluster_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Parquet: cluster.id of meta.properties; random by default.")
    ] = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Build a log directory from another one at a moment, or from Parquet files.

    With --at, --at-offsets or --nodes, PATH is a log directory, such as a copy by `kwire log pull`. Batches before the
    cut are kept unchanged, transactions that it divides are ended, committed offsets beyond it are moved back, and a
    metadata log is written: Kafka starts from the result. With --at, a log ends before its first batch with a later
    timestamp; with --nodes alone, nothing is cut.

    Otherwise PATH are Parquet files with the columns topic, partition, offset, timestamp, key, value and headers.
    Offsets are kept, with their gaps; without an offset column, records are numbered in the order of the files.
    Duplicate offsets are refused.
    """
    for_parquet = {
        "--topic": topic,
        "--codec": codec,
        "--level": level,
        "--segment-bytes": segment_bytes,
        "--new-offsets": new_offsets or None,
        "--offset-table": offset_table,
        "--topic-id": topic_id or None,
        "--node-id": node_id,
        "--cluster-id": cluster_id,
    }
    if nodes is not None and at is None and at_offsets is None and not is_log_directory(inputs[0]):
        raise OptionError(f"--nodes is for log directories; {inputs[0]} is none")
    if at is not None or at_offsets is not None or nodes is not None:
        if at is not None and at_offsets is not None:
            raise OptionError("--at and --at-offsets are mutually exclusive")
        _refuse(for_parquet, "is for Parquet files; not supported with --at, --at-offsets and --nodes")
        return restore_logs(
            inputs, output, at=at, at_offsets=at_offsets, nodes=nodes or 1, kafka_version=kafka_version, format=format
        )
    _refuse({"--kafka-version": kafka_version}, "requires --at, --at-offsets or --nodes")
    if len(inputs) == 1 and is_log_directory(inputs[0]):
        raise OptionError(f"{inputs[0]}: a log directory; restoring it requires --at, --at-offsets or --nodes")
    from kwire.maintenance.from_parquet import FromParquetOptions
    from kwire.records.compression.compressor import parse_compression

    options = FromParquetOptions(
        topic=topic,
        codec=parse_compression((codec or Codec.NONE).value),
        level=level,
        segment_bytes=1 << 30 if segment_bytes is None else segment_bytes,
        new_offsets=new_offsets,
        offset_table=None if offset_table is None else str(offset_table),
        topic_ids=dict(map(_topic_id, topic_id or ())),
        node_id=1 if node_id is None else node_id,
        cluster_id=cluster_id,
    )
    return _restore_files(inputs, output, options, format)


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Raise OptionError for the first option that was given."""
    for name, value in given.items():
        if value is not None:
            raise OptionError(f"{name} {why}")


def _restore_files(inputs: Sequence[str], output: Path, options: FromParquetOptions, format: Format) -> int:
    """Build a log directory from Parquet files."""
    from kwire.maintenance.from_parquet import restore_from_parquet

    with if_interrupted(f"{output} was not written"), terminal.progress("Restoring rows", 0) as bar:
        done = restore_from_parquet(
            inputs, str(output), options, now_ms=time.time_ns() // 1_000_000, progress=bar.advance
        )
    write_partitions(done, format)
    return FINE


def write_partitions(partitions: Iterable[WrittenPartition], format: Format) -> None:
    """Print the partitions of a new log directory."""
    from kwire.identifiers import render_uuid

    rows = (asdict(each) | {"topic_id": render_uuid(each.topic_id)} for each in partitions)
    write_rows(rows, COLUMNS, format)


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
