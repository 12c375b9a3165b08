"""Results of queries as tables, JSON, CSV, Parquet or Arrow; all of them stream."""

from __future__ import annotations

import contextlib
import enum
import io
import itertools
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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

    with pq.ParquetWriter(file, result.schema, compression="zstd") as writer:
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
    for batch in result:
        columns = [column.cast(_shown(column.type)).to_pylist() for column in batch.columns]
        for values in zip(*columns, strict=True):
            yield {key: _plain(value) for key, value in zip(keys, values, strict=True)}


def _shown(kind: pa.DataType) -> pa.DataType:
    """Return a type with text in place of dates and times: Python's end with the year 9999, Kafka's do not."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_shown(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_shown(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_shown(kind.key_type), _shown(kind.item_type))
    return kind


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: bytes as text if they are UTF-8, else as \\x and digits."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return "\\x" + value.hex()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, tuple):  # an entry of a map
        return [_plain(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return compact_json(value) if isinstance(value, dict | list | bool) else str(value)
