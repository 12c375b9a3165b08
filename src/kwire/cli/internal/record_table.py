"""--history: the records of an internal topic, one per line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kwire.cli.command import FINE, FOUND
from kwire.cli.internal.moment import shown_time, warn_of_problem
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.pages.escaping import compact_json

if TYPE_CHECKING:
    from kwire.internal_topics.typed_record import TypedRecord

__all__ = ["write_history"]


def write_history(records: Iterable[TypedRecord], format: Format, *, redact: bool = True) -> int:
    """Print records as they are read. Returns the exit code: FOUND if one is unreadable.

    The error is in the record's line and on standard error.
    """
    from kwire.internal_topics.record_rows import record_row

    exit_code = FINE

    def rows() -> Iterator[Row]:
        nonlocal exit_code
        for record in records:
            if record.error is not None:
                exit_code = FOUND
                warn_of_problem(record)
            yield record_row(record, redact=redact)

    write_rows(rows(), COLUMNS, format)
    return exit_code


def _key(row: Row) -> str | None:
    if row["key"] is None:
        return None
    return " ".join(f"{name}={_text(value)}" for name, value in row["key"].items())


def _value(row: Row) -> str | None:
    if row["error"] is not None:
        return f"ERROR {row['error']}"
    if row["is_tombstone"]:
        return "(deleted)"
    if row["coordinator_epoch"] is not None:
        return f"producer={row['producer_id']} epoch={row['producer_epoch']}"
    if row["value"] is None:
        return None
    return " ".join(f"{name}={_text(value)}" for name, value in row["value"].items())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else compact_json(value)


COLUMNS = (
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="offset", heading="OFFSET", right=True),
    Column(key="timestamp", heading="TIME", show=shown_time),
    Column(key="kind", heading="KIND"),
    Column(pick=_key, heading="KEY"),
    Column(pick=_value, heading="VALUE"),
)
