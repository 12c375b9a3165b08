"""`kwire log dump`: batches, records and index entries as a table, as JSON, or as kafka-dump-log prints them."""

from __future__ import annotations

import base64
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.client_configs import CLUSTER, client_configs, is_cluster
from kwire.cli.command import FINE, FOUND
from kwire.cli.log.directories import check_path, open_cluster, open_directory, selected, warn_of_ignored
from kwire.cli.log.files import Dumped, LogFile, PartitionOfCluster, kind_of, log_file, trailing_bytes
from kwire.cli.log.following import follow_batches
from kwire.cli.log.kafka_decoded import InternalTopic, decoded_reading
from kwire.cli.log.kafka_lines import Lines
from kwire.cli.log.selection import Selection
from kwire.cli.options import ClientConfigFile, ClientConfigs, FormatOption, Offsets, Partitions, Since, Topics, Until
from kwire.cli.rows import TOPIC, Column, Format, Row, write_rows
from kwire.errors import DecodeError, KwireError, OptionError
from kwire.pages.escaping import printable
from kwire.pages.quantities import time_text

if TYPE_CHECKING:
    from kwire.cli.log.kafka_dump import KafkaDump
    from kwire.client.cluster_logs import ClusterLog, ClusterLogs
    from kwire.records import Batch, Record

__all__ = ["dump"]


def dump(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Log directories, partition directories, or files: "
            ".log, .checkpoint, .index, .timeindex, .txnindex, .snapshot; "
            "or clusters: kafka://HOST:PORT[,HOST:PORT][/TOPIC[-PARTITION]].",
        ),
    ],
    deep: Annotated[bool, typer.Option("--deep", help="Records instead of batches.")] = False,
    offsets: Offsets = None,
    since: Since = None,
    until: Until = None,
    topic: Topics = None,
    partition: Partitions = None,
    follow: Annotated[bool, typer.Option("--follow", help="With kafka://: new batches too, until Ctrl-C.")] = False,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
    format: FormatOption = Format.TABLE,
    like_kafka: Annotated[
        bool, typer.Option("--like-kafka", help="Output of kafka-dump-log; --deep is its --print-data-log.")
    ] = False,
    kafka_version: Annotated[
        Lines | None, typer.Option(help="Kafka release of that output; newest by default.")
    ] = None,
    offsets_decoder: Annotated[
        bool, typer.Option("--offsets-decoder", help="With --like-kafka: decoded records of __consumer_offsets.")
    ] = False,
    transaction_log_decoder: Annotated[
        bool, typer.Option("--transaction-log-decoder", help="Decoded records of __transaction_state.")
    ] = False,
    cluster_metadata_decoder: Annotated[
        bool, typer.Option("--cluster-metadata-decoder", help="Decoded records of __cluster_metadata and snapshots.")
    ] = False,
    share_group_state_decoder: Annotated[
        bool, typer.Option("--share-group-state-decoder", help="Decoded records of __share_group_state.")
    ] = False,
    remote_log_metadata_decoder: Annotated[
        bool, typer.Option("--remote-log-metadata-decoder", help="Decoded records of __remote_log_metadata.")
    ] = False,
    skip_record_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="With --like-kafka: keys and payloads only.")
    ] = False,
) -> int:
    """Print the batches, records or index entries of log files, or the batches or records of a cluster.

    Of a cluster, batches up to the high watermark are printed, without positions in files. --follow goes on with new
    ones, also of new partitions of the selected topics.
    Exit code 1 if a checksum does not match, a file ends inside a batch, or something cannot be read; the rest is
    printed.
    """
    decoders = {
        InternalTopic.OFFSETS: offsets_decoder,
        InternalTopic.TRANSACTION_LOG: transaction_log_decoder,
        InternalTopic.CLUSTER_METADATA: cluster_metadata_decoder,
        InternalTopic.SHARE_GROUP_STATE: share_group_state_decoder,
        InternalTopic.REMOTE_LOG_METADATA: remote_log_metadata_decoder,
    }
    decoder = _decoder([topic for topic, is_set in decoders.items() if is_set])
    if like_kafka and format is not Format.TABLE:
        raise OptionError("--like-kafka and --format are mutually exclusive")
    names = (f"--{decoder}-decoder", "--kafka-version", "--skip-record-metadata")
    for option, value in zip(names, (decoder, kafka_version, skip_record_metadata), strict=True):
        if value and not like_kafka:
            raise OptionError(f"{option} requires --like-kafka")
    selection = Selection.parse(topic, partition, offsets=offsets, since=since, until=until)
    files, source = _sources(paths, selection, config, config_file)
    if follow:
        if format is Format.JSON or like_kafka or source is None:
            raise OptionError(f"--follow requires one {CLUSTER} path, and --format table or jsonl")
        return _Dump(deep, selection, lambda size_bytes: None).follow(source, format)
    with terminal.progress("Reading", sum(file.size_bytes() for file in files), beside_rows=True) as bar:
        if not like_kafka:
            return _Dump(deep, selection, bar.advance).dump(files, format)
        tool = _kafka_dump(kafka_version or Lines.KAFKA_4_3, decoder, selection, bar.advance)
        tool.deep, tool.bare = deep or decoder is not None, skip_record_metadata
        return FOUND if tool.run(files) else FINE


def _kafka_dump(
    lines: Lines, decoder: InternalTopic | None, selection: Selection, advance: Callable[[int], None]
) -> KafkaDump:
    from kwire.cli.log.kafka_dump import KafkaDump

    read = None if decoder is None else decoded_reading(decoder, lines)
    return KafkaDump(lines=lines, deep=False, selection=selection, advance=advance, read=read)


def _decoder(chosen: Sequence[InternalTopic]) -> InternalTopic | None:
    """Return the decoder of the options, if any. Raises OptionError for more than one."""
    if len(chosen) > 1:
        raise OptionError(f"--{chosen[0]}-decoder and --{chosen[1]}-decoder are mutually exclusive")
    return chosen[0] if chosen else None


def _sources(
    paths: Sequence[str], selection: Selection, config: Sequence[str] | None, config_file: str | None
) -> tuple[list[Dumped], ClusterLogs | None]:
    """Return the files and partitions at paths, and the cluster if it is the only path."""
    clusters = [path for path in paths if is_cluster(path)]
    settings = client_configs((clusters or paths)[0], config, config_file)
    sources: list[Dumped] = []
    source = None
    for path in paths:
        if is_cluster(path):
            source = open_cluster(path, settings)
            sources += map(_of_cluster, selected(source, selection))
            warn_of_ignored(source.ignored)
        else:
            sources += _files(path, selection)
    return sources, source if len(paths) == 1 else None


def _files(path: str, selection: Selection) -> Iterator[LogFile]:
    check_path(path)
    if kind_of(path) and ("://" in path or os.path.isfile(path)):
        yield log_file(path)
        return
    if "://" not in path and os.path.isfile(path):
        yield log_file(path)  # raises: the name does not end like a log file
    for log in selected(open_directory(path), selection):
        for segment in log.segments:
            within = segment.path.removeprefix(log.directory).lstrip("/")
            below = f"{log.directory}/{within}" if log.directory else within
            yield LogFile(
                name=f"{path.rstrip('/')}/{below}",
                url=segment.url,
                kind=".log",
                base_offset=segment.base_offset,
                topic=log.topic,
                partition=log.partition,
            )


def _of_cluster(log: ClusterLog) -> PartitionOfCluster:
    return PartitionOfCluster(
        name=log.url, url=log.url, kind=".log", base_offset=None, topic=log.topic, partition=log.partition, log=log
    )


class _Dump:
    """One run: the rows of each file, by its kind."""

    def __init__(self, deep: bool, selection: Selection, advance: Callable[[int], None]) -> None:
        self._deep, self._selection, self._advance = deep, selection, advance
        self._found = False

    def dump(self, files: Sequence[Dumped], format: Format) -> int:
        """Print files: a table with a heading for each, or JSON as one array or stream of objects."""
        if format is Format.TABLE:
            for file in files:
                self._table(file, alone=len(files) == 1)
        else:
            write_rows((row for file in files for row in self._guarded(file)), (), format)
        return FOUND if self._found else FINE

    def follow(self, source: ClusterLogs, format: Format) -> int:
        """Print the batches of a cluster, and new ones until Ctrl-C, or until there are no partitions left."""
        rows = (
            row for log, batch in follow_batches(source, self._selection) for row in self._rows(_of_cluster(log), batch)
        )
        columns = RECORD_COLUMNS if self._deep else BATCH_COLUMNS
        write_rows(rows, (*PARTITION_COLUMNS, *columns), format, live=True)
        return FOUND if self._found else FINE

    def _table(self, file: Dumped, *, alone: bool) -> None:
        rows = self._guarded(file)
        first = next(rows, None)
        if first is None and not alone:
            return
        if not alone:
            print(terminal.bold(printable(file.name)))
        if first is None:
            print("empty" if self._selection == Selection() else "nothing selected")
        else:
            write_rows(itertools.chain([first], rows), self._columns(file), Format.TABLE)
        if not alone:
            print()

    def _guarded(self, file: Dumped) -> Iterator[Row]:
        """Yield the rows of one file. An error ends this file, not the run."""
        try:
            if isinstance(file, LogFile) and file.kind in ENTRIES:
                yield from ENTRIES[file.kind](file)
            else:
                yield from self._batches(file)
        except KwireError as error:
            self._warn(error)

    def _warn(self, problem: KwireError | str) -> None:
        terminal.warn(printable(str(problem)))
        self._found = True

    def _columns(self, file: Dumped) -> Sequence[Column]:
        if file.kind in (".log", ".checkpoint"):
            return RECORD_COLUMNS if self._deep else BATCH_COLUMNS
        return ENTRY_COLUMNS[file.kind]

    def _batches(self, file: Dumped) -> Iterator[Row]:
        with file.walk(self._selection, self._advance) as walk:
            for batch in walk:
                yield from self._rows(file, batch)
            if left := trailing_bytes(walk):
                self._warn(f"{file.url}: {left} trailing bytes are not a complete batch")

    def _rows(self, file: Dumped, batch: Batch) -> Iterator[Row]:
        if not (self._selection.may_take_from if self._deep else self._selection.takes_batch)(batch):
            return
        valid = batch.is_valid
        if not valid:
            self._warn(batch.corrupt("checksum does not match"))
        if not self._deep:
            yield _batch_row(file, batch, valid)
            return
        try:
            for record in batch.records(check_crc=False):
                if self._selection.takes_record(record):
                    yield _record_row(file, batch, record)
        except DecodeError as error:
            self._warn(error)


def _place(file: Dumped) -> Row:
    return {"file": file.name, "topic": file.topic, "partition": file.partition}


def _batch_row(file: Dumped, batch: Batch, valid: bool) -> Row:
    offsets = batch.claimed_offsets()
    return _place(file) | {
        "position": file.position_of(batch),
        "size_bytes": batch.size_bytes,
        # headers below magic 2 have the last offset only; the first may require decompression
        "base_offset": offsets[0] if batch.magic >= 2 else None,
        "last_offset": batch.last_offset,
        "count": batch.count,
        "magic": batch.magic,
        "compression": batch.compression.text if batch.attributes & 7 < 5 else f"unknown ({batch.attributes & 7})",
        "timestamp_type": batch.timestamp_type.text,
        "max_timestamp": batch.max_timestamp,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "partition_leader_epoch": batch.partition_leader_epoch,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "delete_horizon_ms": batch.delete_horizon_ms,
        "crc": batch.crc,
        "is_valid": valid,
    }


def _record_row(file: Dumped, batch: Batch, record: Record) -> Row:
    row = _place(file) | {
        "position": file.position_of(batch),
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": record.timestamp_type.text,
        "sequence": record.sequence,
        "leader_epoch": record.leader_epoch,
        "is_control": batch.is_control,
        **_contents("key", record.key),
        **_contents("value", record.value),
        "headers": [{"key": key, **_contents("value", value)} for key, value in record.headers],
    }
    if batch.is_control:
        row["control"] = _control_text(record)
    return row


def _contents(name: str, value: bytes | None) -> Row:
    """Return bytes as text under `name`, or as base64 under `name_base64` when they are not UTF-8."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode("ascii")}


def _control_text(record: Record) -> str:
    from kwire.errors import Malformed
    from kwire.records import parse_control_record

    try:
        return parse_control_record(record).type.name
    except Malformed as error:
        return f"malformed: {error.what}"


def _offset_entries(file: LogFile) -> Iterator[Row]:
    from kwire.log.files.offset_index import ENTRY

    for relative, position in ENTRY.iter_unpack(_entries(file, ENTRY.size)):
        yield _place(file) | {"offset": _base(file) + relative, "position": position}


def _time_entries(file: LogFile) -> Iterator[Row]:
    from kwire.log.files.time_index import ENTRY

    for timestamp, relative in ENTRY.iter_unpack(_entries(file, ENTRY.size)):
        yield _place(file) | {"timestamp": timestamp, "offset": _base(file) + relative}


def _aborted(file: LogFile) -> Iterator[Row]:
    from kwire.log.files.transaction_index import ENTRY

    names = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
    for fields in ENTRY.iter_unpack(_entries(file, ENTRY.size)):
        yield _place(file) | dict(zip(names, fields, strict=True))


def _producers(file: LogFile) -> Iterator[Row]:
    from kwire.log.files.producer_snapshot import parse_producer_snapshot

    with file.open() as opened:
        data = opened.pread(0, opened.size())
    for state in parse_producer_snapshot(data):
        yield _place(file) | state._asdict()


ENTRIES: dict[str, Callable[[LogFile], Iterator[Row]]] = {
    ".index": _offset_entries,
    ".timeindex": _time_entries,
    ".txnindex": _aborted,
    ".snapshot": _producers,
}


def _base(file: LogFile) -> int:
    return file.base_offset or 0


def _entries(file: LogFile, entry_bytes: int) -> bytes:
    """Return the whole entries of an index, without the zeros at the end of a preallocated file."""
    from kwire.log.files.offset_index import read_entries

    with file.open() as opened:
        return read_entries(opened, entry_bytes)


def _time(value: int) -> str:
    return (time_text(value) or "-").replace("T", " ")


def _shown(row: Row, name: str) -> str:
    if f"{name}_base64" in row:
        return "0x" + base64.b64decode(row[f"{name}_base64"]).hex()
    return "null" if row[name] is None else str(row[name])


def _headers(row: Row) -> str | None:
    return ",".join(f"{header['key']}={_shown(header, 'value')}" for header in row["headers"]) or None


def _flags(row: Row) -> str | None:
    named = (("is_transactional", "transactional"), ("is_control", "control"))
    flags = [text for key, text in named if row[key]] + ([] if row["is_valid"] else ["INVALID"])
    return ",".join(flags) or None


def _number(value: int) -> str:
    return "-" if value == -1 else str(value)


PARTITION_COLUMNS = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
)
BATCH_COLUMNS = (
    Column(key="base_offset", heading="FIRST", right=True),
    Column(key="last_offset", heading="LAST", right=True),
    Column(key="count", heading="RECORDS", right=True),
    Column(key="position", heading="POSITION", right=True),
    Column(key="size_bytes", heading="BYTES", right=True),
    Column(key="magic", heading="MAGIC", right=True),
    Column(key="compression", heading="CODEC"),
    Column(key="timestamp_type", heading="TIME TYPE"),
    Column(key="max_timestamp", heading="LARGEST TIME", show=_time),
    Column(key="producer_id", heading="PRODUCER", show=_number, right=True),
    Column(key="producer_epoch", heading="EPOCH", show=_number, right=True),
    Column(key="base_sequence", heading="SEQUENCE", show=_number, right=True),
    Column(key="partition_leader_epoch", heading="LEADER EPOCH", show=_number, right=True),
    Column(pick=_flags, heading="FLAGS"),
)
RECORD_COLUMNS = (
    Column(key="offset", heading="OFFSET", right=True),
    Column(key="timestamp", heading="TIME", show=_time),
    Column(pick=lambda row: row.get("control") or _shown(row, "key"), heading="KEY"),
    Column(pick=_headers, heading="HEADERS"),
    Column(pick=lambda row: _shown(row, "value"), heading="VALUE"),
)
ENTRY_COLUMNS = {
    ".index": (
        Column(key="offset", heading="OFFSET", right=True),
        Column(key="position", heading="POSITION", right=True),
    ),
    ".timeindex": (
        Column(key="timestamp", heading="TIME", show=_time),
        Column(key="offset", heading="OFFSET", right=True),
    ),
    ".txnindex": (
        Column(key="producer_id", heading="PRODUCER", right=True),
        Column(key="first_offset", heading="FIRST", right=True),
        Column(key="last_offset", heading="LAST", right=True),
        Column(key="last_stable_offset", heading="LAST STABLE", right=True),
    ),
    ".snapshot": (
        Column(key="producer_id", heading="PRODUCER", right=True),
        Column(key="producer_epoch", heading="EPOCH", right=True),
        Column(key="last_sequence", heading="LAST SEQUENCE", right=True),
        Column(key="last_offset", heading="LAST OFFSET", show=_number, right=True),
        Column(key="offset_delta", heading="DELTA", right=True),
        Column(key="timestamp", heading="TIME", show=_time),
        Column(key="coordinator_epoch", heading="COORDINATOR EPOCH", show=_number, right=True),
        Column(key="current_transaction_first_offset", heading="OPEN FROM", show=_number, right=True),
    ),
}
