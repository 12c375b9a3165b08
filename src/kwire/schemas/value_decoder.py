"""Values with schema ids as Arrow arrays: each by the schema it was written with, as the type of a chosen schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from kwire.errors import InvalidSchema, Malformed, OptionError
from kwire.schemas.choice import ChosenSchema, Mode
from kwire.schemas.formats import ValueSchema, make_decoder, mismatch
from kwire.schemas.grouping import GroupedValues, ValueGrouper
from kwire.schemas.parsed_schemas import ParsedSchemas
from kwire.schemas.schema_codec import Decoded, RowError, SchemaDecoder
from kwire.schemas.unions import conform, merge_types, missing_field

__all__ = ["ValueDecoder", "finished", "finished_type"]


class ValueDecoder:
    """Decodes values as a choice says. type: of decoded values; None if it depends on the ids in each array."""

    def __init__(self, chosen: ChosenSchema) -> None:
        """Compile the schema. Raises InvalidSchema, RegistryError."""
        self._mode = chosen.mode
        self._grouper = ValueGrouper(chosen.registry, key=chosen.key)
        self._decoder = (
            _UnionDecoder(chosen.union, chosen.messages) if chosen.reader is None else _ReaderDecoder(chosen)
        )
        self.type: pa.DataType | None = self._decoder.type

    @property
    def result_type(self) -> pa.DataType:
        """The type of decode's result: with mode deadletter, that of values and their errors.

        Raises OptionError if it depends on the ids in each array.
        """
        if self.type is None:
            raise OptionError("one of subject, topic and schema is required")
        return finished_type(self.type, self._mode)

    def decode(self, values: pa.Array, headers: pa.Array | None = None, source: Sequence[pa.Array] = ()) -> pa.Array:
        """Decode an array of binary; null to null.

        headers: of their records, list of struct<key, value>. source: arrays that say where each record is, for errors.
        Raises DecodeError for the first bad value with mode failfast, RegistryError if the registry cannot be used,
        OptionError if values are not binary, InvalidSchema if schemas of a union have no common type.
        """
        decoded = self._decoder.decode(values, self._grouper.group(values, headers))
        return finished(decoded, self._mode, source)


def finished_type(kind: pa.DataType, mode: Mode) -> pa.DataType:
    """Return the type of finished values."""
    return _with_error(kind) if mode == "deadletter" else kind


def finished(decoded: Decoded, mode: Mode, source: Sequence[pa.Array]) -> pa.Array:
    """Return decoded values as a mode has them.

    source: arrays that say where each record is. Raises DecodeError for the first bad value with mode failfast.
    """
    if mode == "failfast" and decoded.errors:
        error = decoded.errors[0]
        raise Malformed(f"{_where(error.row, source)}: {error.what}", error.position)
    return _with_errors(decoded) if mode == "deadletter" else decoded.array


def _where(row: int, source: Sequence[pa.Array]) -> str:
    """Return the place of a record: `orders-0, offset 17` for topic, partition and offset."""
    if not source:
        return f"row {row}"
    topic, partition, offset = (each[row].as_py() for each in source)
    return f"{topic}-{partition}, offset {offset}"


def _with_error(kind: pa.DataType) -> pa.StructType:
    return pa.struct([("value", kind), ("error", pa.string())])


def _with_errors(decoded: Decoded) -> pa.StructArray:
    """Return struct<value, error>."""
    errors = pa.nulls(len(decoded.array), pa.string())
    if decoded.errors:
        texts: list[str | None] = [None] * len(decoded.array)
        for row, position, what in decoded.errors:
            texts[row] = texts[row] or f"{what}, at byte {position}"
        errors = pa.array(texts, pa.string())
    children = [decoded.array, errors]
    return pa.StructArray.from_arrays(children, fields=list(_with_error(decoded.array.type)))


class _ReaderDecoder:
    """Decodes values to the type of one reader's schema."""

    def __init__(self, chosen: ChosenSchema) -> None:
        """Compile the reader's schema. Raises InvalidSchema, RegistryError."""
        assert chosen.reader is not None
        reader = ParsedSchemas(chosen.registry).parse(chosen.reader).named(chosen.message)
        self._reader, self._options = reader, (chosen.columns, chosen.names, chosen.recursive_field_max_depth)
        self._known: dict[ValueSchema, int] = {reader: 0}
        self._faults: dict[ValueSchema, str] = {}
        self._decoder = make_decoder([reader], reader, *self._options)

    @property
    def type(self) -> pa.DataType:
        """The type of the result."""
        return self._decoder.type

    def decode(self, values: pa.Array, grouped: GroupedValues) -> Decoded:
        """Decode all groups at once."""
        self._add(grouped.schemas)
        numbers = np.full(len(grouped.schemas) + 1, -1, np.int32)
        for number, schema in enumerate(grouped.schemas):
            if schema in self._known:
                numbers[number] = self._known[schema]
            else:
                rows = np.flatnonzero(grouped.index == number).tolist()
                grouped.errors += grouped.with_ids(RowError(row, 0, self._faults[schema]) for row in rows)
        writers = None if grouped.is_uniform and numbers[0] == 0 else numbers[grouped.index]
        decoded = self._decoder.decode(values, grouped.skip, writers)
        return Decoded(decoded.array, sorted([*grouped.errors, *grouped.with_ids(decoded.errors)]))

    def _add(self, schemas: Iterable[ValueSchema]) -> None:
        """Compile the decoder again if there are new schemas: once for all of them."""
        before = len(self._known)
        for schema in schemas:
            if schema in self._known or schema in self._faults:
                continue
            fault = mismatch(schema, self._reader, *self._options)
            if fault is None:
                self._known[schema] = len(self._known)
            else:
                self._faults[schema] = fault
        if len(self._known) > before:
            self._decoder = make_decoder(list(self._known), self._reader, *self._options)


class _UnionDecoder:
    """Decodes values to a type that has the fields of several schemas."""

    def __init__(self, type: pa.DataType | None, messages: frozenset[str]) -> None:
        """Create a decoder.

        type: of the result; None for that of the schemas in each array. messages: as in ChosenSchema.
        """
        self.type, self._messages = type, messages
        self._decoders: dict[ValueSchema, SchemaDecoder | str] = {}

    def decode(self, values: pa.Array, grouped: GroupedValues) -> Decoded:
        """Decode each group by itself. Raises InvalidSchema if schemas have no common type."""
        decoders = [self._decoder(each) for each in grouped.schemas]
        kind = self.type
        if kind is None:
            kind = merge_types([each.type for each in decoders if not isinstance(each, str)] or [pa.null()])
        only = decoders[0] if grouped.is_uniform else None
        if only is not None and not isinstance(only, str) and self._fault(only.type, kind) is None:
            decoded = only.decode(values, grouped.skip)
            return Decoded(conform(decoded.array, kind), grouped.with_ids(decoded.errors))
        parts, places = [pa.nulls(1, kind)], np.zeros(len(values), np.int64)
        size = 1
        for number, decoder in enumerate(decoders):
            fault = decoder if isinstance(decoder, str) else self._fault(decoder.type, kind)
            rows = np.flatnonzero(grouped.index == number)
            if fault is not None or isinstance(decoder, str):
                grouped.errors += grouped.with_ids(RowError(row, 0, str(fault)) for row in rows.tolist())
                continue
            decoded = decoder.decode(values.take(pa.array(rows)), grouped.skip[rows])
            parts.append(conform(decoded.array, kind))
            places[rows] = np.arange(size, size + len(rows))
            size += len(rows)
            grouped.errors += grouped.with_ids(e._replace(row=int(rows[e.row])) for e in decoded.errors)
        array = pa.concat_arrays(parts).take(pa.array(places))
        return Decoded(array, sorted(grouped.errors))

    def _decoder(self, schema: ValueSchema) -> SchemaDecoder | str:
        if schema not in self._decoders:
            name = schema.message_name
            try:
                if self._messages and name is not None and name not in self._messages:
                    expected = " or ".join(f"'{each}'" for each in sorted(self._messages))
                    raise InvalidSchema(f"message '{name}', expected {expected}")
                self._decoders[schema] = make_decoder([schema], schema)
            except InvalidSchema as error:
                self._decoders[schema] = str(error)
        return self._decoders[schema]

    def _fault(self, given: pa.DataType, kind: pa.DataType) -> str | None:
        path = missing_field(given, kind)
        if path is not None:
            return f"the field '{'.'.join(path)}' is not in the column's type, which is older than the schema"
        try:
            return None if merge_types([kind, given]) == kind else f"{given} cannot be converted to {kind}"
        except InvalidSchema as error:
            return str(error)
