"""The options of `kwire-iceberg` and `kwire-delta`; docs/table-options.md has them as tables. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from kwire.errors import OptionError
from kwire.spark.options.decoding import VALUE_OPTIONS, DecodeOptions, is_registry_setting, parse_decoding
from kwire.spark.options.option import (
    Option,
    check_names,
    choice,
    load_json_object,
    number_option,
    text_option,
    user_options,
)
from kwire.url_passwords import holds_password

if TYPE_CHECKING:
    from kwire.lake import Changes, DeleteWhen, LakeTable, Layout, OnKnownOffsets
    from kwire.lake.dead_letters import DeadLetterTarget
    from kwire.lake.record_tables import RecordTables
    from kwire.lake.row_target import RowTarget

__all__ = ["DEAD_LETTERS", "DELTA_OPTIONS", "ICEBERG_OPTIONS", "LakeFormat", "LakeOptions", "parse_lake_options"]

PAGE = "docs/table-options.md"
CATALOG_PREFIX, STORAGE_PREFIX, KAFKA_PREFIX, VALUE_PREFIX = "catalog.", "storage.", "kafka.", "value."

LakeFormat = Literal["iceberg", "delta"]


def _terms(name: str, value: str) -> tuple[str, ...]:
    """Parse a comma-separated list whose parts may have brackets."""
    terms = tuple(each.strip() for each in re.split(r",(?![^(]*\))", value))
    if not all(terms):
        raise OptionError(f"Option '{name}': expected a comma-separated list of columns, got '{value}'")
    return terms


def _properties(name: str, value: str) -> dict[str, str]:
    """Parse a JSON object of strings."""
    expected = OptionError(f"Option '{name}': expected a JSON object of strings, got '{value}'")
    properties = load_json_object(value, expected)
    if not all(isinstance(each, str) for each in properties.values()):
        raise expected
    return properties


def _version(name: str, value: str) -> int:
    if not re.fullmatch(r"\d{1,18}", value.strip()):
        raise OptionError(
            f"Option '{name}': expected a number from 0, such as the batch's of foreachBatch, got '{value}'"
        )
    return int(value)


def _on_known_offsets(name: str, value: str) -> OnKnownOffsets:
    modes: tuple[OnKnownOffsets, ...] = ("fail", "skip", "append")
    for mode in modes:
        if value.strip().lower() == mode:
            return mode
    raise OptionError(f"Option '{name}': expected {', '.join(modes[:-1])} or {modes[-1]}, got '{value}'")


def _delete_when(name: str, value: str) -> DeleteWhen:
    from kwire.lake import DeleteWhen

    return DeleteWhen.parse(value)


def _app_id(name: str, value: str) -> str:
    """Return an application's id: not that of writers without a query, nor one of the table's own."""
    if not value.strip() or value.startswith("kwire/"):
        raise OptionError(
            f"Option '{name}': expected a name of the query that does not begin with kwire/, got '{value}'"
        )
    return value


def _batches(name: str, value: str) -> int:
    if not re.fullmatch(r"\d{1,9}", value.strip()) or not int(value):
        raise OptionError(f"Option '{name}': expected a number of micro-batches from 1, got '{value}'")
    return int(value)


TABLE = text_option(
    name="table",
    value="string, also as the argument of `save` or `start`",
    shown_default="required",
    meaning="The table, as `namespace.name`.",
)
PATH = text_option(
    name="path",
    value="string, also as the argument of `save` or `start`",
    shown_default="required",
    meaning="The table's directory: a path or URL that driver and executors share.",
)
CATALOG = text_option(
    name="catalog",
    value="string",
    shown_default="`default`",
    meaning="Name of the catalog, to read its properties from `~/.pyiceberg.yaml` or `PYICEBERG_CATALOG__NAME__...`.",
)
CATALOG_PROPERTIES = text_option(
    name="catalog.*",
    value="string",
    meaning="Properties of the catalog and of its file system, by PyIceberg's names: `catalog.type`, `catalog.uri`, "
    "`catalog.warehouse`, `catalog.s3.endpoint`, ...",
)
STORAGE = text_option(
    name="storage.*",
    value="string",
    meaning="Options of the object store by delta-rs' names, such as `storage.aws_region`; a path has only "
    "`allow_unsafe_rename` and `mount_allow_unsafe_rename`.",
)
MERGE_KEY = Option[tuple[str, ...]](
    name="mergeKey",
    parse=_terms,
    default=(),
    value="comma-separated list of columns",
    shown_default="none: rows are appended",
    meaning="Replace rows by key: the table has the [latest row of each key](table-changes.md#latest-value-by-key).",
)
CHANGES = Option[str | None](
    name="changes",
    parse=choice("debezium"),
    default=None,
    value="`debezium`",
    shown_default="none",
    meaning="The column `value` has [changes of a database](table-changes.md#changes-of-a-database): with "
    "`mergeKey`, the table has the latest state, otherwise the history.",
)
DELETE_WHEN = Option["DeleteWhen | None"](
    name="deleteWhen",
    parse=_delete_when,
    default=None,
    value="`COLUMN`, or `COLUMN = VALUE`",
    shown_default="none",
    meaning="With `mergeKey`: rows that delete their key, by a boolean column or a value such as `status = 'gone'`.",
)
ORDER_BY = Option[tuple[str, ...]](
    name="orderBy",
    parse=_terms,
    default=(),
    value="comma-separated list of fields",
    shown_default="none: offsets",
    meaning="With `changes` and `mergeKey`: fields of the event that [order the "
    "changes](table-changes.md#order-of-changes) of a key where offsets do not, such as `source.lsn`.",
)
TABLE_BY = Option[str | None](
    name="tableBy",
    parse=choice("record"),
    default=None,
    value="`record`",
    shown_default="none: one table",
    meaning="A [table for each record type](table-record-types.md) of the values, which are bytes; requires "
    "`value.registry`. The table that is named is an index of them.",
)
MAX_TABLES = number_option(
    name="maxTables",
    value="int",
    shown_default="100",
    meaning="With `tableBy`: more record types are an error.",
)
VALUES = text_option(
    name="value.*",
    value="string",
    meaning="With `tableBy`: `value.registry`, `value.registry.*`, `value.subject`, `value.names` and "
    "`value.recursiveFieldMaxDepth`, as of the [sources](schemas.md#decode-in-the-source). The subject has the naming "
    "strategy: `{topic}-{record}` (default), `{record}` or `{topic}-value`.",
)
PARTITION_BY = Option[tuple[str, ...]](
    name="partitionBy",
    parse=_terms,
    default=(),
    value="comma-separated list",
    shown_default="none",
    meaning="Partitioning of a new table: columns, `years`, `months`, `days` or `hours` of a column, `bucket(16, "
    "key)` or `truncate(4, key)`.",
)
SORT_BY = Option[tuple[str, ...]](
    name="sortBy",
    parse=_terms,
    default=(),
    value="comma-separated list of columns",
    shown_default="none",
    meaning="Sort order of a new table, such as `customer, offset desc`: the order of the rows in a file.",
)
TABLE_PROPERTIES = Option[Mapping[str, str]](
    name="tableProperties",
    parse=_properties,
    default={},
    value="JSON object",
    shown_default="none",
    meaning='Properties of a new table, such as `{"write.target-file-size-bytes": "134217728"}`.',
)
ON_KNOWN_OFFSETS: Option[OnKnownOffsets] = Option(
    name="onKnownOffsets",
    parse=_on_known_offsets,
    default="fail",
    value="`fail`, `skip` or `append`",
    meaning="Rows whose offsets [the table has already](table-streams.md#a-new-checkpoint), from another query or "
    "command: an error, skipped, or written again.",
)
DEAD_LETTERS = text_option(
    name="deadLetters",
    value="string",
    shown_default="none: an error",
    meaning="A [table for dead letters](table-dead-letters.md), named like the table of the rows, in the same catalog "
    "or object store, or a topic, `kafka://host:port/topic`: records that cannot be decoded or stored.",
)
KAFKA = text_option(
    name="kafka.*",
    value="string",
    meaning="Configurations of the client for a topic of dead letters, such as `kafka.security.protocol`.",
)
METRICS_FILE = text_option(
    name="metricsFile",
    value="string",
    meaning="A local file of the driver for [metrics](table-maintenance.md#metrics) in Prometheus' text format.",
)
COMPACT_EVERY = Option[int | None](
    name="compactEvery",
    parse=_batches,
    default=None,
    value="int",
    shown_default="none: never",
    meaning="[Join small files](table-maintenance.md#small-files) after each micro-batch whose number, plus one, is "
    "a multiple of this. A compaction that fails is a warning.",
)
APP_ID = Option[str | None](
    name="txnAppId",
    parse=_app_id,
    default=None,
    value="string",
    meaning="For a write in `foreachBatch`: a stable name of the query; requires `txnVersion`.",
)
APP_VERSION = Option[int | None](
    name="txnVersion",
    parse=_version,
    default=None,
    value="int",
    meaning="For a write in `foreachBatch`: the batch's number. A number that is not above the last one of "
    "`txnAppId` commits nothing.",
)
ICEBERG_OPTIONS: tuple[Option[object], ...] = (
    *(TABLE, CATALOG, CATALOG_PROPERTIES),
    *(
        MERGE_KEY,
        CHANGES,
        DELETE_WHEN,
        ORDER_BY,
        TABLE_BY,
        MAX_TABLES,
        VALUES,
        PARTITION_BY,
        SORT_BY,
        TABLE_PROPERTIES,
        ON_KNOWN_OFFSETS,
        DEAD_LETTERS,
        KAFKA,
        METRICS_FILE,
    ),
    *(COMPACT_EVERY, APP_ID, APP_VERSION),
)
DELTA_OPTIONS: tuple[Option[object], ...] = (
    *(PATH, STORAGE, MERGE_KEY, CHANGES, DELETE_WHEN, ORDER_BY, TABLE_BY, MAX_TABLES, VALUES),
    replace(PARTITION_BY, meaning="Columns that a new table is partitioned by."),
    replace(SORT_BY, meaning="Order of the rows in the files of this write, such as `customer, offset desc`."),
    replace(TABLE_PROPERTIES, meaning='Properties of a new table, such as `{"delta.targetFileSize": "134217728"}`.'),
    *(ON_KNOWN_OFFSETS, DEAD_LETTERS, KAFKA, METRICS_FILE),
    *(COMPACT_EVERY, APP_ID, APP_VERSION),
)
_MERGED = {"mergeSchema": "new columns are always added; select the columns to write"}
VALUE_NAMES = {each.name.lower() for each in VALUE_OPTIONS}
UNSUPPORTED: Mapping[LakeFormat, Mapping[str, str]] = {
    "iceberg": {**_MERGED, "merge-schema": _MERGED["mergeSchema"]},
    "delta": {**_MERGED, "overwriteSchema": "a table's schema is kept; create another table", "table": "use path"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeOptions:
    """The options of a write. catalog, storage: may contain secrets, so not in repr."""

    format: LakeFormat
    table: str
    catalog_name: str | None
    catalog: Mapping[str, str] = field(repr=False)
    storage: Mapping[str, str] = field(repr=False)
    kafka: Mapping[str, str] = field(repr=False)
    merge_key: tuple[str, ...]
    changes: Changes | None
    partition_by: tuple[str, ...]
    sort_by: tuple[str, ...]
    table_properties: Mapping[str, str]
    on_known_offsets: OnKnownOffsets
    dead_letters: str | None
    metrics_file: str | None
    compact_every: int | None
    app: tuple[str, int] | None
    values: DecodeOptions | None
    max_tables: int | None

    @property
    def is_by_record(self) -> bool:
        """Whether rows go to a table for each record type."""
        return self.values is not None

    @property
    def order_by(self) -> tuple[str, ...]:
        """Columns of the table that order the rows of a key; () if offsets do."""
        return () if self.changes is None else self.changes.order_columns

    def open(self) -> LakeTable:
        """Return the table, which may not exist yet. Raises OptionError, TableError."""
        from kwire.lake import open_delta, open_iceberg

        if self.format == "iceberg":
            return open_iceberg(self.table, self.catalog, catalog_name=self.catalog_name)
        return open_delta(self.table, self.storage)

    def open_named(self, name: str) -> LakeTable:
        """Return another table, of the same catalog or object store. Raises OptionError, TableError."""
        return replace(self, table=name).open()

    @contextmanager
    def open_target(self) -> Iterator[RowTarget]:
        """Return where rows go. Raises OptionError, TableError, RegistryError."""
        from kwire.lake import Layout
        from kwire.lake.row_target import RowTarget

        layout = Layout(partition_by=self.partition_by, sort_by=self.sort_by, properties=self.table_properties)
        letters = self.open_dead_letters()
        with self.open() as table, letters or nullcontext():
            yield RowTarget(
                table=table,
                layout=layout,
                dead_letters=letters,
                changes=self.changes,
                key=self.merge_key,
                order_by=self.order_by,
                records=self._records(layout),
                repeats=self.on_known_offsets == "append",
            )

    def _records(self, layout: Layout) -> RecordTables | None:
        """Return the tables by record type, if rows go to some; opens the registry."""
        from kwire.lake.record_tables import RecordTables

        if self.values is None:
            return None
        choice = self.values.choice
        if self.values.settings:
            from kwire.schemas import Registry
            from kwire.schemas.http import HttpSettings

            registry = Registry(self.values.registry, **HttpSettings.from_text(self.values.settings))
            choice = replace(choice, registry=registry)
        return RecordTables.of(
            choice,
            self.table,
            self.open_named,
            layout,
            limit=self.max_tables,
            has_dead_letters=self.dead_letters is not None,
        )

    def open_dead_letters(self) -> DeadLetterTarget | None:
        """Return the table or topic of dead letters, None without the option. Raises OptionError, TableError."""
        from kwire.lake.dead_letters import open_dead_letters

        if self.dead_letters is None:
            return None
        return open_dead_letters(self.dead_letters, self.open_named, self.kafka)


def _changes(given: Mapping[str, str]) -> Changes | None:
    """Return how rows become rows of the table. Raises OptionError."""
    from kwire.lake import Changes

    is_debezium, delete_when, order_by = CHANGES.of(given) is not None, DELETE_WHEN.of(given), ORDER_BY.of(given)
    if not is_debezium and delete_when is None and not order_by:
        return None
    return Changes(key=MERGE_KEY.of(given), is_debezium=is_debezium, delete_when=delete_when, order_by=order_by)


def _values(given: Mapping[str, str]) -> DecodeOptions | None:
    """Return how values of tables by record type are decoded, None for one table. Raises OptionError."""
    if TABLE_BY.of(given) is None:
        for name in given:
            if name.startswith(VALUE_PREFIX) or name == MAX_TABLES.name.lower():
                raise OptionError(
                    f"Option '{name}': requires option 'tableBy'; without it, values are decoded in the source"
                )
        return None
    decoding = parse_decoding({name: value for name, value in given.items() if name.startswith(VALUE_PREFIX)})
    if not decoding or not isinstance(decoding[0], DecodeOptions):
        raise OptionError("Option 'tableBy': requires option 'value.registry', whose schemas name the record types")
    if ON_KNOWN_OFFSETS.of(given) == "append":
        raise OptionError("Options 'tableBy' and 'onKnownOffsets': rows cannot be written again; use skip or fail")
    if decoding[0].choice.mode != "failfast":
        raise OptionError("Option 'value.mode': does not apply to tableBy; name dead letters with option deadLetters")
    if decoding[0].headers:
        raise OptionError("Option 'value.headers': does not apply to tableBy, which takes schema ids from values only")
    return decoding[0]


def _kafka(given: Mapping[str, str]) -> dict[str, str]:
    """Return the configurations of the client for a topic of dead letters. Raises OptionError for other uses."""
    from kwire.client.address import is_cluster_url

    kafka = {key.removeprefix(KAFKA_PREFIX): given[key] for key in given if key.startswith(KAFKA_PREFIX)}
    if kafka and not is_cluster_url(DEAD_LETTERS.of(given) or ""):
        name = min(kafka)
        raise OptionError(
            f"Option '{KAFKA_PREFIX}{name}': for a topic of dead letters only; set deadLetters to kafka://host:port/topic"
        )
    if "bootstrap.servers" in {name.replace("_", ".") for name in kafka}:
        raise OptionError(f"Option '{KAFKA_PREFIX}bootstrap.servers': the URL in option deadLetters names the servers")
    return kafka


def parse_lake_options(options: Mapping[str, str], format: LakeFormat) -> LakeOptions:
    """Parse the options of one write. Raises OptionError."""
    given = user_options(options)
    if format == "iceberg" and "path" in given:
        path = given.pop("path")
        if given.setdefault("table", path) != path:
            raise OptionError("Options 'table' and 'path' differ; remove one of them")
    prefix = CATALOG_PREFIX if format == "iceberg" else STORAGE_PREFIX
    check_names(
        given,
        ICEBERG_OPTIONS if format == "iceberg" else DELTA_OPTIONS,
        UNSUPPORTED[format],
        source=f"kwire-{format}",
        page=PAGE,
        passed_on=lambda key: (
            any(key.startswith(each) and len(key) > len(each) for each in (prefix, KAFKA_PREFIX))
            or key in VALUE_NAMES
            or (key.startswith(VALUE_PREFIX) and is_registry_setting(key))
        ),
    )
    name = TABLE if format == "iceberg" else PATH
    table = (name.of(given) or "").strip()
    if not table:
        example = "namespace.name" if format == "iceberg" else "a local path or a URL"
        raise OptionError(f"Option '{name.name}' must be specified: {example}")
    if holds_password(table):
        raise OptionError(f"Option '{name.name}': holds a password, which plans and errors show; use storage.* options")
    app_id, version = APP_ID.of(given), APP_VERSION.of(given)
    if (app_id is None) != (version is None):
        raise OptionError("Options 'txnAppId' and 'txnVersion': each requires the other")
    kafka = _kafka(given)
    return LakeOptions(
        format=format,
        table=table,
        catalog_name=CATALOG.of(given),
        catalog={key.removeprefix(prefix): given[key] for key in given if key.startswith(CATALOG_PREFIX)},
        storage={key.removeprefix(prefix): given[key] for key in given if key.startswith(STORAGE_PREFIX)},
        kafka=kafka,
        merge_key=MERGE_KEY.of(given),
        changes=_changes(given),
        partition_by=PARTITION_BY.of(given),
        sort_by=SORT_BY.of(given),
        table_properties=TABLE_PROPERTIES.of(given),
        on_known_offsets=ON_KNOWN_OFFSETS.of(given),
        dead_letters=DEAD_LETTERS.of(given),
        metrics_file=METRICS_FILE.of(given),
        compact_every=COMPACT_EVERY.of(given),
        app=None if app_id is None or version is None else (app_id, version),
        values=_values(given),
        max_tables=MAX_TABLES.of(given),
    )
