"""Changes of a database, as Debezium's envelope has them, as rows of a table.

    with mergeKey      the latest state: a row for each key, none for a deleted one
    without            the history: a row for each event, that of a deletion with the values before it

The envelope is the struct in the column `value`: decoded from Avro or Protobuf, or from JSON with a schema of fields
(`payload`, where Connect adds the schema to each message). The rows have the fields of `after`, the event's `op` as
`__op`, and the columns of Kafka, by which they are ordered. A deletion is a tombstone of the merge: a row whose columns
are all null, except for the key.

order_by names fields of the event that order the changes of a key where offsets do not, such as source.lsn. They are
columns of the table (`__source_lsn`), and a deletion stays a row, whose `__op` is d: an older change may come later.

The connector for PostgreSQL has a placeholder for a large value that an update did not change and that it therefore
does not know. It must not replace the value, so the event is an error.
Source: Debezium's EnvelopeSchema, Envelope.Operation; ExtractNewRecordState for the name `__op`;
RelationalDatabaseConnectorConfig for unavailable.value.placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kwire.errors import OptionError
from kwire.lake.arrow_columns import METADATA_COLUMNS, OP

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = ["TRUNCATED", "Changed", "Changes", "DeleteWhen"]

VALUE, KEY = "value", "key"
WRITTEN, DELETED, IGNORED = ("c", "r", "u"), "d", "m"  # m: a message of pg_logical_emit_message
TRUNCATED = (
    "op is t: the table was truncated at its source; truncate this table and start at the offset after it, or leave "
    "'t' in skipped.operations of the connector, its default"
)
UNAVAILABLE = "__debezium_unavailable_value"
NOT_KNOWN = (
    "the connector does not know the value of '{}', which an update did not change (" + UNAVAILABLE + "); set REPLICA "
    "IDENTITY FULL of the table at its source, or post.processors of the connector to a reselector"
)


@dataclass(slots=True, kw_only=True)
class Changed:
    """Rows of a table. origins: of each, the row it was made of. errors: of rows that none could be made of."""

    rows: pa.RecordBatch
    origins: np.ndarray
    errors: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteWhen:
    """Which rows delete their key: those with a value in a column; value: True for a column that is a condition."""

    column: str
    value: str | int | bool

    @classmethod
    def parse(cls, text: str) -> DeleteWhen:
        """Parse `COLUMN`, `COLUMN = 'TEXT'`, `COLUMN = NUMBER` or `COLUMN = true`. Raises OptionError."""
        match = re.fullmatch(r"\s*(\w+)\s*(?:=\s*(?:'([^']*)'|(-?\d{1,18})|(true|false)))?\s*", text)
        if match is None:
            raise OptionError(
                f"Option 'deleteWhen': expected COLUMN, COLUMN = 'TEXT', COLUMN = NUMBER or COLUMN = true, got '{text}'"
            )
        column, word, number, flag = match.groups()
        if word is not None:
            return cls(column=column, value=word)
        return cls(column=column, value=int(number) if number else flag != "false")

    def check(self, schema: pa.Schema) -> None:
        """Raise OptionError unless a column can be compared with the value."""
        import pyarrow as pa

        if self.column not in schema.names:
            raise OptionError(
                f"Option 'deleteWhen': unknown column '{self.column}'; available: {', '.join(schema.names)}"
            )
        kind = schema.field(self.column).type
        fits = {bool: pa.types.is_boolean, str: pa.types.is_string, int: pa.types.is_integer}[type(self.value)]
        if not fits(kind):
            raise OptionError(f"Option 'deleteWhen': column '{self.column}' is of type {kind}, not of {self.value!r}")

    def rows(self, rows: pa.RecordBatch) -> pa.Array:
        """Return for each row whether it deletes its key."""
        import pyarrow.compute as pc

        return pc.fill_null(pc.equal(rows.column(self.column), self.value), False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """How rows become those of a table. Picklable. key: columns to merge by, () for the history.

    is_debezium: whether `value` is an envelope. order_by: fields of it that order the changes of a key, such as
    `source.lsn`; () for offsets.
    """

    key: tuple[str, ...] = ()
    is_debezium: bool = True
    delete_when: DeleteWhen | None = None
    order_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise OptionError for options that do not fit."""
        if self.delete_when is not None and not self.key:
            raise OptionError("Option 'deleteWhen': requires option 'mergeKey', by which rows are deleted")
        if self.order_by and not (self.key and self.is_debezium):
            raise OptionError("Option 'orderBy': requires the options 'mergeKey' and 'changes'")
        if self.order_by and self.delete_when is not None:
            raise OptionError("Options 'orderBy' and 'deleteWhen' exclude each other: a deletion stays a row to order")

    @classmethod
    def of(cls, given: str | Changes | None, key: Sequence[str]) -> Changes | None:
        """Return the changes of an argument, `debezium` or an object, with the columns to merge by."""
        if given is None or isinstance(given, Changes):
            return None if given is None else replace(given, key=tuple(key))
        if given != "debezium":
            raise OptionError(f"changes: expected debezium, got '{given}'")
        return cls(key=tuple(key))

    @property
    def order_columns(self) -> tuple[str, ...]:
        """The columns of the table that order_by becomes."""
        return tuple(f"__{path.replace('.', '_')}" for path in self.order_by)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of the table. Raises OptionError for rows that are no events."""
        import pyarrow as pa

        made = schema
        if self.is_debezium:
            envelope = _envelope(schema)
            after = envelope.field("after").type
            ordered = [
                pa.field(name, _order_type(envelope, path))
                for name, path in zip(self.order_columns, self.order_by, strict=True)
            ]
            unknown = [name for name in schema.names if name not in (*METADATA_COLUMNS, KEY, VALUE)]
            if unknown:
                raise OptionError(f"Option 'changes': column '{unknown[0]}' is not of a record; leave it out")
            clashing = [each.name for each in after if each.name in (*METADATA_COLUMNS, OP, *self.order_columns)]
            if clashing:
                raise OptionError(
                    f"Option 'changes': field '{clashing[0]}' of 'after' has the name of a column of Kafka; rename it "
                    "in before and after, such as with transform_keys or a function of copy_stream"
                )
            kept = [each for each in schema if each.name in METADATA_COLUMNS]
            made = pa.schema(
                [*(each.with_nullable(True) for each in after), pa.field(OP, pa.string()), *ordered, *kept]
            )
        if self.delete_when is not None:
            self.delete_when.check(made)
        return made

    def apply(self, rows: pa.RecordBatch) -> Changed:
        """Return the rows of the table."""
        import numpy as np

        changed = _of_debezium(self, rows) if self.is_debezium else Changed(rows=rows, origins=np.arange(len(rows)))
        if self.delete_when is not None:
            changed.rows = self._deleted(changed.rows, self.delete_when.rows(changed.rows))
        return changed

    def _deleted(self, rows: pa.RecordBatch, is_deleted: pa.Array) -> pa.RecordBatch:
        """Return rows, those that delete their key as tombstones."""
        import pyarrow as pa
        import pyarrow.compute as pc

        names = (*self.key, *METADATA_COLUMNS)
        columns = [
            column if name in names else pc.if_else(is_deleted, pa.scalar(None, column.type), column)
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _order_type(envelope: pa.StructType, path: str) -> pa.DataType:
    """Return the type of a field of the event. Raises OptionError for one that is missing or cannot be ordered."""
    from pyarrow import types

    kind = envelope
    for name in path.split("."):
        if not types.is_struct(kind) or kind.get_field_index(name) < 0:
            raise OptionError(f"Option 'orderBy': the event has no field '{path}'; name one such as source.lsn")
        kind = kind.field(name).type
    if not (types.is_integer(kind) or types.is_string(kind)):
        raise OptionError(f"Option 'orderBy': '{path}' is of type {kind}; name a number or text")
    return kind


def _envelope(schema: pa.Schema) -> pa.StructType:
    """Return the type of the envelope, which may be in `payload`. Raises OptionError."""
    from pyarrow import types

    kind = schema.field(VALUE).type if VALUE in schema.names else None
    is_nested = kind is not None and types.is_struct(kind) and kind.get_field_index("payload") >= 0
    if kind is not None and is_nested:
        kind = kind.field("payload").type
    names = [each.name for each in kind] if kind is not None and types.is_struct(kind) else []
    if kind is None or not {"after", "op"} <= set(names) or not types.is_struct(kind.field("after").type):
        state = f"has fields {', '.join(names)}" if names else f"is {kind}" if kind is not None else "is missing"
        raise OptionError(
            "Option 'changes': expected Debezium's envelope in column 'value', a struct with before, after and op; it "
            f"{state}. Decode it, as with value.registry or from_json; topics of transactions and of schema changes "
            "have no rows"
        )
    return kind


def _of_debezium(changes: Changes, rows: pa.RecordBatch) -> Changed:
    """Return the rows of events."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = _envelope(rows.schema).field("after").type
    events = rows.column(VALUE)
    if events.type.get_field_index("payload") >= 0:
        events = _child(events, "payload")
    order = [_field(events, path) for path in changes.order_by]
    after, op = _child(events, "after"), _child(events, "op")
    before = _child(events, "before") if events.type.get_field_index("before") >= 0 else pa.nulls(len(rows), kind)
    errors = _errors(events, before, after, op, changes)
    for path, column in zip(changes.order_by, order, strict=True):
        nulls = _mask(column.is_null()) & _mask(pc.is_in(op, pa.array([*WRITTEN, DELETED])))
        errors = {int(row): f"'{path}' is null, which orders the changes" for row in np.flatnonzero(nulls)} | errors
    good = np.array([row not in errors for row in range(len(rows))], bool)
    written = np.flatnonzero(good & _mask(pc.is_in(op, pa.array(WRITTEN))))
    deleted = np.flatnonzero(good & _mask(pc.equal(op, DELETED)))
    left = written[:0]  # keys that a row had before it got another one
    if changes.key and len(written):
        left = np.flatnonzero(good & _mask(pc.equal(op, "u")) & _has_moved(before, after, changes.key))
    origins = np.concatenate([left, deleted, written])
    sorted_rows = pa.array(np.argsort(origins, kind="stable"))
    gone = pa.array(np.concatenate([left, deleted]))
    columns = []
    for each in kind:
        is_kept = not changes.key or each.name in changes.key
        has_it = before.type.get_field_index(each.name) >= 0
        old = _child(before, each.name).cast(each.type) if is_kept and has_it else pa.nulls(len(rows), each.type)
        columns.append(pa.concat_arrays([old.take(gone), _child(after, each.name).take(pa.array(written))]))
    is_removed = changes.key and not order
    ops = pa.nulls(len(gone), pa.string()) if is_removed else pa.array([DELETED] * len(gone), pa.string())
    columns.append(pa.concat_arrays([ops, op.take(pa.array(written)).cast(pa.string())]))
    columns = [column.take(sorted_rows) for column in columns]
    origins = origins[sorted_rows.to_numpy()]
    columns += [column.take(pa.array(origins)) for column in order]
    schema = changes.schema(rows.schema)
    columns += [rows.column(name).take(pa.array(origins)) for name in schema.names[len(columns) :]]
    return Changed(rows=pa.RecordBatch.from_arrays(columns, schema=schema), origins=origins, errors=errors)


def _errors(
    events: pa.Array, before: pa.StructArray, after: pa.StructArray, op: pa.Array, changes: Changes
) -> dict[int, str]:
    """Return what is wrong with events, by row. A tombstone, which follows a deletion, is none."""
    errors: dict[int, str] = {}
    has_after, has_before = after.is_valid().to_pylist(), before.is_valid().to_pylist()
    for row, (code, is_event) in enumerate(zip(op.to_pylist(), events.is_valid().to_pylist(), strict=True)):
        if not is_event or code == IGNORED:
            continue
        if code == "t":
            errors[row] = TRUNCATED
        elif code in WRITTEN and not has_after[row]:
            errors[row] = f"op is {code}, and 'after' is null"
        elif code == DELETED and changes.key and not has_before[row]:
            errors[row] = (
                "op is d, and 'before' is null, which has the key of the row; see REPLICA IDENTITY of the table"
            )
        elif code not in (*WRITTEN, DELETED):
            errors[row] = f"op is {code}, which is none of c, r, u, d, m and t"
    if changes.key:
        for field in after.type:
            for row in _unavailable_rows(_child(after, field.name)):
                errors.setdefault(row, NOT_KNOWN.format(field.name))
    return errors


def _unavailable_rows(column: pa.Array) -> list[int]:
    """Return the rows that have the placeholder of the connector: as text, bytes, or in an array."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    kind, found = column.type, np.zeros(len(column), bool)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        found = _mask(pc.equal(column, pa.scalar(UNAVAILABLE, pa.string()).cast(kind)))
    elif types.is_list(kind) and types.is_string(kind.value_type):
        single = _mask(pc.equal(pc.list_value_length(column), 1))
        found = (
            single & np.array([each == [UNAVAILABLE] for each in column.to_pylist()], bool) if any(single) else found
        )
    elif types.is_list(kind) and types.is_integer(kind.value_type):  # its characters
        long = _mask(pc.equal(pc.list_value_length(column), len(UNAVAILABLE)))
        wanted = list(UNAVAILABLE.encode())
        found = long & np.array([each == wanted for each in column.to_pylist()], bool) if any(long) else found
    return [int(row) for row in np.flatnonzero(found)]


def _has_moved(before: pa.StructArray, after: pa.StructArray, key: tuple[str, ...]) -> np.ndarray:
    """Return for each row whether its key was another one before, as far as the event says."""
    import numpy as np
    import pyarrow.compute as pc

    known, differs = _mask(before.is_valid()), np.zeros(len(before), bool)
    for name in key:
        if before.type.get_field_index(name) < 0 or after.type.get_field_index(name) < 0:
            return differs
        old = _child(before, name)
        known &= _mask(old.is_valid())
        differs |= _mask(pc.not_equal(old, _child(after, name)))
    return known & differs


def _field(events: pa.StructArray, path: str) -> pa.Array:
    """Return a field of the events, null where one of its structs is."""
    for name in path.split("."):
        events = _child(events, name)
    return events


def _child(column: pa.StructArray, name: str) -> pa.Array:
    """Return a field, null where the struct is."""
    return column.flatten()[column.type.get_field_index(name)]


def _mask(flags: pa.Array) -> np.ndarray:
    import pyarrow.compute as pc

    mask: np.ndarray = pc.fill_null(flags, False).to_numpy(zero_copy_only=False)
    return mask
