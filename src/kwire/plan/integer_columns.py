"""Count the integers in many messages of one version, by field; see `kwire.schema.encoding_costs`.

The messages are read as columns, at the cost of `ColumnReader`, without an object for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kwire.plan.columns import ColumnReader
from kwire.schema.encoding_costs import IntegerCounts, count_integers
from kwire.schema.model import ENCODABLE, Field, Message, Struct

__all__ = ["IntegerField", "count_fields", "integer_fields"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerField:
    """A field of type int16, int32 or int64, or an array. path: for `ColumnReader`; is_tagged: in the version."""

    path: str
    field: Field
    is_tagged: bool


def integer_fields(spec: Message, version: int) -> list[IntegerField]:
    """List the integer fields of a version, in the order of the definition."""
    return list(_fields(spec.struct, version, ""))


def _fields(struct: Struct, version: int, way: str) -> Iterator[IntegerField]:
    for field in struct.fields:
        if version not in field.versions:
            continue
        if field.struct is not None:
            yield from _fields(field.struct, version, f"{way}{field.attr}{'[]' if field.is_array else ''}.")
        elif field.type in ENCODABLE:
            yield IntegerField(path=way + field.attr, field=field, is_tagged=version in field.tagged)


def count_fields(
    spec: Message, version: int, fields: Sequence[IntegerField], bodies: Sequence[bytes | bytearray | memoryview]
) -> dict[str, IntegerCounts]:
    """Count the integers of each field in the bodies, by path.

    Tagged fields count only if they were sent, which excludes their default. Fields inside a tagged struct count with
    their defaults if it was not sent.
    Raises DecodeError for the first body that is not well-formed.
    """
    groups: dict[str, list[IntegerField]] = {}
    for each in fields:
        inside, _, _ = each.path.rpartition("[]")
        groups.setdefault(inside, []).append(each)
    counts: dict[str, IntegerCounts] = {}
    for group in groups.values():
        table = ColumnReader(spec, version, [each.path for each in group]).read_all(bodies)
        counts.update((each.path, _count(each, table.column(each.path))) for each in group)
    return counts


def _count(each: IntegerField, column: pa.ChunkedArray) -> IntegerCounts:
    values = column.combine_chunks().drop_null()
    if pa.types.is_list(values.type):
        values = pc.list_flatten(values)
    elif each.is_tagged:
        values = values.filter(pc.not_equal(values, pa.scalar(each.field.default, values.type)))
    return count_integers(values.to_numpy(zero_copy_only=False))
