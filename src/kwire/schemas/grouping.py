"""Groups of the values of an array by their writer's schema, whose id is before each value or in its headers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kwire.errors import InvalidSchema, UnknownSchema
from kwire.schemas.formats import ParsedSchema, ValueSchema
from kwire.schemas.parsed_schemas import ParsedSchemas
from kwire.schemas.registered import SchemaId
from kwire.schemas.registry import Registry
from kwire.schemas.schema_codec import Int32Array, Int64Array, RowError
from kwire.schemas.wire_format import KEY_HEADER, VALUE_HEADER, Prefixes, read_prefixes

__all__ = ["GroupedValues", "ValueGrouper"]

SHOWN_BYTES = 4


@dataclass(slots=True, kw_only=True)
class GroupedValues:
    """Values by their writers' schemas. index: of each value's schema among `schemas`; -1 for nulls and errors.

    is_uniform: whether all values have a schema, the same one. skip: bytes before each payload. labels: of each value's
    id among `ids`, -1 without one.
    """

    schemas: list[ValueSchema]
    index: Int32Array
    is_uniform: bool
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


class ValueGrouper:
    """Groups values by their writers' schemas, which it asks a registry for. key: of records, for their headers."""

    def __init__(self, registry: Registry, *, key: bool) -> None:
        self._writers = ParsedSchemas(registry)
        self._header = KEY_HEADER if key else VALUE_HEADER

    def group(self, values: pa.Array, headers: pa.Array | None) -> GroupedValues:
        """Group an array of values. Raises OptionError if it is not binary, RegistryError."""
        prefixes = read_prefixes(values, headers, self._header)
        parsed, faults = list[ParsedSchema | None](), dict[int, str]()
        for number, schema_id in enumerate(prefixes.ids):
            try:
                parsed.append(self._writers.get(schema_id))
            except (UnknownSchema, InvalidSchema) as error:
                parsed.append(None)
                faults[number] = str(error)
        only = parsed[0] if prefixes.is_uniform else None
        is_uniform = only is not None and only.type != "PROTOBUF"
        grouped = GroupedValues(
            schemas=[],
            index=prefixes.index if is_uniform else np.full(len(values), -1, np.int32),
            is_uniform=is_uniform,
            skip=prefixes.skip,
            ids=prefixes.ids,
            labels=prefixes.index,
            errors=[] if prefixes.is_uniform else _without_id(values, prefixes),
        )
        if only is not None and is_uniform:
            grouped.schemas.append(only.value())
            return grouped
        is_faulty = np.array([number in faults for number in range(len(prefixes.ids))] + [False])
        for row in np.flatnonzero(is_faulty[prefixes.index]).tolist():  # one pass: there may be an id for each value
            grouped.errors.append(RowError(row, 0, faults[int(prefixes.index[row])]))
        self._add_messages(prefixes, parsed, grouped)
        return grouped

    def _add_messages(self, prefixes: Prefixes, parsed: list[ParsedSchema | None], grouped: GroupedValues) -> None:
        is_protobuf = np.array([each is not None and each.type == "PROTOBUF" for each in parsed] + [False])
        protobuf_rows = is_protobuf[prefixes.index]
        paths, path_index = prefixes.message_indexes(protobuf_rows) if protobuf_rows.any() else ([(0,)], None)
        for number, schema in enumerate(parsed):
            if schema is None:
                continue
            rows = prefixes.index == number
            if schema.type != "PROTOBUF" or path_index is None:
                grouped.index[rows] = len(grouped.schemas)
                grouped.schemas.append(schema.value())
                continue
            invalid = np.flatnonzero(rows & (path_index < 0)).tolist()
            what = "message indexes are truncated or invalid; was it written by a Protobuf serializer?"
            grouped.errors += grouped.with_ids(RowError(row, 0, what) for row in invalid)
            for each in np.unique(path_index[rows & (path_index >= 0)]).tolist():
                chosen = rows & (path_index == each)
                try:
                    grouped.schemas.append(schema.value(paths[each]))
                    grouped.index[chosen] = len(grouped.schemas) - 1
                except InvalidSchema as error:
                    grouped.errors += grouped.with_ids(
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
