"""The same random queries over one partition of real Kafka, from every kind of source and engine.

    python -m tests.sql.one_answer --count 500 --seed 1 [--spark] [--sail]

Each query counts the records that a condition matches, and sums what tells them apart. Answers of DuckDB over a
directory are compared with those over each other kind of source, and with Spark's and Sail's over the same directory,
tiered storage and broker, which get 50 conditions in one statement: they push none of them down.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.sail import SailEngine

import kwire
from tests.sql.differences import SOURCES, open_source, rows_of, whole
from tests.sql.predicates import Condition, draw_condition, to_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC, END = "txn", 600  # tiered storage has no active segment
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


def ask_duckdb(kind: str, conditions: list[Condition], folder: Path) -> list[Answer]:
    """Return the answers over a kind of source."""
    import duckdb

    with open_source(kind, folder) as (path, settings, _), kwire.open(path, **settings) as logs:
        connection = duckdb.connect()
        connection.sql("SET timezone = 'UTC'")
        connection.register("topic", logs.topic(TOPIC))
        where, sums = OF_PARTITION["duckdb"], ", ".join(SUMS["duckdb"])
        return [
            connection.sql(f"SELECT {sums} FROM topic WHERE {where} AND {to_sql(each, 'duckdb')}").fetchall()[0]
            for each in conditions
        ]


def ask_session(spark: SparkSession, path: str, conditions: list[Condition]) -> list[Answer]:
    """Return the answers of a session, of Spark or Sail, over a directory, tiered storage or a broker."""
    reader = spark.read.options(**{"subscribe": TOPIC, "kafka.isolation.level": "read_committed"})
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
    return answers


def ask_engine(engine: Engine, kind: str, conditions: list[Condition], folder: Path) -> list[Answer]:
    """Return the answers of Spark or Sail over a kind of source. engine: calls a function with its session."""
    with open_source(kind, folder) as (path, _, _):
        answers: list[Answer] = engine(ask_session, path, conditions)
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
    parser.add_argument("--count", type=int, default=500)
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

        conditions = draw(arguments.count, arguments.seed, folder("draw"))
        expected = ask_duckdb("directory", conditions, folder("expected"))
        print(f"{len(conditions)} queries, {sum(each[0] > 0 for each in expected)} of them match records", flush=True)

        def compare(name: str, answers: list[Answer]) -> None:
            nonlocal differing
            wrong = [i for i, (got, right) in enumerate(zip(answers, expected, strict=True)) if got != right]
            differing += len(wrong)
            print(f"{name}: {len(wrong)} of {len(answers)} differ", flush=True)
            for i in wrong[:3]:
                print(f"    {to_sql(conditions[i], 'duckdb')}: {answers[i]}, not {expected[i]}", flush=True)

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
    sys.exit(main())
