"""Random conditions on the columns of a topic, near the values of rows: borders, gaps, nulls, nonsense.

A condition is a tree of tuples, which becomes SQL of DuckDB, DataFusion or Spark, or an expression of Polars, Arrow or
Ibis.
"""

from __future__ import annotations

import importlib
import operator
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Condition = tuple[Any, ...]
SYMBOLS = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<>": operator.ne,
}
OPERATORS = tuple(SYMBOLS)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def draw_condition(rnd: random.Random, rows: list[dict[str, Any]], depth: int = 0) -> Condition:
    """Return a condition. rows: with `partition`, `offset`, `us` (microseconds, or None), `key` and `topic`."""
    kind = rnd.random()
    if depth < 2 and kind < 0.45:
        joint = rnd.choice(["AND", "OR"])
        return joint, draw_condition(rnd, rows, depth + 1), draw_condition(rnd, rows, depth + 1)
    if depth < 2 and kind < 0.52:
        return "NOT", draw_condition(rnd, rows, depth + 1)
    row, symbol = rnd.choice(rows), rnd.choice(OPERATORS)
    return rnd.choice([_of_partition, _of_offset, _of_offset, _of_time, _of_time, _of_others])(rnd, row, rows, symbol)


def _of_partition(rnd: random.Random, row: dict[str, Any], rows: list[dict[str, Any]], symbol: str) -> Condition:
    partition = row["partition"]
    return rnd.choice(
        [
            ("compare", "partition", symbol, partition + rnd.choice([-1, 0, 0, 1])),
            ("in", "partition", [partition, rnd.randrange(9)]),
        ]
    )


def _of_offset(rnd: random.Random, row: dict[str, Any], rows: list[dict[str, Any]], symbol: str) -> Condition:
    offset, others = row["offset"] + rnd.choice([-1, 0, 0, 1, 1000]), [rnd.choice(rows)["offset"] for _ in range(2)]
    return rnd.choice(
        [
            ("compare", "offset", symbol, offset),
            ("between", "offset", offset, offset + rnd.randrange(20)),
            ("in", "offset", [offset, *others]),
            ("remainder", "offset", rnd.randrange(3)),
            ("plus one", "offset", symbol, offset),
        ]
    )


def _of_time(rnd: random.Random, row: dict[str, Any], rows: list[dict[str, Any]], symbol: str) -> Condition:
    if row["us"] is None:
        return "null", "timestamp"
    us = row["us"] + rnd.choice([-1000, -1, 0, 0, 1, 1000, 10**9])
    return rnd.choice(
        [
            ("compare", "timestamp", symbol, us),
            ("between", "timestamp", us, us + rnd.randrange(10**7)),
            ("epoch", "timestamp", symbol, us),
            ("not null", "timestamp"),
            ("null", "timestamp"),
        ]
    )


def _of_others(rnd: random.Random, row: dict[str, Any], rows: list[dict[str, Any]], symbol: str) -> Condition:
    return rnd.choice(
        [
            ("null", "key"),
            ("not null", "key"),
            ("compare", "key", symbol, row["key"] or b"k"),
            ("compare", "timestampType", symbol, rnd.randrange(2)),
            ("compare", "topic", symbol, row["topic"]),
            ("constant", rnd.choice([True, False, None])),
        ]
    )


def to_sql(condition: Condition, dialect: str) -> str:
    """Return a condition as SQL. dialect: duckdb, datafusion or spark."""
    kind, *parts = condition
    quote = "`" if dialect == "spark" else '"'
    match kind:
        case "AND" | "OR":
            return f"({to_sql(parts[0], dialect)} {kind} {to_sql(parts[1], dialect)})"
        case "NOT":
            return f"(NOT {to_sql(parts[0], dialect)})"
        case "constant" if dialect == "datafusion":  # its Python cannot hand over TRUE AND ...
            return {True: "partition >= 0", False: "partition < 0", None: "nullif(partition, partition) > 0"}[parts[0]]
        case "constant":
            return {True: "TRUE", False: "FALSE", None: "CAST(NULL AS BOOLEAN)"}[parts[0]]
    column, *values = parts
    name = f"{quote}{column}{quote}"
    match kind:
        case "compare":
            return f"{name} {values[0]} {_literal(column, values[1], dialect)}"
        case "in":
            return f"{name} IN ({', '.join(map(str, values[0]))})"
        case "between":
            low, high = (_literal(column, value, dialect) for value in values)
            return f"{name} BETWEEN {low} AND {high}"
        case "remainder":
            return f"{name} % 3 = {values[0]}"
        case "plus one":
            return f"{name} + 1 {values[0]} {values[1]}"
        case "epoch":
            epoch = {"duckdb": "epoch_us({})", "datafusion": "CAST({} AS BIGINT)", "spark": "unix_micros({})"}[dialect]
            return f"{epoch.format(name)} {values[0]} {values[1]}"
        case "null":
            return f"{name} IS NULL"
        case "not null":
            return f"{name} IS NOT NULL"
    raise AssertionError(kind)


def _literal(column: str, value: Any, dialect: str) -> str:
    if column == "timestamp":
        return {
            "duckdb": f"make_timestamptz({value})",
            "datafusion": f"arrow_cast({value}, 'Timestamp(Microsecond, Some(\"UTC\"))')",
            "spark": f"timestamp_micros({value})",
        }[dialect]
    if isinstance(value, bytes):
        if dialect == "duckdb":
            return "'" + "".join(f"\\x{byte:02x}" for byte in value) + "'::BLOB"
        return f"X'{value.hex()}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


class Expressions:
    """How a library of data frames says what a condition says. Polars' names, which others override."""

    def column(self, name: str) -> Any:
        """Return a column."""
        return polars().col(name)

    def literal(self, column: str, value: Any) -> Any:
        """Return a value that a column is compared with."""
        pl = polars()
        return pl.lit(value, pl.Int64).cast(pl.Datetime("us", "UTC")) if column == "timestamp" else pl.lit(value)

    def constant(self, value: bool | None) -> Any:
        """Return TRUE, FALSE or NULL."""
        pl = polars()  # hands over a NULL of no type, of which Arrow has no NOT
        return pl.lit(value) if value is not None else pl.col("partition") > pl.lit(None, pl.Int32)

    def is_in(self, column: Any, values: list[int]) -> Any:
        """Return whether a column has one of these values."""
        return column.is_in(values)

    def remainder(self, column: Any, divisor: int) -> Any:
        """Return the remainder of a division."""
        return column % divisor

    def epoch(self, column: Any) -> Any:
        """Return a time as a number of microseconds."""
        return column.cast(polars().Int64)

    def is_null(self, column: Any) -> Any:
        """Return whether a column is null."""
        return column.is_null()


class ArrowExpressions(Expressions):
    """Those of pyarrow.compute."""

    def column(self, name: str) -> Any:
        return pc.field(name)

    def literal(self, column: str, value: Any) -> Any:
        return pa.scalar(value, pa.timestamp("us", "UTC") if column == "timestamp" else None)

    def constant(self, value: bool | None) -> Any:
        return pc.scalar(pa.scalar(value, pa.bool_()))

    def is_in(self, column: Any, values: list[int]) -> Any:
        return column.isin(values)

    def remainder(self, column: Any, divisor: int) -> Any:
        return column - pc.divide(column, divisor) * divisor

    def epoch(self, column: Any) -> Any:
        return column.cast(pa.int64())


class IbisExpressions(Expressions):
    """Those of Ibis, which DuckDB runs."""

    def column(self, name: str) -> Any:
        return ibis()._[name]

    def literal(self, column: str, value: Any) -> Any:
        if column == "timestamp":
            return ibis().literal(EPOCH + timedelta(microseconds=value), "timestamp('UTC', 6)")
        return ibis().literal(value)

    def constant(self, value: bool | None) -> Any:
        return ibis().literal(value, "boolean")

    def is_in(self, column: Any, values: list[int]) -> Any:
        return column.isin(values)

    def epoch(self, column: Any) -> Any:
        return column.epoch_seconds() * 10**6

    def is_null(self, column: Any) -> Any:
        return column.isnull()


def polars() -> Any:
    """Return the module, which is imported where it is used."""
    return importlib.import_module("polars")


def ibis() -> Any:
    """Return the module, which is imported where it is used."""
    return importlib.import_module("ibis")


def to_expression(condition: Condition, of: Expressions) -> Any:
    """Return a condition as an expression of a library."""
    kind, *parts = condition
    match kind:
        case "AND":
            return to_expression(parts[0], of) & to_expression(parts[1], of)
        case "OR":
            return to_expression(parts[0], of) | to_expression(parts[1], of)
        case "NOT":
            return ~to_expression(parts[0], of)
        case "constant":
            return of.constant(parts[0])
    name, *values = parts
    column = of.column(name)
    match kind:
        case "compare":
            return SYMBOLS[values[0]](column, of.literal(name, values[1]))
        case "in":
            return of.is_in(column, values[0])
        case "between":
            low, high = (of.literal(name, value) for value in values)
            return (column >= low) & (column <= high)
        case "remainder":
            return of.remainder(column, 3) == values[0]
        case "plus one":
            return SYMBOLS[values[0]](column + 1, values[1])
        case "epoch":
            return SYMBOLS[values[0]](of.epoch(column), values[1])
        case "null":
            return of.is_null(column)
        case "not null":
            return ~of.is_null(column)
    raise AssertionError(kind)
