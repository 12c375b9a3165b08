"""The same queries over one partition of real Kafka, from every kind of source and engine.

    python -m tests.sql.one_answer --count 500 --seed 1 [--spark] [--sail]

Random ones count the records that a condition matches, and sum what tells them apart; those of written_queries do what
people do. Answers of DuckDB over a directory are compared with those over each other kind of source, and with Spark's
and Sail's over the same directory, tiered storage and broker, which get 50 conditions in one statement: they push none
of them down.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.sail import SailEngine

import kwire
from tests.sql.differences import SOURCES, open_source, rows_of, whole
from tests.sql.predicates import Condition, draw_condition, to_sql
from tests.sql.written_queries import END, QUERIES, VIEWS, of_dialect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "txn"
IN_ONE = 50
OF_SESSIONS = ("directory", "tiered", "live")
Answer = tuple[Any, ...]
Engine = Callable[..., Any]
SUMS = {
    "duckdb": ("count(*)", 'sum("offset")', "max(epoch_us(timestamp))", "sum(octet_length(value))", "count(key)"),
    "spark": ("count(*)", "sum(`offset`)", "max(unix_micros(timestamp))", "sum(octet_length(value))", "count(key)"),
}
OF_PARTITION = {"duckdb": f'partition = 0 AND "offset" < {END}', "spark": f"partition = 0 AND `offset` < {END}"}


def draw(count: int, seed: int, folder: Path) -> list[Condition]:
    """Return conditions near the values of the partition's records."""
    rnd = random.Random(seed)
    with open_source("directory", folder) as (path, settings, _), kwire.open(path, **settings) as logs:
        table = whole(logs.topic(TOPIC))
        assert table is not None
        rows = [row for row in rows_of(table) if row["partition"] == 0 and row["offset"] < END]
    return [draw_condition(rnd, rows) for _ in range(count)]


def answer_of(query: str, rows: Iterable[Iterable[Any]]) -> Answer:
    """Return rows with the types of numbers and times that all engines have; sorted unless the query does it."""
    plain = [tuple(map(_plain, row)) for row in rows]
    return tuple(plain if "ORDER BY" in query.rpartition(")")[2] else sorted(plain, key=repr))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, Decimal):
        value = int(value) if value == int(value) else float(value)
    return round(value, 9) if isinstance(value, float) else value


def ask_duckdb(
    kind: str, conditions: list[Condition], folder: Path, written: tuple[str, ...] = QUERIES
) -> list[Answer]:
    """Return the answers over a kind of source: of conditions, then of written queries."""
    import duckdb

    with open_source(kind, folder) as (path, settings, _), kwire.open(path, **settings) as logs:
        connection = duckdb.connect()
        connection.sql("SET timezone = 'UTC'")
        connection.register("topic", logs.topic(TOPIC))
        where, sums = OF_PARTITION["duckdb"], ", ".join(SUMS["duckdb"])
        answers = [
            connection.sql(f"SELECT {sums} FROM topic WHERE {where} AND {to_sql(each, 'duckdb')}").fetchall()[0]
            for each in conditions
        ]
        connection.sql(of_dialect(VIEWS["duckdb"], "duckdb"))
        return answers + [answer_of(each, connection.sql(of_dialect(each, "duckdb")).fetchall()) for each in written]


def ask_session(
    spark: SparkSession, path: str, conditions: list[Condition], written: tuple[str, ...] = QUERIES
) -> list[Answer]:
    """Return the answers of a session, of Spark or Sail, over a directory, tiered storage or a broker."""
    options = {"subscribe": TOPIC, "kafka.isolation.level": "read_committed", "includeHeaders": "true"}
    reader = spark.read.options(**options)
    if path.startswith("kafka://"):
        servers = path.removeprefix("kafka://")
        frame = reader.format("kafka-live").option("kafka.bootstrap.servers", servers).load()
    else:
        frame = reader.format("kafka-log").load(path)
    frame.createOrReplaceTempView("topic")
    answers: list[Answer] = []
    sums = SUMS["spark"]
    for start in range(0, len(conditions), IN_ONE):
        chosen = conditions[start : start + IN_ONE]
        columns = [
            f"{each} FILTER (WHERE {to_sql(condition, 'spark')}) AS c{n}_{i}"
            for n, condition in enumerate(chosen)
            for i, each in enumerate(sums)
        ]
        row = spark.sql(f"SELECT {', '.join(columns)} FROM topic WHERE {OF_PARTITION['spark']}").collect()[0]
        values, width = tuple(row), len(sums)
        answers += [values[i * width : (i + 1) * width] for i in range(len(chosen))]
    spark.sql(of_dialect(VIEWS["spark"], "spark"))
    return answers + [answer_of(each, spark.sql(of_dialect(each, "spark")).collect()) for each in written]


def ask_engine(
    engine: Engine, kind: str, conditions: list[Condition], folder: Path, written: tuple[str, ...] = QUERIES
) -> list[Answer]:
    """Return the answers of Spark or Sail over a kind of source. engine: calls a function with its session."""
    with open_source(kind, folder) as (path, _, _):
        answers: list[Answer] = engine(ask_session, path, conditions, written)
        return answers


def spark_session(folder: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def call(spark: SparkSession, function: Callable[..., Any], *arguments: object) -> Any:
    """Return function(spark, *arguments): a session of this process as an engine."""
    return function(spark, *arguments)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="queries in all, random and written")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--source", choices=SOURCES[1:], action="append", help="all by default")
    parser.add_argument("--spark", action="store_true", help="also ask Spark")
    parser.add_argument("--sail", action="store_true", help="also ask Sail, of ./dev test")
    arguments = parser.parse_args()
    differing = 0
    with tempfile.TemporaryDirectory() as top:

        def folder(name: str) -> Path:
            path = Path(top) / name
            path.mkdir()
            return path

        conditions = draw(max(arguments.count - len(QUERIES), 0), arguments.seed, folder("draw"))
        queries = [*(to_sql(each, "duckdb") for each in conditions), *QUERIES]
        expected = ask_duckdb("directory", conditions, folder("expected"))
        print(f"{len(queries)} queries, {len(QUERIES)} of them written by hand", flush=True)

        def compare(name: str, answers: list[Answer]) -> None:
            nonlocal differing
            wrong = [i for i, (got, right) in enumerate(zip(answers, expected, strict=True)) if got != right]
            differing += len(wrong)
            print(f"{name}: {len(wrong)} of {len(answers)} differ", flush=True)
            for i in wrong[:3]:
                print(f"    {queries[i]}: {str(answers[i])[:500]}, not {str(expected[i])[:500]}", flush=True)

        for kind in arguments.source or SOURCES[1:]:
            compare(f"DuckDB, {kind}", ask_duckdb(kind, conditions, folder(kind)))
        if arguments.spark:
            import kwire.spark  # noqa: F401

            spark = spark_session(Path(top))
            for kind in OF_SESSIONS:
                found = ask_engine(partial(call, spark), kind, conditions, folder(f"spark {kind}"))
                compare(f"Spark, {kind}", found)
            spark.stop()
        if arguments.sail:
            sail = SailEngine()
            for kind in OF_SESSIONS:
                compare(f"Sail, {kind}", ask_engine(sail, kind, conditions, folder(f"sail {kind}")))
            sail.close()
    return differing > 0


if __name__ == "__main__":
    from tests.sql import one_answer

    sys.exit(one_answer.main())  # Sail's process imports functions by the names of their modules
