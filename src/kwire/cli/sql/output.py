"""Results of queries as tables, JSON, CSV, Parquet or Arrow; all of them stream."""

from __future__ import annotations

import contextlib
import enum
import io
import itertools
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kwire.cli import terminal
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import OptionError
from kwire.pages.escaping import compact_json, printable
from kwire.target_paths import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OutputFormat", "write_result"]


class OutputFormat(enum.StrEnum):
    """Values of --format."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


EXPLAINED = ["explain_key", "explain_value"]
BINARY = (OutputFormat.PARQUET, OutputFormat.ARROW)
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # units of Arrow's timestamps
SECONDS_OF_400_YEARS = 146_097 * 86_400
# Python's dates, less a day at both ends for time zones.
FIRST_TIME = int(datetime(1, 1, 2, tzinfo=UTC).timestamp())
LAST_TIME = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp())


def write_result(result: pa.RecordBatchReader, format: OutputFormat, output: str | None = None) -> None:
    """Write a result to standard output or a file, which appears when it is complete.

    Raises OptionError for a binary format on a terminal, and for a file that cannot be written.
    """
    if output is None:
        if format in BINARY and terminal.is_terminal():
            raise OptionError(f"--format {format}: binary; use -o FILE")
        _write(result, format)
        return
    with whole_file(output) as file:
        if format in BINARY:
            _write_binary(result, format, file)
            return
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        with contextlib.redirect_stdout(text):
            _write(result, format)
        text.flush()
        text.detach()


def _write(result: pa.RecordBatchReader, format: OutputFormat) -> None:
    if format in BINARY:
        _write_binary(result, format, sys.stdout.buffer)
    elif format is OutputFormat.CSV:
        _write_csv(result)
    elif result.schema.names == EXPLAINED and format is OutputFormat.TABLE:
        for row in _rows(result):
            for line in str(row["explain_value"]).splitlines():
                print(printable(line))
    else:
        rows = _rows(result)
        first = next(rows, None)
        if first is None and format is OutputFormat.TABLE:
            print("  ".join(map(printable, result.schema.names)))
            return
        some = [] if first is None else [first]
        write_rows(itertools.chain(some, rows), _columns(result.schema), Format(format.value))


def _write_binary(result: pa.RecordBatchReader, format: OutputFormat, file: Any) -> None:
    import pyarrow as pa

    if format is OutputFormat.ARROW:
        with pa.ipc.new_stream(file, result.schema) as stream:
            for batch in result:
                stream.write_batch(batch)
        return
    import pyarrow.parquet as pq

    try:
        writer = pq.ParquetWriter(file, result.schema, compression="zstd")
    except pa.ArrowNotImplementedError as error:
        raise OptionError(f"--format parquet: {error}; cast the column, as to VARCHAR") from None
    with writer:
        for batch in result:
            writer.write_batch(batch)


def _write_csv(result: pa.RecordBatchReader) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(result.schema.names)
    for row in _rows(result):
        writer.writerow(["" if value is None else _text(value) for value in row.values()])


def _columns(schema: pa.Schema) -> list[Column]:
    import pyarrow.types as types

    return [
        Column(
            key=key,
            heading=name,
            show=_text,
            right=types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind),
        )
        for key, name, kind in zip(_keys(schema), schema.names, schema.types, strict=True)
    ]


def _keys(schema: pa.Schema) -> list[str]:
    """Return the names of columns, with a number after one that comes again: rows are dictionaries."""
    keys: list[str] = []
    for name in schema.names:
        key, n = name, 1
        while key in keys:
            n += 1
            key = f"{name}_{n}"
        keys.append(key)
    return keys


def _rows(result: pa.RecordBatchReader) -> Iterator[Row]:
    keys = _keys(result.schema)
    plain = [_plain_of(kind) for kind in result.schema.types]
    for batch in result:
        columns = map(_values, batch.schema, batch.columns)
        for values in zip(*(map(*each) for each in zip(plain, columns, strict=True)), strict=True):
            yield dict(zip(keys, values, strict=True))


def _values(field: pa.Field, column: pa.Array) -> list[Any]:
    """Return the values of a column. Raises OptionError for a type that has none in Python, as unions."""
    import pyarrow as pa

    try:
        return column.cast(_without_times(field.type)).to_pylist()  # type: ignore[no-any-return]
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise OptionError(f"column '{field.name}': {field.type} cannot be shown: {error}; cast it") from None


def _without_times(kind: pa.DataType) -> pa.DataType:
    """Return a type with numbers in place of dates and times: Python's end with the year 9999, Kafka's do not.

    Nulls without a type become booleans: Arrow casts lists of them to arrays that are too short.
    """
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_null(kind):
        return pa.bool_()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_without_times(each.type)) for each in kind])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_without_times(kind.value_type)), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_times(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_without_times(kind.key_type), _without_times(kind.item_type))
    return kind


def _plain_of(kind: pa.DataType) -> Callable[[Any], Any]:
    """Return what makes values of a type, without times, what JSON has."""
    convert = _convert_of(kind)
    return lambda value: None if value is None else convert(value)


def _convert_of(kind: pa.DataType) -> Callable[[Any], Any]:
    import pyarrow.types as types

    if types.is_timestamp(kind):
        per_second, zone = PER_SECOND[kind.unit], kind.tz
        return lambda value: _time_text(value, per_second, zone)
    if types.is_date32(kind):
        return lambda value: _time_text(value * 86_400).partition(" ")[0]
    if types.is_interval(kind):
        return _interval_text
    if types.is_struct(kind):
        fields = {each.name: _plain_of(each.type) for each in kind}
        return lambda value: {name: plain(value[name]) for name, plain in fields.items()}
    if types.is_map(kind):
        key_of, item_of = _plain_of(kind.key_type), _plain_of(kind.item_type)
        return lambda value: [[key_of(key), item_of(item)] for key, item in value]
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        plain = _plain_of(kind.value_type)
        return lambda value: [plain(each) for each in value]
    return _scalar


def _scalar(value: Any) -> Any:
    """Return a value as JSON has it: bytes as text if they are UTF-8, else as \\x and digits."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return "\\x" + value.hex()
    return value if isinstance(value, bool | int | float | str) else str(value)


def _interval_text(value: pa.MonthDayNano) -> str:
    """Return an interval as DuckDB's text of it."""
    years, months = divmod(abs(value.months), 12)
    sign = -1 if value.months < 0 else 1
    counts = ((sign * years, "year"), (sign * months, "month"), (value.days, "day"))
    parts = [f"{count} {unit}{'' if count in (1, -1) else 's'}" for count, unit in counts if count]
    seconds, fraction = divmod(abs(value.nanoseconds) // 1000, 1_000_000)
    if seconds or fraction or not parts:
        minutes, seconds = divmod(seconds, 60)
        time = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}" + (
            f".{fraction:06}".rstrip("0") if fraction else ""
        )
        parts.append(f"-{time}" if value.nanoseconds < 0 else time)
    return " ".join(parts)


def _time_text(value: int, per_second: int = 1, zone: str | None = None) -> str:
    """Return a time since 1970 as text; one that Python has no year for as 400 years are, after which dates repeat.

    Raises OptionError for a zone that is unknown here.
    """
    seconds, fraction = divmod(value, per_second)
    cycles = 0 if FIRST_TIME <= seconds < LAST_TIME else seconds // SECONDS_OF_400_YEARS
    try:
        time = datetime.fromtimestamp(
            seconds - cycles * SECONDS_OF_400_YEARS, UTC if zone in (None, "UTC") else ZoneInfo(zone)
        )
    except ZoneInfoNotFoundError:
        raise OptionError(f"the time zone '{zone}' is unknown; SET timezone = 'UTC'") from None
    year = time.year + 400 * cycles
    text = f"{'-' if year < 0 else ''}{abs(year):04}{time:-%m-%d %H:%M:%S}"
    if per_second > 1:
        text += f".{str(per_second + fraction)[1:]}"
    if zone is None:
        return text
    return text + ("Z" if zone == "UTC" else f"{time:%z}")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return compact_json(value) if isinstance(value, dict | list | bool) else str(value)
