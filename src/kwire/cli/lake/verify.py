"""`kwire lake verify`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
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
    existing_table,
)
from kwire.cli.options import ClientConfigFile, ClientConfigs, FormatOption, LogPath, Partitions, SkipMissing, Topics
from kwire.cli.rows import TOPIC, Column, Format, write_rows

if TYPE_CHECKING:
    from kwire.lake.verify import Compared

__all__ = ["verify"]

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
VERIFIED = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="rows", heading="IN LOG", right=True),
    Column(key="table_rows", heading="IN TABLE", right=True),
    *(Column(key=kind, heading=kind.upper(), right=True) for kind in ("missing", "doubled", "different", "extra")),
)


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
    recursive_field_max_depth: RecursiveDepth = None,
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
    choice = schema_choice(registry, registry_config, options, recursive_field_max_depth)
    with existing_table(table, catalog, storage) as lake_table:
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
