"""Columns that the tasks of `kafka-log` and `kafka-live` decode: options `value.*` and `key.*`.

For columns with a registry, the driver asks it for the schema to read, and so for the column's type, when the source is
loaded. A query keeps both for its life: tasks ask for the schemas of ids only. Without one, options have the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kwire.errors import OptionError
from kwire.schemas import Registry
from kwire.schemas.choice import ChosenSchema, SchemaChoice
from kwire.schemas.csv_values import CsvColumn, infer_csv
from kwire.schemas.ddl import parse_ddl, parse_type
from kwire.schemas.http import HttpSettings
from kwire.schemas.json_inference import infer_json
from kwire.schemas.typed_json import JsonColumn
from kwire.spark.options.decoding import TextOptions
from kwire.spark.registry_columns import Chosen, decoded_type, read_registry, to_data_type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

    from kwire.spark.options.decoding import DecodeOptions

__all__ = ["DecodedColumn", "columns_to_read", "decode_batches", "resolve_decoding"]

PLACE = ("topic", "partition", "offset")
HEADERS = "headers"
LATEST = (None, "latest")

Sample = Callable[[str], Iterable[pa.Array]]
"""Returns the first values of a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedColumn:
    """A column that tasks decode. kind: its type as DataType.simpleString; ddl: the same with names in backquotes.

    has_bytes: whether its struct of value and error has the bytes of each value as well, for dead letters.
    """

    chosen: Chosen
    has_headers: bool
    type: pa.DataType
    kind: str
    ddl: str
    has_bytes: bool = False

    def with_bytes(self) -> DecodedColumn:
        """Return the column as struct<value, error, bytes>. Rows of that type do not pass through Spark."""
        return replace(self, has_bytes=True, type=pa.struct([*self.type, pa.field("bytes", pa.binary())]))

    @classmethod
    def of(cls, chosen: Chosen, *, has_headers: bool) -> DecodedColumn:
        """Return the column of a schema. Raises OptionError, InvalidSchema."""
        kind = decoded_type(chosen)
        data_type = to_data_type(kind)
        return cls(
            chosen=chosen,
            has_headers=has_headers,
            type=kind,
            kind=data_type.simpleString(),
            ddl=_ddl_of(data_type),
        )


def resolve_decoding(
    decoding: Iterable[DecodeOptions | TextOptions], topic: str | None, wanted: Mapping[str, str], sample: Sample
) -> dict[str, DecodedColumn]:
    """Ask the registries for the types of columns, or infer them from a sample.

    topic: the one that is read, None if there may be several. wanted: types of columns that a schema of the user or a
    table has, as DataType.simpleString. If the latest version of a subject has another type, a former one that has it
    is used: a table keeps its columns.
    Raises OptionError, RegistryError, InvalidSchema.
    """
    return {
        each.column: _resolve_text(each, wanted.get(each.column), sample)
        if isinstance(each, TextOptions)
        else _resolve(each, topic, wanted.get(each.column))
        for each in decoding
    }


def _resolve_text(given: TextOptions, wanted: str | None, sample: Sample) -> DecodedColumn:
    try:
        kind = _inferred(given, wanted, sample) if given.schema is None else parse_ddl(given.schema)
        column = CsvColumn if given.format == "csv" else JsonColumn
        return DecodedColumn.of(column(type=kind, mode=given.mode, columns=given.columns), has_headers=False)
    except OptionError as error:
        raise OptionError(f"Options '{given.column}.*': {error}") from None


def _inferred(given: TextOptions, wanted: str | None, sample: Sample) -> pa.DataType:
    """Return the type of a column whose options do not have it: that of a table or a user's schema, or of a sample."""
    if wanted is not None and wanted != "binary":
        with suppress(OptionError):  # a name that is no word: the type is checked later
            kind = parse_type(wanted)
            return kind.field("value").type if given.mode == "deadletter" else kind
    values = pa.chunked_array(list(sample(given.column)), pa.binary())
    return infer_csv(values) if given.format == "csv" else infer_json(values)


def _resolve(given: DecodeOptions, topic: str | None, wanted: str | None) -> DecodedColumn:
    choice = given.choice
    if choice.subject is None and topic is not None:
        choice = replace(choice, topic=topic)
    elif choice.subject is None and choice.schema in (*LATEST, "union"):
        raise OptionError(
            f"Option '{given.column}.registry': requires option '{given.column}.subject', unless subscribe or assign "
            "names one topic, since all values are one column"
        )
    try:
        if given.settings:
            choice = replace(choice, registry=Registry(given.registry, **HttpSettings.from_text(given.settings)))
        chosen = choice.resolve()
        column = DecodedColumn.of(chosen, has_headers=given.headers)
        if wanted not in (None, column.kind) and choice.schema in LATEST:
            column = _former(choice, chosen, column, wanted)
    except OptionError as error:
        raise OptionError(f"Options '{given.column}.*': {error}") from None
    return column


def _former(choice: SchemaChoice, chosen: ChosenSchema, latest: DecodedColumn, kind: str | None) -> DecodedColumn:
    """Return the newest version of the subject that has a type, or the latest one if none has."""
    registry, subject = chosen.registry, choice.full_subject
    assert subject is not None
    for version in reversed(registry.versions(subject)):
        older = replace(chosen, reader=registry.version(subject, version))
        former = DecodedColumn.of(older, has_headers=latest.has_headers)
        if former.kind == kind:
            return former
    return latest


def columns_to_read(columns: tuple[str, ...], decoded: Mapping[str, DecodedColumn]) -> tuple[str, ...]:
    """Return the columns of records that a task reads: the query's, and what decoding needs."""
    headers = (HEADERS,) if any(each.has_headers for each in decoded.values()) else ()
    return tuple(dict.fromkeys((*columns, *headers, *PLACE)))


def decode_batches(
    batches: Iterable[pa.RecordBatch], columns: tuple[str, ...], decoded: Mapping[str, DecodedColumn]
) -> Iterator[pa.RecordBatch]:
    """Decode batches that have columns_to_read(); return the query's columns.

    Raises DecodeError, with topic, partition and offset, for a bad value in mode failfast; RegistryError.
    """
    for batch in batches:
        place = [batch.column(name) for name in PLACE]
        arrays = []
        for name in columns:
            array = batch.column(name)
            if (column := decoded.get(name)) is not None:
                headers = (batch.column(HEADERS),) if column.has_headers else ()
                values = array
                array = read_registry((values, *headers, *place), column.chosen, column.has_headers)
                if column.has_bytes:
                    array = pa.StructArray.from_arrays([*array.flatten(), values], fields=list(column.type))
            arrays.append(array)
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _ddl_of(kind: DataType) -> str:
    """Return a type in DDL, with names in backquotes, since names in a schema can be any text."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match kind:
        case StructType():
            fields = (f"`{each.name.replace('`', '``')}`: {_ddl_of(each.dataType)}" for each in kind.fields)
            return f"struct<{', '.join(fields)}>"
        case ArrayType():
            return f"array<{_ddl_of(kind.elementType)}>"
        case MapType():
            return f"map<{_ddl_of(kind.keyType)}, {_ddl_of(kind.valueType)}>"
    return kind.simpleString()
