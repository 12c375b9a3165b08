"""Changes of a database, as Debezium's envelope has them, as rows of a table.

    with mergeKey      the latest state: a row for each key, none for a deleted one
    without            the history: a row for each event, that of a deletion with the values before it

The envelope is the struct in the column `value`: decoded from Avro or Protobuf, or from JSON with a schema of fields
(`payload`, where Connect adds the schema to each message). The rows have the fields of `after`, the event's `op` as
`__op`, and the columns of Kafka, by which they are ordered. A deletion is a tombstone of the merge: a row whose columns
are all null, except for the key.
Source: Debezium's EnvelopeSchema, Envelope.Operation; ExtractNewRecordState for the name `__op`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.errors import OptionError
from kwire.lake.arrow_columns import METADATA_COLUMNS

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = ["TRUNCATED", "Changed", "Changes", "DeleteWhen"]

VALUE, KEY, OP = "value", "key", "__op"
WRITTEN, DELETED, IGNORED = ("c", "r", "u"), "d", "m"  # m: a message of pg_logical_emit_message
TRUNCATED = (
    "op is t: the table was truncated at its source; truncate this table and start at the offset after it, or leave "
    "'t' in skipped.operations of the connector, its default"
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

    is_debezium: whether `value` is an envelope.
    """

    key: tuple[str, ...]
    is_debezium: bool
    delete_when: DeleteWhen | None = None

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of the table. Raises OptionError for rows that are no events."""
        import pyarrow as pa

        made = schema
        if self.is_debezium:
            _, after = _envelope(schema)
            unknown = [name for name in schema.names if name not in (*METADATA_COLUMNS, KEY, VALUE)]
            if unknown:
                raise OptionError(f"Option 'changes': column '{unknown[0]}' is not of a record; leave it out")
            clashing = [each.name for each in after if each.name in (*METADATA_COLUMNS, OP)]
            if clashing:
                raise OptionError(
                    f"Option 'changes': field '{clashing[0]}' of 'after' has the name of a column of Kafka; rename it "
                    "in before and after, such as with transform_keys or a function of copy_stream"
                )
            kept = [each for each in schema if each.name in METADATA_COLUMNS]
            made = pa.schema([*(each.with_nullable(True) for each in after), pa.field(OP, pa.string()), *kept])
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


def _envelope(schema: pa.Schema) -> tuple[bool, pa.StructType]:
    """Return whether the envelope is in `payload`, and the type of `after`. Raises OptionError."""
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
    return is_nested, kind.field("after").type


def _of_debezium(changes: Changes, rows: pa.RecordBatch) -> Changed:
    """Return the rows of events."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    is_nested, kind = _envelope(rows.schema)
    events = rows.column(VALUE)
    if is_nested:
        events = _child(events, "payload")
    after, op = _child(events, "after"), _child(events, "op")
    before = _child(events, "before") if events.type.get_field_index("before") >= 0 else pa.nulls(len(rows), kind)
    errors = _errors(events, before, after, op, changes)
    good = np.array([row not in errors for row in range(len(rows))], bool)
    written = np.flatnonzero(good & _mask(pc.is_in(op, pa.array(WRITTEN))))
    deleted = np.flatnonzero(good & _mask(pc.equal(op, DELETED)))
    left = written[:0]  # keys that a row had before it got another one
    if changes.key and len(written):
        left = np.flatnonzero(good & _mask(pc.equal(op, "u")) & _has_moved(before, after, changes.key))
    origins = np.concatenate([left, deleted, written])
    order = pa.array(np.argsort(origins, kind="stable"))
    gone = pa.array(np.concatenate([left, deleted]))
    columns = []
    for each in kind:
        is_kept = not changes.key or each.name in changes.key
        has_it = before.type.get_field_index(each.name) >= 0
        old = _child(before, each.name).cast(each.type) if is_kept and has_it else pa.nulls(len(rows), each.type)
        columns.append(pa.concat_arrays([old.take(gone), _child(after, each.name).take(pa.array(written))]))
    ops = pa.nulls(len(gone), pa.string()) if changes.key else pa.array([DELETED] * len(gone), pa.string())
    columns.append(pa.concat_arrays([ops, op.take(pa.array(written)).cast(pa.string())]))
    columns = [column.take(order) for column in columns]
    origins = origins[order.to_numpy()]
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
    return errors


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


def _child(column: pa.StructArray, name: str) -> pa.Array:
    """Return a field, null where the struct is."""
    return column.flatten()[column.type.get_field_index(name)]


def _mask(flags: pa.Array) -> np.ndarray:
    import pyarrow.compute as pc

    mask: np.ndarray = pc.fill_null(flags, False).to_numpy(zero_copy_only=False)
    return mask
