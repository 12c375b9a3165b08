"""`kwire lake append`."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.client_configs import client_configs, is_cluster
from kwire.cli.command import FINE, if_interrupted
from kwire.cli.lake.options import (
    CatalogProperties,
    Isolation,
    IsolationChoice,
    Message,
    Mode,
    NamesChoice,
    ReaderSchema,
    RecursiveDepth,
    RegistryConfig,
    RegistryPath,
    StorageOptions,
    Subject,
    TableName,
    open_lake_table,
)
from kwire.cli.options import ClientConfigFile, ClientConfigs, FormatOption, LogPath, Partitions, SkipMissing, Topics
from kwire.cli.rows import TOPIC, Column, Format, write_rows
from kwire.errors import KwireError, OptionError, counted

if TYPE_CHECKING:
    from kwire.identifiers import TopicPartition
    from kwire.lake import Appended, Changes, Chosen, LakeTable, Layout, Ranges, RowOptions, ValueDecoding
    from kwire.lake.dead_letters import DeadLetterTarget
    from kwire.lake.record_tables import RecordTables
    from kwire.lake.row_target import RowTarget
    from kwire.log.reading.readable_log import ReadableLog
    from kwire.schemas.choice import SchemaChoice

__all__ = ["append"]


class Division(enum.StrEnum):
    """Values of --table-by."""

    RECORD = "record"


class Envelope(enum.StrEnum):
    """Values of --changes."""

    DEBEZIUM = "debezium"


MetricsFile = Annotated[
    str | None,
    typer.Option("--metrics-file", metavar="FILE", help="Add counts of this run to a file in Prometheus' text format."),
]
DeadLetters = Annotated[
    str | None,
    typer.Option(
        "--dead-letters",
        metavar="TABLE|URL",
        help="Table or topic (kafka://host:port/topic) for records that cannot be decoded or "
        "stored, with their bytes and the reason.",
    ),
]
PartitionBy = Annotated[
    list[str] | None,
    typer.Option(
        "--partition-by", metavar="COLUMN", help="New table: column, days(timestamp), bucket(16, key). Repeatable."
    ),
]
MergeKey = Annotated[
    list[str] | None,
    typer.Option("--merge-key", metavar="COLUMN", help="Replace rows by key; null values delete it. Repeatable."),
]
ChangesOf = Annotated[
    Envelope | None,
    typer.Option(
        "--changes",
        help="Values are changes of a database: with --merge-key, the table has its rows, otherwise its history. "
        "Requires --registry.",
    ),
]
OrderBy = Annotated[
    list[str] | None,
    typer.Option(
        "--order-by",
        metavar="FIELD",
        help="With --changes: field of the event that orders changes, such as source.lsn. Repeatable.",
    ),
]
TableBy = Annotated[
    Division | None,
    typer.Option(
        "--table-by",
        help="With record, a table TABLE_RECORD for each record type of values (Avro record, Protobuf message, title "
        "of a JSON schema); TABLE is then an index of them. --subject has the naming strategy: {topic}-{record} "
        "(default), {record} or {topic}-value. Requires --registry.",
    ),
]
MaxTables = Annotated[
    int | None,
    typer.Option("--max-tables", metavar="N", min=1, help="With --table-by: up to so many tables (default 100)."),
]
Fill = Annotated[bool, typer.Option("--fill", help="Also append what the table lacks before its last offset.")]
ChosenOffsets = Annotated[
    list[str] | None,
    typer.Option(
        "--offsets",
        metavar="[TOPIC-PARTITION=]FROM..TO",
        help="Only offsets from FROM up to, not including, TO, of one or of each selected partition. Repeatable.",
    ),
]
IF_INTERRUPTED = "the table has what was committed; run the command again to continue"
Replace = Annotated[
    bool, typer.Option("--replace", help="With --offsets: in place of the rows that the table has there.")
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print the offsets that would be appended, or with --table-by the tables and their rows; write nothing.",
    ),
]
CHOSEN = re.compile(r"(?:(.+)=)?(\d{1,18})\.\.(\d{1,18})")
APPENDED = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="rows", heading="ROWS", right=True),
    Column(key="start_offset", heading="FROM", right=True),
    Column(key="end_offset", heading="TO", right=True),
)

PLANNED_OFFSETS = tuple(each for each in APPENDED if each.key != "rows")
PLANNED_TABLES = (
    Column(key="record", heading="RECORD"),
    Column(key="table", heading="TABLE"),
    Column(key="rows", heading="ROWS", right=True),
    Column(key="is_new", heading="NEW", show=lambda is_new: "yes" if is_new else "no"),
)


def append(
    source: LogPath,
    table: TableName,
    topic: Topics = None,
    partition: Partitions = None,
    catalog: CatalogProperties = None,
    storage: StorageOptions = None,
    partition_by: PartitionBy = None,
    merge_key: MergeKey = None,
    changes: ChangesOf = None,
    order_by: OrderBy = None,
    table_by: TableBy = None,
    max_tables: MaxTables = None,
    isolation: IsolationChoice = Isolation.READ_COMMITTED,
    headers: Annotated[bool, typer.Option("--headers", help="Column of record headers.")] = False,
    fill: Fill = False,
    offsets: ChosenOffsets = None,
    replace: Replace = False,
    dry_run: DryRun = False,
    registry: RegistryPath = None,
    registry_config: RegistryConfig = None,
    subject: Subject = None,
    schema: ReaderSchema = None,
    mode: Mode = None,
    message: Message = None,
    dead_letters: DeadLetters = None,
    metrics_file: MetricsFile = None,
    names: NamesChoice = None,
    recursive_field_max_depth: RecursiveDepth = None,
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
    from kwire.lake import Layout, RowOptions, append_logs
    from kwire.lake.dead_letters import mode_for_dead_letters
    from kwire.records.columns.reader import COLUMNS

    terminal.show_warnings("kwire.lake")
    lake_table = open_lake_table(table, catalog, storage)
    is_for_letters = dead_letters is not None and is_cluster(dead_letters) and not is_cluster(source)
    opened = open_logs(source, *(() if is_for_letters else (config, config_file)))
    logs = selected(opened, Selection.parse(topic, partition))
    dead = None if dead_letters is None else _dead_letters(dead_letters, catalog, storage, config, config_file)
    wanted = mode if dead is None or registry is None else mode_for_dead_letters(mode, "--dead-letters")
    options = {"subject": subject, "schema": schema, "mode": wanted, "message": message, "names": names}
    choice = schema_choice(registry, registry_config, options, recursive_field_max_depth)
    layout = Layout(partition_by=tuple(partition_by or ()))
    open_named = partial(open_lake_table, catalog=catalog, storage=storage)
    records = _records(table, table_by, max_tables, choice, open_named, layout, has_dead_letters=dead is not None)
    rows = RowOptions(
        isolation=isolation.value,
        columns=tuple(COLUMNS) if headers else (),
        decoding=_decoding(None if records else choice, logs, is_wrapped=dead is not None),
        changes=_changes(changes, merge_key, order_by),
        merge_key=tuple(merge_key or ()),
        skip_missing=skip_missing,
        records=records,
    )
    if dry_run:
        _check_dry_run({"--offsets": offsets, "--replace": replace, "--metrics-file": metrics_file})
        return _preview(rows.target(lake_table, layout, dead), logs, rows, format, fill=fill)
    chosen = _chosen(offsets, logs, replace=replace, fill=fill)
    appended = append_logs(lake_table, logs, layout=layout, rows=rows, fill=fill, chosen=chosen, dead_letters=dead)
    with lake_table, dead or nullcontext(), if_interrupted(IF_INTERRUPTED):
        write_rows(_rows(appended, lake_table, metrics_file), APPENDED, format, live=True)
    warn_of_ignored(opened.ignored)
    return FINE


def _check_dry_run(given: Mapping[str, object]) -> None:
    """Raise OptionError for options that say what to write."""
    for name, value in given.items():
        if value:
            raise OptionError(f"--dry-run and {name} exclude each other: nothing is written")


def _preview(target: RowTarget, logs: Sequence[ReadableLog], rows: RowOptions, format: Format, *, fill: bool) -> int:
    """Print what would be appended. Raises OptionError, TableError, and the errors of logs and of a registry."""
    from kwire.lake.preview import planned_offsets, planned_tables

    with target.table as table:
        table.refresh()
        target.recover(is_dry_run=True)
        if rows.records is not None:
            tables = planned_tables(table, logs, rows, rows.records, fill=fill)
            write_rows(map(asdict, tables), PLANNED_TABLES, format)
            return FINE
        planned = [each for _, each in planned_offsets(table, logs, rows, fill=fill)]
        target.check_layout()
    keys = ("topic", "partition", "start_offset", "end_offset", "problem")
    write_rows(({key: getattr(each, key) for key in keys} for each in planned), PLANNED_OFFSETS, format)
    for each in planned:
        if each.problem is not None:
            terminal.warn(f"{each.topic}-{each.partition}: {each.problem}")
    return FINE


def _decoding(choice: SchemaChoice | None, logs: Sequence[ReadableLog], *, is_wrapped: bool) -> ValueDecoding | None:
    """Return how values are decoded. Raises the errors of ValueDecoding.resolve."""
    from kwire.lake import ValueDecoding

    return None if choice is None else ValueDecoding.resolve(choice, (log.topic for log in logs), is_wrapped=is_wrapped)


def _changes(kind: Envelope | None, key: Sequence[str] | None, order_by: Sequence[str] | None) -> Changes | None:
    """Return what --changes, --merge-key and --order-by say. Raises OptionError."""
    from kwire.lake import Changes

    if kind is None and order_by:
        raise OptionError("--order-by: requires --changes, whose events have the fields")
    return None if kind is None else Changes(key=tuple(key or ()), order_by=tuple(order_by or ()))


def _records(
    table: str,
    division: Division | None,
    limit: int | None,
    choice: SchemaChoice | None,
    open_named: Callable[[str], LakeTable],
    layout: Layout,
    *,
    has_dead_letters: bool,
) -> RecordTables | None:
    """Return the tables of --table-by and --max-tables. Raises OptionError, RegistryError."""
    from kwire.lake.record_tables import RecordTables

    if division is None:
        if limit is not None:
            raise OptionError("--max-tables: requires --table-by")
        return None
    if choice is None:
        raise OptionError("--table-by: requires --registry, whose schemas name the record types")
    return RecordTables.of(choice, table, open_named, layout, limit=limit, has_dead_letters=has_dead_letters)


def _dead_letters(
    name: str,
    catalog: CatalogProperties,
    storage: StorageOptions,
    config: ClientConfigs,
    config_file: ClientConfigFile,
) -> DeadLetterTarget:
    """Return the table or topic of --dead-letters."""
    from kwire.lake.dead_letters import open_dead_letters

    settings = client_configs(name, config, config_file) if is_cluster(name) else {}
    return open_dead_letters(name, lambda table: open_lake_table(table, catalog, storage), settings)


def _rows(appended: Iterable[Appended], lake_table: LakeTable, metrics_file: str | None) -> Iterator[dict[str, object]]:
    """Return a row for each partition, and print what could not be appended; write metrics at the end."""
    from kwire.lake.metrics import write_metrics

    counts = lake_table.counts
    try:
        for each in appended:
            yield asdict(each)
            counts.dead_letters += each.dead_letters
            if each.problem is not None:
                terminal.warn(f"{each.topic}-{each.partition}: {each.problem}")
            if each.dead_letters:
                terminal.warn(f"{each.topic}-{each.partition}: {counted(each.dead_letters, 'dead letter')}")
    finally:
        if metrics_file is not None:
            with suppress(KwireError):
                lake_table.refresh()
            ends = {key: ranges[-1][1] for key, ranges in lake_table.state().spans.items()}
            write_metrics(metrics_file, lake_table.name, replace(counts, ends=ends))


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
