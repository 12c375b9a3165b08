"""Random conditions on the columns of a topic, near the values of rows: borders, gaps, nulls, nonsense.

A condition is a tree of tuples, which becomes SQL of DuckDB or DataFusion, or an expression of Polars.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

Condition = tuple[Any, ...]
OPERATORS = ("=", "<", "<=", ">", ">=", "<>")


def draw_condition(rnd: random.Random, rows: list[dict[str, Any]], depth: int = 0) -> Condition:
    """Return a condition. rows: with `partition`, `offset`, `us` (microseconds, or None), `key` and `topic`."""
    kind = rnd.random()
    if depth < 2 and kind < 0.45:
        operator = rnd.choice(["AND", "OR"])
        return operator, draw_condition(rnd, rows, depth + 1), draw_condition(rnd, rows, depth + 1)
    if depth < 2 and kind < 0.52:
        return "NOT", draw_condition(rnd, rows, depth + 1)
    row, operator = rnd.choice(rows), rnd.choice(OPERATORS)
    return rnd.choice([_of_partition, _of_offset, _of_offset, _of_time, _of_time, _of_others])(rnd, row, rows, operator)


def _of_partition(rnd: random.Random, row: dict[str, Any], rows: list[dict[str, Any]], operator: str) -> Condition:
    partition = row["partition"]
    return rnd.choice(
        [
            ("compare", "partition", operator, partition + rnd.choice([-1, 0, 0, 1])),
            ("in", "partition", [partition, rnd.randrange(9)]),
        ]
    )


def _of_offset(rnd: random.Random, row: dict[str, Any], rows: list[dict[str, Any]], operator: str) -> Condition:
    offset, others = row["offset"] + rnd.choice([-1, 0, 0, 1, 1000]), [rnd.choice(rows)["offset"] for _ in range(2)]
    return rnd.choice(
        [
            ("compare", "offset", operator, offset),
            ("between", "offset", offset, offset + rnd.randrange(20)),
            ("in", "offset", [offset, *others]),
            ("remainder", "offset", rnd.randrange(3)),
            ("plus one", "offset", operator, offset),
        ]
    )


def _of_time(rnd: random.Random, row: dict[str, Any], rows: list[dict[str, Any]], operator: str) -> Condition:
    if row["us"] is None:
        return "null", "timestamp"
    us = row["us"] + rnd.choice([-1000, -1, 0, 0, 1, 1000, 10**9])
    return rnd.choice(
        [
            ("compare", "timestamp", operator, us),
            ("between", "timestamp", us, us + rnd.randrange(10**7)),
            ("epoch", "timestamp", operator, us),
            ("not null", "timestamp"),
            ("null", "timestamp"),
        ]
    )


def _of_others(rnd: random.Random, row: dict[str, Any], rows: list[dict[str, Any]], operator: str) -> Condition:
    return rnd.choice(
        [
            ("null", "key"),
            ("not null", "key"),
            ("compare", "key", operator, row["key"] or b"k"),
            ("compare", "timestampType", operator, rnd.randrange(2)),
            ("compare", "topic", operator, row["topic"]),
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


def to_polars(condition: Condition) -> pl.Expr:
    """Return a condition as an expression of Polars."""
    import operator as of

    import polars as pl

    operators = dict(zip(OPERATORS, (of.eq, of.lt, of.le, of.gt, of.ge, of.ne), strict=True))

    def literal(column: str, value: Any) -> Any:
        return pl.lit(value, pl.Int64).cast(pl.Datetime("us", "UTC")) if column == "timestamp" else pl.lit(value)

    kind, *parts = condition
    match kind:
        case "AND":
            return to_polars(parts[0]) & to_polars(parts[1])
        case "OR":
            return to_polars(parts[0]) | to_polars(parts[1])
        case "NOT":
            return ~to_polars(parts[0])
        case "constant":
            # Polars hands over a NULL of no type, of which Arrow has no NOT
            return pl.lit(parts[0]) if parts[0] is not None else pl.col("partition") > pl.lit(None, pl.Int32)
    name, *values = parts
    column = pl.col(name)
    match kind:
        case "compare":
            result = operators[values[0]](column, literal(name, values[1]))
        case "in":
            result = column.is_in(values[0])
        case "between":
            result = column.is_between(literal(name, values[0]), literal(name, values[1]))
        case "remainder":
            result = column % 3 == values[0]
        case "plus one":
            result = operators[values[0]](column + 1, values[1])
        case "epoch":
            result = operators[values[0]](column.cast(pl.Int64), values[1])
        case "null":
            result = column.is_null()
        case "not null":
            result = column.is_not_null()
        case _:
            raise AssertionError(kind)
    return result
