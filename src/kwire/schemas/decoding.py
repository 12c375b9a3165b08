"""Values with schema ids as Arrow arrays: each by the schema it was written with, as one reader's type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire.errors import InvalidSchema, OptionError, UnknownSchema
from kwire.schemas.avro.resolution import Names
from kwire.schemas.decoder import Decoded, Int32Array, Int64Array, RowError, SchemaDecoder
from kwire.schemas.formats import ParsedSchema, ValueSchema, make_decoder, mismatch, parse_schema
from kwire.schemas.registered import SchemaId
from kwire.schemas.registry import Registry
from kwire.schemas.unions import conform, merge_types, missing_field
from kwire.schemas.wire_format import KEY_HEADER, VALUE_HEADER, Prefixes, read_prefixes

__all__ = ["ReaderDecoder", "UnionDecoder", "WriterSchemas", "union_of"]

SHOWN_BYTES = 4


class WriterSchemas:
    """The schemas of values by their ids, parsed once."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._parsed: dict[SchemaId, ParsedSchema | InvalidSchema] = {}

    def get(self, schema_id: SchemaId) -> ParsedSchema:
        """Return a schema. Raises UnknownSchema, InvalidSchema, and RegistryError if the registry cannot be used."""
        parsed = self._parsed.get(schema_id)
        if parsed is None:
            try:
                parsed = parse_schema(self.registry, self.registry.schema(schema_id))
            except InvalidSchema as error:
                parsed = error
            self._parsed[schema_id] = parsed
        if isinstance(parsed, InvalidSchema):
            raise InvalidSchema(*parsed.args)
        return parsed


@dataclass(slots=True, kw_only=True)
class _Located:
    """Values with their writers. index: of each value's schema among `schemas`; -1 for nulls and errors.

    labels: of each value's id among `ids`, -1 without one.
    """

    schemas: list[ValueSchema]
    index: Int32Array
    skip: Int64Array
    ids: list[SchemaId]
    labels: Int32Array
    errors: list[RowError]

    def with_ids(self, errors: Iterable[RowError]) -> list[RowError]:
        """Return errors of values with their schema ids, and positions from the start of the whole value."""
        return [
            RowError(row, position + int(self.skip[row]), f"schema id {self.ids[self.labels[row]]}: {what}")
            for row, position, what in errors
        ]


class _ValueReader:
    """Finds the writers' schemas of values."""

    def __init__(self, registry: Registry, *, key: bool) -> None:
        self._writers = WriterSchemas(registry)
        self._header = KEY_HEADER if key else VALUE_HEADER

    def locate(self, values: pa.Array, headers: pa.Array | None) -> _Located:
        """Return the schema of each value. Raises OptionError if it is not binary, RegistryError."""
        prefixes = read_prefixes(values, headers, self._header)
        located = _Located(
            schemas=[],
            index=np.full(len(values), -1, np.int32),
            skip=prefixes.skip,
            ids=prefixes.ids,
            labels=prefixes.index,
            errors=_without_id(values, prefixes),
        )
        parsed, faults = list[ParsedSchema | None](), dict[int, str]()
        for number, schema_id in enumerate(prefixes.ids):
            try:
                parsed.append(self._writers.get(schema_id))
            except (UnknownSchema, InvalidSchema) as error:
                parsed.append(None)
                faults[number] = str(error)
        is_faulty = np.array([number in faults for number in range(len(prefixes.ids))] + [False])
        for row in np.flatnonzero(is_faulty[prefixes.index]).tolist():  # one pass: there may be an id for each value
            located.errors.append(RowError(row, 0, faults[int(prefixes.index[row])]))
        self._add_messages(prefixes, parsed, located)
        return located

    def _add_messages(self, prefixes: Prefixes, parsed: list[ParsedSchema | None], found: _Located) -> None:
        is_protobuf = np.array([each is not None and each.type == "PROTOBUF" for each in parsed] + [False])
        protobuf_rows = is_protobuf[prefixes.index]
        paths, path_index = prefixes.message_indexes(protobuf_rows) if protobuf_rows.any() else ([(0,)], None)
        for number, schema in enumerate(parsed):
            if schema is None:
                continue
            rows = prefixes.index == number
            if schema.type != "PROTOBUF" or path_index is None:
                found.index[rows] = len(found.schemas)
                found.schemas.append(schema.value())
                continue
            invalid = np.flatnonzero(rows & (path_index < 0)).tolist()
            what = "message indexes are truncated or invalid; was it written by a Protobuf serializer?"
            found.errors += found.with_ids(RowError(row, 0, what) for row in invalid)
            for each in np.unique(path_index[rows & (path_index >= 0)]).tolist():
                chosen = rows & (path_index == each)
                try:
                    found.schemas.append(schema.value(paths[each]))
                    found.index[chosen] = len(found.schemas) - 1
                except InvalidSchema as error:
                    found.errors += found.with_ids(
                        RowError(row, 0, error.what) for row in np.flatnonzero(chosen).tolist()
                    )


def _without_id(values: pa.Array, prefixes: Prefixes) -> list[RowError]:
    """Return the errors of values without a schema id."""
    rows = np.flatnonzero((prefixes.index < 0) & (prefixes.bounds[:, 0] >= 0)).tolist()
    errors = list[RowError]()
    for row in rows:
        start, end = prefixes.bounds[row].tolist()
        shown = prefixes.source[start : min(end, start + SHOWN_BYTES)].tobytes().hex(" ")
        what = f"begins with {shown}, {end - start} bytes" if end > start else "is empty"
        errors.append(
            RowError(row, 0, f"no schema id: the value {what}; expected byte 0 and an id, or byte 1 and a GUID")
        )
    return errors


class ReaderDecoder:
    """Decodes values to the type of one reader's schema."""

    def __init__(
        self,
        registry: Registry,
        reader: ValueSchema,
        *,
        key: bool = False,
        columns: Sequence[str] | None = None,
        names: Names = "any",
    ) -> None:
        """Compile the reader's schema. columns: fields to decode; None for all. Raises InvalidSchema."""
        self._values = _ValueReader(registry, key=key)
        self._reader, self._columns, self._names = reader, columns, names
        self._known: dict[ValueSchema, int] = {reader: 0}
        self._faults: dict[ValueSchema, str] = {}
        self._decoder = make_decoder([reader], reader, columns, names)

    @property
    def type(self) -> pa.DataType:
        """The type of the result."""
        return self._decoder.type

    def decode(self, values: pa.Array, headers: pa.Array | None = None) -> Decoded:
        """Decode an array of binary. headers: the records' headers, list of struct<key, value>.

        Raises OptionError if values are not binary, and RegistryError if the registry cannot be used.
        """
        located = self._values.locate(values, headers)
        self._add(located.schemas)
        numbers = np.full(len(located.schemas) + 1, -1, np.int32)
        for number, schema in enumerate(located.schemas):
            if schema in self._known:
                numbers[number] = self._known[schema]
            else:
                rows = np.flatnonzero(located.index == number).tolist()
                located.errors += located.with_ids(RowError(row, 0, self._faults[schema]) for row in rows)
        decoded = self._decoder.decode(values, located.skip, numbers[located.index])
        return Decoded(decoded.array, sorted([*located.errors, *located.with_ids(decoded.errors)]))

    def _add(self, schemas: Iterable[ValueSchema]) -> None:
        """Compile the decoder again if there are new schemas: once for all of them."""
        before = len(self._known)
        for schema in schemas:
            if schema in self._known or schema in self._faults:
                continue
            fault = mismatch(schema, self._reader, self._columns, self._names)
            if fault is None:
                self._known[schema] = len(self._known)
            else:
                self._faults[schema] = fault
        if len(self._known) > before:
            self._decoder = make_decoder(list(self._known), self._reader, self._columns, self._names)


class UnionDecoder:
    """Decodes values to a type that has the fields of several schemas."""

    def __init__(self, registry: Registry, type: pa.DataType | None = None, *, key: bool = False) -> None:
        """Create a decoder. type: of the result; by default of each call, that of the schemas of its values."""
        self._values = _ValueReader(registry, key=key)
        self._type = type
        self._decoders: dict[ValueSchema, SchemaDecoder | str] = {}

    def decode(self, values: pa.Array, headers: pa.Array | None = None) -> Decoded:
        """Decode an array of binary; see ReaderDecoder. Raises InvalidSchema if schemas have no common type."""
        located = self._values.locate(values, headers)
        decoders = [self._decoder(each) for each in located.schemas]
        kind = self._type
        if kind is None:
            kind = merge_types([each.type for each in decoders if not isinstance(each, str)] or [pa.null()])
        parts, places = [pa.nulls(1, kind)], np.zeros(len(values), np.int64)
        size = 1
        for number, decoder in enumerate(decoders):
            rows = np.flatnonzero(located.index == number)
            fault = decoder if isinstance(decoder, str) else self._fault(decoder.type, kind)
            if fault is not None or isinstance(decoder, str):
                located.errors += located.with_ids(RowError(row, 0, str(fault)) for row in rows.tolist())
                continue
            decoded = decoder.decode(values.take(pa.array(rows)), located.skip[rows], np.zeros(len(rows), np.int32))
            parts.append(conform(decoded.array, kind))
            places[rows] = np.arange(size, size + len(rows))
            size += len(rows)
            located.errors += located.with_ids(e._replace(row=int(rows[e.row])) for e in decoded.errors)
        array = parts[1] if _is_whole(parts, places) else pa.concat_arrays(parts).take(pa.array(places))
        return Decoded(array, sorted(located.errors))

    def _decoder(self, schema: ValueSchema) -> SchemaDecoder | str:
        if schema not in self._decoders:
            try:
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


def _is_whole(parts: list[pa.Array], places: npt.NDArray[np.int64]) -> bool:
    """Whether all values are of one schema, in order."""
    return len(parts) == 2 and len(parts[1]) == len(places)


def union_of(registry: Registry, ids: Iterable[SchemaId], message: str | None = None) -> pa.DataType:
    """Return the type with the fields of several schemas. Raises RegistryError, InvalidSchema, OptionError."""
    writers = WriterSchemas(registry)
    types = [writers.get(each).named(message).arrow_type() for each in ids]
    if not types:
        raise OptionError("no schema ids")
    return merge_types(types)
