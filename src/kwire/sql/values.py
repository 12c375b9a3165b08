"""How the keys and values of a topic become columns: their bytes, text, or what a schema registry says they are.

A value that cannot be decoded is null, and `value_error` says why (`key_error` for keys).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from kwire.errors import InvalidSchema, OptionError
from kwire.log.reading.readable_log import ReadableLog
from kwire.log.reading.runs import Isolation
from kwire.schemas.choice import SchemaChoice, open_registry, subject_name
from kwire.schemas.json_inference import infer_json
from kwire.schemas.registry import Registry
from kwire.schemas.typed_json import JsonColumn, JsonDecoder
from kwire.schemas.unions import conform, with_unique_keys, without_wide_decimals
from kwire.schemas.value_decoder import ValueDecoder, finished_type

__all__ = ["ValueColumn", "ValueColumns", "infer_json_column", "json_column", "registry_columns", "text_column"]

HEADERS = "headers"
DECODABLE = ("key", "value")
SAMPLE = 1000
"""Values that the type of JSON is inferred from."""
SAMPLE_BYTES = 256 << 10
"""Of what is read at a time for the sample: of many partitions, each has a few of its values."""

Decode: TypeAlias = Callable[[pa.Array, "pa.Array | None"], pa.Array]
"""Decodes binary values, given the headers of their records, to an array of struct<value, error>."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueColumn:
    """How keys or values are decoded. type: of decoded values. decoder: returns a function for one thread.

    with_headers: whether the headers of records may tell the schema.
    """

    type: pa.DataType
    decoder: Callable[[], Decode]
    with_headers: bool = False


@dataclass(frozen=True, slots=True)
class ValueColumns:
    """How `key` and `value` are decoded; a column that is missing here stays binary."""

    columns: Mapping[str, ValueColumn] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise OptionError for another column."""
        for name in self.columns:
            if name not in DECODABLE:
                raise OptionError(f"column {name!r} cannot be decoded; expected one of {', '.join(DECODABLE)}")

    def schema_of(self, stored: pa.Schema) -> pa.Schema:
        """Return the columns of decoded records."""
        fields = [
            pa.field(each.name, self.columns[each.name].type) if each.name in self.columns else each for each in stored
        ]
        return pa.schema([*fields, *(pa.field(f"{name}_error", pa.string()) for name in self.columns)])

    def stored_columns(self, wanted: Iterable[str]) -> list[str]:
        """Return the columns of records that these columns are made from."""
        stored: dict[str, None] = {}
        for name in wanted:
            column = name.removesuffix("_error")
            stored[column] = None
            if column in self.columns and self.columns[column].with_headers:
                stored[HEADERS] = None
        return list(stored)

    def decode(self, batches: Iterable[pa.RecordBatch], wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield these columns of records, of which `batches` has stored_columns. Raises RegistryError."""
        decoders = {
            name: column.decoder()
            for name, column in self.columns.items()
            if name in wanted or f"{name}_error" in wanted
        }
        if not decoders:
            yield from batches
            return
        for batch in batches:
            arrays = {name: batch.column(name) for name in batch.schema.names}
            for name, decode in decoders.items():
                decoded = decode(arrays[name], arrays.get(HEADERS))
                arrays[name], arrays[f"{name}_error"] = decoded.flatten()
            yield pa.RecordBatch.from_arrays([arrays[name] for name in wanted], names=list(wanted))


def text_column() -> ValueColumn:
    """Return the column of values that are text in UTF-8."""
    return ValueColumn(type=pa.string(), decoder=lambda: _decode_text)


def json_column(kind: pa.DataType) -> ValueColumn:
    """Return the column of JSON values of a type. Raises OptionError for a type that is not supported."""
    column = JsonColumn(type=kind, mode="deadletter")
    JsonDecoder(column)
    return ValueColumn(type=kind, decoder=lambda: JsonDecoder(column).decode)


def infer_json_column(logs: Sequence[ReadableLog], isolation: Isolation = "read_committed") -> ValueColumn:
    """Return the column of JSON values with the type of the topic's first values, SAMPLE in all of its partitions.

    Raises OptionError if none is a JSON object; LogError, BrokerError.
    """
    return json_column(infer_json(pa.chunked_array(list(_first_values(logs, isolation)), pa.binary())))


def _first_values(logs: Sequence[ReadableLog], isolation: Isolation) -> Iterator[pa.Array]:
    left = SAMPLE
    for number, log in enumerate(logs):
        share = left // (len(logs) - number)
        for batch in log.read_arrow(isolation=isolation, columns=("value",), max_bytes=SAMPLE_BYTES):
            values = batch.column(0).drop_null()[:share]
            yield values
            left, share = left - len(values), share - len(values)
            if not share:
                break


def registry_columns(
    registry: Registry | str,
    topic: str,
    *,
    schema: str | int | None = "union",
    message: str | None = None,
    on_invalid: Callable[[str, InvalidSchema], None] | None = None,
) -> ValueColumns:
    """Return how a topic is decoded with a registry: those of its keys and values that have a subject there.

    schema: "union" for the fields of all versions, "latest", or an id, for values; keys have those of all versions.
    on_invalid: receives "key" or "value" whose schemas have no type as a column, and the error; the column stays
    binary. By default, that error is raised.
    Raises RegistryError, InvalidSchema, OptionError.
    """
    source = open_registry(registry)
    subjects = set(source.subjects())
    columns = {}
    for name in DECODABLE:
        is_key = name == "key"
        if subject_name(topic, key=is_key) in subjects:
            choice = SchemaChoice(
                registry=source,
                topic=topic,
                key=is_key,
                schema="union" if is_key else schema,
                message=None if is_key else message,
                mode="deadletter",
            )
            try:
                columns[name] = _registry_column(choice)
            except InvalidSchema as error:
                if on_invalid is None:
                    raise
                on_invalid(name, error)
    return ValueColumns(columns)


def _registry_column(choice: SchemaChoice) -> ValueColumn:
    chosen = choice.resolve()
    stored = ValueDecoder(chosen).type
    assert stored is not None  # the choice has a topic
    kind = without_wide_decimals(stored)

    def decoder() -> Decode:
        decode = ValueDecoder(chosen).decode
        finished = finished_type(kind, "deadletter")
        return lambda values, headers: with_unique_keys(conform(decode(values, headers), finished))

    return ValueColumn(type=kind, decoder=decoder, with_headers=True)


def _decode_text(values: pa.Array, headers: pa.Array | None) -> pa.Array:
    errors = pa.nulls(len(values), pa.string())
    try:
        text = values.cast(pa.string())
    except pa.ArrowInvalid:
        decoded = [_text(value) for value in values.to_pylist()]
        text = pa.array([each for each, _ in decoded], pa.string())
        errors = pa.array([error for _, error in decoded], pa.string())
    return pa.StructArray.from_arrays([text, errors], names=["value", "error"])


def _text(value: bytes | None) -> tuple[str | None, str | None]:
    if value is None:
        return None, None
    try:
        return value.decode(), None
    except UnicodeDecodeError as error:
        return None, f"not UTF-8: {error.reason}, at byte {error.start}"
