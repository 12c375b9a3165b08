"""Results of queries as tables, JSON, CSV, Parquet or Arrow; all of them stream."""

from __future__ import annotations

import datetime
import enum
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kwire.cli import terminal
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import OptionError
from kwire.pages.escaping import compact_json

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


BINARY = (OutputFormat.PARQUET, OutputFormat.ARROW)


def write_result(result: pa.RecordBatchReader, format: OutputFormat, output: str | None = None) -> None:
    """Write a result to standard output or a file. Raises OptionError for a binary format on a terminal."""
    if output is None:
        if format in BINARY and terminal.is_terminal():
            raise OptionError(f"--format {format}: binary; use -o FILE")
        _write(result, format)
        return
    if format in BINARY:
        with open(output, "wb") as file:
            _write_binary(result, format, file)
        return
    import contextlib

    with open(output, "w", encoding="utf-8", newline="") as text, contextlib.redirect_stdout(text):
        _write(result, format)


def _write(result: pa.RecordBatchReader, format: OutputFormat) -> None:
    if format in BINARY:
        _write_binary(result, format, sys.stdout.buffer)
    elif format is OutputFormat.CSV:
        _write_csv(result)
    else:
        write_rows(_rows(result), _columns(result.schema), Format(format.value))


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
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield {key: _plain(value) for key, value in zip(keys, values, strict=True)}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: times as ISO 8601, bytes as text if they are UTF-8, else as \\x and digits."""
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
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="milliseconds" if value.microsecond % 1000 == 0 else "microseconds")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return compact_json(value) if isinstance(value, dict | list | bool) else str(value)
