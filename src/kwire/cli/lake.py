"""`kwire lake`: logs and topics as Iceberg and Delta tables."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, add_command, add_group, if_interrupted, new_group
from kwire.cli.options import ClientConfigFile, ClientConfigs, FormatOption, LogPath, Partitions, SkipMissing, Topics
from kwire.cli.rows import TOPIC, Column, Format, write_rows
from kwire.errors import KwireError, OptionError
from kwire.pages.quantities import bytes_text

if TYPE_CHECKING:
    from kwire.identifiers import TopicPartition
    from kwire.lake import Appended, Chosen, LakeTable, Ranges
    from kwire.lake.compact import CompactedFiles
    from kwire.lake.verify import Compared
    from kwire.log.reading.readable_log import ReadableLog

__all__ = ["register"]

TableName = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="Iceberg table NAMESPACE.NAME, or the path or URL of a Delta table."),
]
CatalogProperties = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog",
        metavar="NAME=VALUE",
        help="Iceberg: property of the catalog by PyIceberg's name, such as uri=sqlite:///catalog.db. Repeatable. "
        "Secrets belong in ~/.pyiceberg.yaml or PYICEBERG_CATALOG__DEFAULT__... variables.",
    ),
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage",
        metavar="NAME=VALUE",
        help="Delta: option of the object store by delta-rs' name, such as aws_region=eu-central-1. Repeatable. "
        "Secrets belong in environment variables.",
    ),
]


CHOSEN = re.compile(r"(?:(.+)=)?(\d{1,18})\.\.(\d{1,18})")
SHOWN_RANGES = 20
REPLACE = "; kwire lake append --offsets FROM..TO --replace writes the rows of offsets again"
APPEND = "; kwire lake append --fill appends them"
DIFFERENCES = {
    "missing": "the table lacks offsets",
    "doubled": "the table has several rows of offsets",
    "different": "the table has other values at offsets",
    "extra": "the table has rows that the log does not have, at offsets",
    "before": "not compared, since the log begins later: rows at offsets",
}


class BadValues(enum.StrEnum):
    """Values of --mode."""

    FAILFAST = "failfast"
    PERMISSIVE = "permissive"
    DEADLETTER = "deadletter"


class Names(enum.StrEnum):
    """Values of --names."""

    ANY = "any"
    STRICT = "strict"


class OffsetsFormat(enum.StrEnum):
    """Values of --format of `offsets`."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    SPARK = "spark"


class Isolation(enum.StrEnum):
    """Values of --isolation."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


RegistryPath = Annotated[
    str | None,
    typer.Option(
        metavar="URL|PATH",
        help="Decode values with a schema registry: its URL, a folder of schemas, or a log directory or kafka:// "
        "URL with the topic _schemas.",
    ),
]
RegistryConfig = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Settings of the registry as NAME=VALUE lines, such as basic.auth.user.info."),
]
Mode = Annotated[
    BadValues | None,
    typer.Option(
        help="Values that cannot be decoded: failfast (default) fails, permissive makes them null, deadletter adds "
        "columns with the error and the bytes."
    ),
]
MetricsFile = Annotated[
    str | None,
    typer.Option("--metrics-file", metavar="FILE", help="Add counts of this run to a file in Prometheus' text format."),
]
DeadLetters = Annotated[
    str | None,
    typer.Option(
        "--dead-letters",
        metavar="TABLE",
        help="Table for records that cannot be decoded or stored, with their bytes and the reason.",
    ),
]
Subject = Annotated[
    str | None, typer.Option(metavar="NAME", help="Subject of the values, by default TOPIC-value of one topic.")
]
ReaderSchema = Annotated[
    str | None,
    typer.Option(metavar="SCHEMA", help="Reader's schema: latest (default), union, an id, or the file of one."),
]
Message = Annotated[
    str | None, typer.Option(metavar="NAME", help="Protobuf message, if it is not the first of its schema.")
]
NamesChoice = Annotated[
    Names | None,
    typer.Option(
        help="Names of Avro's records: any (default), or strict: a record of another full name is a bad value."
    ),
]
IsolationChoice = Annotated[Isolation, typer.Option(help="read_committed excludes aborted and open transactions.")]
PartitionBy = Annotated[
    list[str] | None,
    typer.Option(
        "--partition-by", metavar="COLUMN", help="New table: column, days(timestamp), bucket(16, key). Repeatable."
    ),
]
ChosenOffsets = Annotated[
    list[str] | None,
    typer.Option(
        "--offsets",
        metavar="[TOPIC-PARTITION=]FROM..TO",
        help="Only offsets from FROM up to, not including, TO, of one or of each selected partition. Repeatable.",
    ),
]
# Names of properties and options of object stores whose value is a secret
SECRET = re.compile(
    r"secret|password|token|credential|access.?key|account.?key|sas.?key|connection.?string|authorization"
    r"|\.key$|^key$",
    re.IGNORECASE,
)
APPENDED = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="rows", heading="ROWS", right=True),
    Column(key="start_offset", heading="FROM", right=True),
    Column(key="end_offset", heading="TO", right=True),
)
OFFSETS = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="start_offset", heading="FROM", right=True),
    Column(key="end_offset", heading="TO", right=True),
)
VERIFIED = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="rows", heading="IN LOG", right=True),
    Column(key="table_rows", heading="IN TABLE", right=True),
    *(Column(key=kind, heading=kind.upper(), right=True) for kind in ("missing", "doubled", "different", "extra")),
)
COMPACTED = (
    Column(key="partition", heading="PARTITION"),
    Column(key="rows", heading="ROWS", right=True),
    Column(key="files", heading="FILES", right=True),
    Column(key="size_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="files_after", heading="FILES AFTER", right=True),
    Column(key="size_bytes_after", heading="SIZE AFTER", show=bytes_text, right=True),
)
EXPIRED = (Column(key="path", heading="FILE"),)
ORPHANS = (
    Column(key="path", heading="FILE"),
    Column(key="size_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="modified", heading="MODIFIED"),
)


def append(
    source: LogPath,
    table: TableName,
    topic: Topics = None,
    partition: Partitions = None,
    catalog: CatalogProperties = None,
    storage: StorageOptions = None,
    partition_by: PartitionBy = None,
    isolation: IsolationChoice = Isolation.READ_COMMITTED,
    headers: Annotated[bool, typer.Option("--headers", help="Column of record headers.")] = False,
    fill: Annotated[
        bool, typer.Option("--fill", help="Also append what the table lacks before its last offset.")
    ] = False,
    offsets: ChosenOffsets = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="With --offsets: in place of the rows that the table has there.")
    ] = False,
    registry: RegistryPath = None,
    registry_config: RegistryConfig = None,
    subject: Subject = None,
    schema: ReaderSchema = None,
    mode: Mode = None,
    message: Message = None,
    dead_letters: DeadLetters = None,
    metrics_file: MetricsFile = None,
    names: NamesChoice = None,
    skip_missing: SkipMissing = False,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Append records to a table, from the offsets that the table has to the end of each partition.

    The table is created if it is missing. Running the command again appends what is new since, or continues an
    interrupted run.
    """
    from kwire.cli.log.directories import open_logs, selected, warn_of_ignored
    from kwire.cli.log.selection import Selection
    from kwire.cli.registry import schema_choice
    from kwire.lake import Layout, ValueDecoding, append_logs
    from kwire.lake.dead_letters import mode_for_dead_letters

    terminal.show_warnings("kwire.lake")
    lake_table = _open(table, catalog, storage)
    opened = open_logs(source, config, config_file)
    logs = selected(opened, Selection.parse(topic, partition))
    layout = Layout(partition_by=tuple(partition_by or ()))
    dead = None if dead_letters is None else _open(dead_letters, catalog, storage)
    options = {"subject": subject, "schema": schema, "mode": mode, "message": message, "names": names}
    if dead is not None and registry is not None:
        options["mode"] = mode_for_dead_letters(mode, "--dead-letters")
    choice = schema_choice(registry, registry_config, options)
    topics = (log.topic for log in logs)
    decoding = None if choice is None else ValueDecoding.resolve(choice, topics, is_wrapped=dead is not None)
    appended = append_logs(
        lake_table,
        logs,
        layout=layout,
        isolation=isolation.value,
        headers=headers,
        decoding=decoding,
        fill=fill,
        chosen=_chosen(offsets, logs, replace=replace, fill=fill),
        skip_missing=skip_missing,
        dead_letters=dead,
    )
    with (
        lake_table,
        dead or nullcontext(),
        if_interrupted("the table has what was committed; run the command again to continue"),
    ):
        write_rows(_rows(appended, lake_table, metrics_file), APPENDED, format, live=True)
    warn_of_ignored(opened.ignored)
    return FINE


def offsets(
    table: TableName,
    catalog: CatalogProperties = None,
    storage: StorageOptions = None,
    format: Annotated[
        OffsetsFormat,
        typer.Option("--format", help="Output format; spark is the option startingOffsets of a new query."),
    ] = OffsetsFormat.TABLE,
) -> int:
    """Print which offsets of each partition a table has (TO is exclusive). A partition with a hole has several rows.

    Offsets are those that kwire has stored with its commits. Exit code 1 if the table has none, or has a hole.
    """
    from kwire.lake.offset_ranges import text_of
    from kwire.lake.state import WRITE_AGAIN

    with _existing(table, catalog, storage) as lake_table:
        state = lake_table.state()
    if format is OffsetsFormat.SPARK:
        typer.echo(state.starting_offsets())
    else:
        rows = (
            {"topic": topic, "partition": partition, "start_offset": start, "end_offset": end}
            for (topic, partition), ranges in sorted(state.spans.items())
            for start, end in ranges
        )
        write_rows(rows, OFFSETS, Format(format.value))
    if not state.spans:
        terminal.warn(
            f"table {lake_table.name}: no offsets; they are stored with rows that have topic, partition, offset"
        )
    remedy = WRITE_AGAIN if state.merge_key else "append them with kwire lake append --fill"
    for (topic, partition), holes in sorted(state.holes.items()):
        terminal.warn(f"{topic}-{partition}: the table lacks offsets {text_of(holes)}; {remedy}")
    return FOUND if state.holes or not state.spans else FINE


def verify(
    table: TableName,
    source: LogPath,
    topic: Topics = None,
    partition: Partitions = None,
    catalog: CatalogProperties = None,
    storage: StorageOptions = None,
    isolation: IsolationChoice = Isolation.READ_COMMITTED,
    registry: RegistryPath = None,
    registry_config: RegistryConfig = None,
    subject: Subject = None,
    schema: ReaderSchema = None,
    mode: Mode = None,
    message: Message = None,
    names: NamesChoice = None,
    skip_missing: SkipMissing = False,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Compare a table with the topic it was written from: each row by its offset, and the values of its columns.

    Exit code 1 if offsets of the log are missing in the table or are there twice, or if the table has other values or
    rows that the log does not have.
    """
    from kwire.cli.log.directories import open_logs, selected, warn_of_ignored
    from kwire.cli.log.selection import Selection
    from kwire.cli.registry import schema_choice
    from kwire.lake import ValueDecoding
    from kwire.lake.verify import compared_columns, verify_table

    terminal.show_warnings("kwire.lake")
    options = {"subject": subject, "schema": schema, "mode": mode, "message": message, "names": names}
    choice = schema_choice(registry, registry_config, options)
    with _existing(table, catalog, storage) as lake_table:
        opened = open_logs(source, config, config_file)  # later than the table: the log has at least its rows
        logs = selected(opened, Selection.parse(topic, partition))
        decoding = None if choice is None else ValueDecoding.resolve(choice, (log.topic for log in logs))
        _, others = compared_columns(lake_table, decoding)
        if others:
            terminal.warn(f"table {lake_table.name}: columns that are not compared: {', '.join(others)}")
        if lake_table.state().merge_key:
            terminal.warn(f"table {lake_table.name}: it has the latest row by key, so missing rows are not looked for")
        compared: list[Compared] = []
        rows = verify_table(lake_table, logs, isolation=isolation.value, decoding=decoding, skip_missing=skip_missing)
        write_rows(_compared_rows(rows, compared), VERIFIED, format, live=True)
    warn_of_ignored(opened.ignored)
    return FINE if all(each.is_same for each in compared) else FOUND


def compact(
    table: TableName,
    catalog: CatalogProperties = None,
    storage: StorageOptions = None,
    target: Annotated[
        float | None, typer.Option(min=0.001, metavar="MIB", help="Size of the new files; by default the table's.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Rewrite the files; otherwise they are only listed.")] = False,
    format: FormatOption = Format.TABLE,
) -> int:
    """Join small files within the partitions of a table, in its sort order, and commit them at once with --apply.

    Rows, offsets and micro-batches stay as they are. Other writers may append meanwhile; if one changes a file that is
    rewritten, nothing is committed. Exit code 1 if there are small files and they are not rewritten.
    """
    from kwire.lake.compact import compact_table

    terminal.show_warnings("kwire.lake")
    seen: list[CompactedFiles] = []

    def rows() -> Iterator[dict[str, object]]:
        for each in compact_table(
            lake_table, target_bytes=None if target is None else int(target * 2**20), dry_run=not apply
        ):
            seen.append(each)
            yield dataclasses.asdict(each)

    with _existing(table, catalog, storage) as lake_table, if_interrupted("nothing was committed"):
        write_rows(rows(), COMPACTED, format, live=True)
    return FOUND if seen and not apply else FINE


def expire(
    table: TableName,
    catalog: CatalogProperties = None,
    storage: StorageOptions = None,
    older_than: Annotated[
        float, typer.Option("--older-than", min=0, metavar="HOURS", help="Only snapshots or versions of that age.")
    ] = 168,
    apply: Annotated[bool, typer.Option("--apply", help="Delete the files; otherwise they are only listed.")] = False,
    format: FormatOption = Format.TABLE,
) -> int:
    """Delete files that only old snapshots (Iceberg) or versions (Delta) of a table need.

    The table's rows, offsets and micro-batches stay; it cannot be rolled back to what has expired. Exit code 1 if there
    are such files and they are not deleted.
    """
    with _existing(table, catalog, storage) as lake_table:
        files = lake_table.expire(older_than * 3600, dry_run=not apply)
    write_rows(({"path": each} for each in files), EXPIRED, format)
    return FOUND if files and not apply else FINE


def clean(
    table: TableName,
    catalog: CatalogProperties = None,
    storage: StorageOptions = None,
    older_than: Annotated[
        float,
        typer.Option("--older-than", min=0, metavar="HOURS", help="Only files unchanged for this time."),
    ] = 72,
    apply: Annotated[bool, typer.Option("--apply", help="Delete the files; otherwise they are only listed.")] = False,
    format: FormatOption = Format.TABLE,
) -> int:
    """Find files of killed tasks, to which no commit of the table refers, and delete them with --apply.

    Keep --older-than above the duration of any write: the files of a commit that is still to come look the same. Exit
    code 1 if files are found and not deleted.
    """
    with _existing(table, catalog, storage) as lake_table:
        orphans = lake_table.find_orphans(older_than * 3600)
        if apply:
            lake_table.delete_orphans(orphans)
    rows = (
        {
            "path": each.path,
            "size_bytes": each.size_bytes,
            "modified": datetime.fromtimestamp(each.modified_ms / 1000, UTC).isoformat(timespec="seconds"),
        }
        for each in orphans
    )
    write_rows(rows, ORPHANS, format)
    return FOUND if orphans and not apply else FINE


def _rows(appended: Iterable[Appended], lake_table: LakeTable, metrics_file: str | None) -> Iterator[dict[str, object]]:
    """Return a row for each partition, and print what could not be appended; write metrics at the end."""
    from kwire.lake.metrics import write_metrics

    counts = lake_table.counts
    try:
        for each in appended:
            yield dataclasses.asdict(each)
            counts.dead_letters += each.dead_letters
            if each.problem is not None:
                terminal.warn(f"{each.topic}-{each.partition}: {each.problem}")
            if each.dead_letters:
                terminal.warn(f"{each.topic}-{each.partition}: {each.dead_letters} records are dead letters")
    finally:
        if metrics_file is not None:
            with suppress(KwireError):
                lake_table.refresh()
            ends = {key: ranges[-1][1] for key, ranges in lake_table.state().spans.items()}
            write_metrics(metrics_file, lake_table.name, dataclasses.replace(counts, ends=ends))


def _compared_rows(compared: Iterable[Compared], seen: list[Compared]) -> Iterator[dict[str, object]]:
    """Return a row for each partition, which is added to `seen`, and print the offsets of what was found."""
    from kwire.lake.offset_ranges import intersection, text_of

    for each in compared:
        seen.append(each)
        kinds = {name: getattr(each, name) for name in ("missing", "doubled", "different", "extra", "before")}
        row: dict[str, object] = {
            "topic": each.topic,
            "partition": each.partition,
            "rows": each.rows,
            "table_rows": each.table_rows,
        }
        row |= {name: kind.rows for name, kind in kinds.items()}
        row |= {f"{name}_offsets": [list(span) for span in kind.ranges] for name, kind in kinds.items()}
        yield row
        recorded = intersection(each.missing.ranges, each.recorded)
        for name, kind in kinds.items():
            if kind.rows:
                cut = len(kind.ranges) > SHOWN_RANGES or kind.is_cut
                offsets = text_of(kind.ranges[:SHOWN_RANGES]) + (", ..." if cut else "")
                is_replaced = name in ("doubled", "different") or (name == "missing" and recorded)
                remedy = REPLACE if is_replaced else APPEND if name == "missing" else ""
                terminal.warn(f"{each.topic}-{each.partition}: {DIFFERENCES[name]}: {offsets}{remedy}")


def _chosen(given: Sequence[str] | None, logs: Sequence[ReadableLog], *, replace: bool, fill: bool) -> Chosen | None:
    """Parse --offsets. Raises OptionError."""
    from kwire.lake import Chosen
    from kwire.lake.offset_ranges import union

    if not given:
        if replace:
            raise OptionError("--replace: requires --offsets")
        return None
    if fill:
        raise OptionError("--fill and --offsets exclude each other: both say what to append")
    found: dict[TopicPartition, Ranges] = {}
    for text in given:
        match = CHOSEN.fullmatch(text.strip())
        if match is None or int(match[2]) >= int(match[3]):
            raise OptionError(f"--offsets: expected [TOPIC-PARTITION=]FROM..TO with FROM below TO, got '{text}'")
        keys = [(log.topic, log.partition) for log in logs if match[1] in (None, f"{log.topic}-{log.partition}")]
        if not keys:
            raise OptionError(f"--offsets: {match[1]} is not among the partitions that are selected")
        for key in keys:
            found[key] = union(found.get(key, ()), ((int(match[2]), int(match[3])),))
    return Chosen(offsets=found, replace=replace)


def _existing(table: str, catalog: Sequence[str] | None, storage: Sequence[str] | None) -> LakeTable:
    lake_table = _open(table, catalog, storage)
    lake_table.refresh()
    if not lake_table.exists:
        raise OptionError(f"{table}: no such table")
    return lake_table


def _open(table: str, catalog: Sequence[str] | None, storage: Sequence[str] | None) -> LakeTable:
    from kwire.lake import open_table

    return open_table(table, catalog=dict(_pairs("--catalog", catalog)), storage=dict(_pairs("--storage", storage)))


def _pairs(option: str, given: Sequence[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"{option}: expected NAME=VALUE")
        if SECRET.search(name):
            raise OptionError(f"{option} {name.strip()}: secrets on a command line are visible to others; see --help")
        if "://" in value and urlsplit(value).password is not None:
            raise OptionError(f"{option} {name.strip()}: a password on a command line is visible to others; see --help")
        pairs.append((name.strip(), value.strip()))
    return pairs


def register(app: typer.Typer) -> None:
    """Add `lake` and its commands to the app."""
    group = new_group("lake", help="Write logs and topics to Iceberg and Delta tables.")
    catalog = "--catalog type=sql --catalog uri=sqlite:////lake/catalog.db --catalog warehouse=file:///lake"
    add_command(
        group,
        "append",
        append,
        "kwire lake append kafka://broker:9092 /lake/orders --topic orders",
        f"kwire lake append /var/lib/kafka/data sales.orders --topic orders {catalog}",
        "kwire lake append kafka://broker:9092 /lake/orders --topic orders --registry http://localhost:8081",
        "kwire lake append kafka://broker:9092 /lake/orders --offsets orders-0=100..200 --replace",
    )
    add_command(
        group,
        "offsets",
        offsets,
        "kwire lake offsets /lake/orders",
        "kwire lake offsets /lake/orders --format spark",
    )
    add_command(
        group,
        "verify",
        verify,
        "kwire lake verify /lake/orders kafka://broker:9092 --topic orders",
        f"kwire lake verify sales.orders /var/lib/kafka/data --topic orders {catalog}",
    )
    add_command(
        group,
        "compact",
        compact,
        "kwire lake compact /lake/orders",
        "kwire lake compact /lake/orders --target 256 --apply",
    )
    add_command(
        group,
        "expire",
        expire,
        "kwire lake expire /lake/orders",
        "kwire lake expire /lake/orders --older-than 24 --apply",
    )
    add_command(
        group, "clean", clean, "kwire lake clean /lake/orders", "kwire lake clean /lake/orders --older-than 24 --apply"
    )
    add_group(app, group, section="Logs")
