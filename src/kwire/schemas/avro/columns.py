"""The Arrow columns of an Avro schema: their types, and the tree that a plan fills.

Types are the same as in Spark's `from_avro`:

    boolean, int, long, float, double, string, bytes    the same; string and bytes as string and binary
    enum                                                string
    fixed                                               binary
    array, map, record                                  list, map, struct
    date                                                date32
    time-millis                                         int32
    time-micros                                         time64[us]
    timestamp-millis, timestamp-micros                  timestamp[us, UTC]
    timestamp-nanos                                     timestamp[ns, UTC]
    local-timestamp-*                                   the same without a time zone
    decimal                                             decimal128, from 39 digits on decimal256
    uuid, duration                                      as without a logical type
    union of null and X                                 X
    union of int and long, float and double             int64, float64
    other unions                                        struct of member0, member1 ..., all but one of which are null

Source: org.apache.spark.sql.avro.SchemaConverters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from kwire.errors import OptionError, did_you_mean
from kwire.schemas.avro.model import Schema
from kwire.schemas.avro.parsing import fail, too_deep
from kwire.schemas.column_plan import Column, storage

__all__ = ["arrow_type", "build_columns", "check_depth", "null_free", "storage_of"]

MAX_COLUMNS = 100_000
MAX_DEPTH = 15
"""Of records inside of themselves, as in Spark."""
UTC = "UTC"
SIMPLE: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
LOGICAL: dict[str, pa.DataType] = {
    "date": pa.date32(),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("us", UTC),
    "timestamp-micros": pa.timestamp("us", UTC),
    "timestamp-nanos": pa.timestamp("ns", UTC),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}
NUMERIC_UNIONS = {frozenset(("int", "long")): "long", frozenset(("float", "double")): "double"}
MAX_DECIMAL128 = 38

Path = tuple[str, ...]


def arrow_type(schema: Schema) -> pa.DataType:
    """Return the Arrow type of a schema. Raises InvalidSchema for types that contain themselves."""
    return build_columns(schema)[0].type


def null_free(schema: Schema) -> Schema:
    """Return a union without its null, and a union of one type as that type; any other schema as it is."""
    if schema.type != "union":
        return schema
    branches = tuple(each for each in schema.branches if each.type != "null")
    if len(branches) == 1:
        return branches[0]
    if not branches and schema.branches:
        return schema.branches[0]
    return schema if len(branches) == len(schema.branches) else Schema(type="union", branches=branches)


def numeric_union(schema: Schema) -> str | None:
    """Return the type that holds both numbers of a union, None for any other schema."""
    if schema.type != "union":
        return None
    return NUMERIC_UNIONS.get(frozenset(each.type for each in schema.branches)) if len(schema.branches) == 2 else None


def storage_of(schema: Schema) -> tuple[pa.DataType, str, int]:
    """Return the Arrow type of a schema without types inside, its kind of column, and its width."""
    if schema.logical is not None and schema.logical.name == "decimal":
        precision, scale = schema.logical.precision, schema.logical.scale
        if precision > MAX_DECIMAL128:
            return pa.decimal256(precision, scale), "WIDE", 32
        return pa.decimal128(precision, scale), "WIDE", 16
    arrow_type = SIMPLE[schema.type]
    if schema.logical is not None:
        arrow_type = LOGICAL.get(schema.logical.name, arrow_type)
    return arrow_type, *storage(arrow_type)


def check_depth(depth: int | None) -> int | None:
    """Return a depth of records inside of themselves. Raises OptionError unless it is None, or 0 (none) to 15."""
    if depth is not None and not 0 <= depth <= MAX_DEPTH:
        raise OptionError(f"recursive_field_max_depth: expected a number from 0 to {MAX_DEPTH}, got {depth}")
    return depth


def build_columns(schema: Schema, asked: Sequence[str] | None = None, depth: int | None = 0) -> list[Column]:
    """Return the columns of a schema, the root first, numbered in this order.

    asked: dotted paths of the fields to include; None for all. depth: how many times a record may be inside of itself,
    plus one; fields that are deeper are left out. With 0, such a record is an error; None: the same, for a user who
    cannot choose fields or a depth.
    Raises OptionError for an unknown path, InvalidSchema for a type that contains itself.
    """
    wanted = None if asked is None else [tuple(each.split(".")) for each in asked]
    builder = _Builder(depth)
    with too_deep():
        builder.column(schema, wanted, (), True, ())
    return builder.columns


class _Builder:
    def __init__(self, depth: int | None) -> None:
        self.columns: list[Column] = []
        self.depth, self.made = depth, 0

    def new(self, kind: str, path: Path, nullable: bool) -> Column:
        self.made += 1  # also those that are removed again
        if self.made > MAX_COLUMNS:
            raise fail(f"more than {MAX_COLUMNS} columns; ask for fewer", ".".join(path))
        column = Column(type=pa.null(), kind=kind, number=len(self.columns), path=path, nullable=nullable)
        self.columns.append(column)
        return column

    def column(
        self, schema: Schema, wanted: list[Path] | None, path: Path, nullable: bool, inside: tuple[Schema, ...]
    ) -> Column | None:
        """Add the columns of a schema, unless it is too deep inside of itself. inside: the records around it."""
        nullable = nullable or (schema.type == "union" and any(each.type == "null" for each in schema.branches))
        schema = null_free(schema)
        if (number := numeric_union(schema)) is not None:
            schema = Schema(type=number)
        if schema in inside:
            if not self.depth:
                choice = (
                    ": name the other fields in columns, or give a recursiveFieldMaxDepth (recursive_field_max_depth)"
                )
                remedy = "" if self.depth is None else choice
                raise fail(f"{schema} contains itself; Arrow has no such type{remedy}", ".".join(path))
            if inside.count(schema) >= self.depth:
                return None
        if schema.type == "record":
            members = [(each.name, each.schema, False) for each in schema.fields]
            return self.struct(members, wanted, path, nullable, (*inside, schema))
        if schema.type == "union":
            members = [(f"member{index}", each, True) for index, each in enumerate(schema.branches)]
            return self.struct(members, wanted, path, nullable, inside)
        if schema.type in ("array", "map"):
            return self.repeated(schema, wanted, path, nullable, inside)
        if wanted is not None and any(wanted):
            raise unknown(path, next(filter(None, wanted)), ())
        column = self.new("", path, nullable)
        column.type, column.kind, column.width = storage_of(schema)
        return column

    def struct(
        self,
        members: list[tuple[str, Schema, bool]],
        wanted: list[Path] | None,
        path: Path,
        nullable: bool,
        inside: tuple[Schema, ...],
    ) -> Column:
        column = self.new("STRUCT", path, nullable)
        if wanted is not None and () in wanted:
            wanted = None
        asked: dict[str, list[Path]] = {}
        for each in wanted or ():
            asked.setdefault(each[0], []).append(each[1:])
        names = {name: None for name, _, _ in members}
        for each in wanted or ():
            if each[0] not in names:
                raise unknown(path, each, names)
        for name, schema, optional in members:
            if wanted is None or name in asked:
                below = None if wanted is None else asked[name]
                child = self.column(schema, below, (*path, name), optional, inside)
                if child is not None:
                    column.add(name, child)
        fields = zip(column.names, column.children, strict=True)
        column.type = pa.struct([pa.field(name, child.type) for name, child in fields])
        return column

    def repeated(
        self, schema: Schema, wanted: list[Path] | None, path: Path, nullable: bool, inside: tuple[Schema, ...]
    ) -> Column | None:
        column = self.new("LIST", path, nullable)
        item_path = (*path[:-1], f"{path[-1] if path else ''}[]")
        if schema.type == "array":
            item = self.column(schema.items, wanted, item_path, False, inside)
            if item is None:
                del self.columns[column.number :]
                return None
            column.type, column.children = pa.list_(pa.field("element", item.type)), [item]
            return column
        entries = self.new("STRUCT", path, False)
        key = self.column(Schema(type="string"), None, item_path, False, inside)
        value = self.column(schema.items, wanted, item_path, False, inside)
        if value is None:
            del self.columns[column.number :]
            return None
        assert key is not None
        column.type = pa.map_(key.type, value.type)
        entries.add("key", key)
        entries.add("value", value)
        entries.type = pa.struct([pa.field("key", key.type, nullable=False), pa.field("value", value.type)])
        column.children = [entries]
        return column


def unknown(path: Path, rest: Path, names: Iterable[str]) -> OptionError:
    """Return the error for a column that does not exist: rest, below path."""
    where = f" in {'.'.join(path)}" if path else ""
    return OptionError(f"unknown column {'.'.join(rest)!r}{where}{did_you_mean(rest[0], names)}")
