"""Random conditions on the columns of a topic, in SQL, near the values of rows: borders, gaps, nulls, nonsense."""

from __future__ import annotations

import random
from typing import Any

OPERATORS = ("=", "<", "<=", ">", ">=", "<>")


def draw_condition(rnd: random.Random, rows: list[dict[str, Any]], depth: int = 0) -> str:
    """Return a condition. rows: with `partition`, `offset`, `us` (microseconds, or None) and `topic`."""
    kind = rnd.random()
    if depth < 2 and kind < 0.45:
        operator = rnd.choice(["AND", "OR"])
        return f"({draw_condition(rnd, rows, depth + 1)} {operator} {draw_condition(rnd, rows, depth + 1)})"
    if depth < 2 and kind < 0.52:
        return f"NOT ({draw_condition(rnd, rows, depth + 1)})"
    row, operator = rnd.choice(rows), rnd.choice(OPERATORS)
    return rnd.choice([_of_partition, _of_offset, _of_offset, _of_time, _of_time, _of_others])(rnd, row, rows, operator)


def _of_partition(rnd: random.Random, row: dict[str, Any], rows: list[dict[str, Any]], operator: str) -> str:
    partition = row["partition"]
    return rnd.choice(
        [
            f"partition {operator} {partition + rnd.choice([-1, 0, 0, 1])}",
            f"partition IN ({partition}, {rnd.randrange(9)})",
        ]
    )


def _of_offset(rnd: random.Random, row: dict[str, Any], rows: list[dict[str, Any]], operator: str) -> str:
    offset, others = row["offset"] + rnd.choice([-1, 0, 0, 1, 1000]), [rnd.choice(rows)["offset"] for _ in range(2)]
    return rnd.choice(
        [
            f'"offset" {operator} {offset}',
            f'"offset" BETWEEN {offset} AND {offset + rnd.randrange(20)}',
            f'"offset" IN ({offset}, {others[0]}, {others[1]})',
            f'"offset" % 3 = {rnd.randrange(3)}',
            f'"offset" + 1 {operator} {offset}',
        ]
    )


def _of_time(rnd: random.Random, row: dict[str, Any], rows: list[dict[str, Any]], operator: str) -> str:
    if row["us"] is None:
        return "timestamp IS NULL"
    us = row["us"] + rnd.choice([-1000, -1, 0, 0, 1, 1000, 10**9])
    return rnd.choice(
        [
            f"timestamp {operator} make_timestamptz({us})",
            f"timestamp BETWEEN make_timestamptz({us}) AND make_timestamptz({us + rnd.randrange(10**7)})",
            f"epoch_us(timestamp) {operator} {us}",
            "timestamp IS NOT NULL",
            "timestamp IS NULL",
        ]
    )


def _of_others(rnd: random.Random, row: dict[str, Any], rows: list[dict[str, Any]], operator: str) -> str:
    return rnd.choice(
        [
            "key IS NULL",
            "key IS NOT NULL",
            f"octet_length(key) {operator} {rnd.randrange(10)}",
            f'"timestampType" = {rnd.randrange(2)}',
            f"topic {operator} '{row['topic']}'",
            "true",
            "NULL",
        ]
    )
