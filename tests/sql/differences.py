"""Random conditions, each pushed down and over rows that were read without it, by engine and kind of source.

    python -m tests.sql.differences --count 20000 --seed 1

prints the number of queries, of rows that matched, and of differences. DataFusion and Ibis are left out where they are
missing.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

import kwire
from kwire.client import Client
from kwire.errors import KwireError
from kwire.log.reading.readable_log import LogSource
from kwire.maintenance.pull.run import PullOptions, pull
from kwire.sql import TopicDataset
from tests import golden
from tests.broker.still import StillBroker
from tests.capture.test_logs import Session
from tests.object_store import aws_process
from tests.sql.predicates import (
    ArrowExpressions,
    Condition,
    Expressions,
    IbisExpressions,
    draw_condition,
    to_expression,
    to_sql,
)

ORDER = [("partition", "ascending"), ("offset", "ascending")]
COLUMNS = (["partition", "offset"], ["partition", "offset", "timestamp", "key"], ["partition", "offset", "value"])
SOURCES = ("directory", "live", "copy", "capture", "store", "tiered", "tiered store")
ENGINES = ("duckdb", "polars", "arrow", *filter(importlib.util.find_spec, ("datafusion", "ibis")))
SMALL = ("txn", "trimmed", "logappend", "compacted-txn")

Query = Callable[[Condition, list[str]], pa.Table]


@contextlib.contextmanager
def open_source(kind: str, folder: Path) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    """Yield the path and settings of a source with real Kafka's records, and the topics to query."""
    topics = ("orders", "compacted", *SMALL)
    data = golden.extract("modern", folder) / "data"
    if kind == "directory":
        yield str(data), {}, topics
    elif kind == "live":
        with served(data, folder) as broker:
            yield f"kafka://{broker.bootstrap_servers}", {}, topics
    elif kind == "copy":
        with served(data, folder) as broker, Client(broker.bootstrap_servers) as client:
            assert pull(client, str(folder / "copy"), PullOptions(topics=topics)).is_complete
        yield str(folder / "copy"), {}, topics
    elif kind == "capture":
        yield capture(data, folder, topics), {}, topics
    elif kind == "tiered":
        yield f"tiered+{golden.extract_tiered(folder) / 'plain'}", {}, ("txn", "trimmed")
    else:
        with aws_process("bucket") as endpoint:
            options = {"endpoint_url": endpoint, "key": "hunter2-key", "secret": "hunter2-secret"}
            if kind == "store":
                source, topics, url = data, SMALL, "s3://bucket/copy"
            else:
                source, topics = golden.extract_tiered(folder) / "plain", ("txn", "trimmed")
                url = "tiered+s3://bucket/copy"
            upload(source, "bucket/copy", options, None if kind == "tiered store" else topics)
            yield url, options, topics


def served(data: Path, folder: Path) -> StillBroker:
    """Return a broker with a copy of a log directory. A usual one would delete such old records after minutes."""
    return StillBroker(shutil.copytree(data, folder / "served"), port=0)


def capture(data: Path, folder: Path, topics: Iterable[str]) -> str:
    """Write a packet capture in which the segments of topics are fetched; return its path."""
    session = Session(folder / "fetched.pcap")
    for topic in topics:
        for path in sorted(data.glob(f"{topic}-[0-9]*/*.log")):
            session.fetched(path.read_bytes(), topic, int(path.parent.name.rpartition("-")[2]))
    return session.saved()


def upload(folder: Path, target: str, options: dict[str, Any], topics: tuple[str, ...] | None) -> None:
    """Upload the files of a folder; topics: only these partition directories, and files at its top."""
    import fsspec

    store = fsspec.filesystem("s3", **options)
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and (
            topics is None or len(inside.parts) == 1 or inside.parts[0].rpartition("-")[0] in topics
        ):
            store.pipe_file(f"{target}/{inside}", path.read_bytes())


def engine_query(engine: str, data: TopicDataset | pa.Table) -> Query:
    """Return how an engine queries a dataset, or a table in memory that it has as its own."""
    is_own = isinstance(data, pa.Table)
    if engine == "duckdb":
        import duckdb

        connection = duckdb.connect()
        connection.sql("SET timezone = 'UTC'")
        connection.register("given", data)
        if is_own:
            connection.sql("CREATE TABLE own AS FROM given")
        name = "own" if is_own else "given"

        def of_duckdb(condition: Condition, columns: list[str]) -> pa.Table:
            chosen = ", ".join(f'"{column}"' for column in columns)
            return connection.sql(f"SELECT {chosen} FROM {name} WHERE {to_sql(condition, engine)}").to_arrow_table()

        return of_duckdb
    if engine == "polars":
        import polars as pl

        frame, of_polars = pl.from_arrow(data).lazy() if is_own else pl.scan_pyarrow_dataset(data), Expressions()
        return lambda condition, columns: (
            frame.filter(to_expression(condition, of_polars)).select(columns).collect().to_arrow()
        )
    if engine == "arrow":
        of_arrow, dataset = ArrowExpressions(), ds.dataset(data) if is_own else data
        return lambda condition, columns: dataset.to_table(columns=columns, filter=to_expression(condition, of_arrow))
    if engine == "ibis":
        import ibis

        backend, memtable, of_ibis = ibis.duckdb.connect(), ibis.memtable(data), IbisExpressions()
        backend.raw_sql("SET timezone = 'UTC'")
        return lambda condition, columns: backend.to_pyarrow(
            memtable.filter(to_expression(condition, of_ibis)).select(columns)
        )
    import datafusion

    context = datafusion.SessionContext()
    if is_own:
        context.from_arrow(data, name="given")
    else:
        context.register_dataset("given", data)

    def of_datafusion(condition: Condition, columns: list[str]) -> pa.Table:
        chosen = ", ".join(f'"{column}"' for column in columns)
        return context.sql(f"SELECT {chosen} FROM given WHERE {to_sql(condition, engine)}").to_arrow_table()

    return of_datafusion


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Return what conditions are drawn from."""
    us = table.column("timestamp").cast(pa.int64())
    columns = [
        *(table.column(name) for name in ("partition", "offset")),
        us,
        table.column("key"),
        table.column("topic"),
    ]
    names = ("partition", "offset", "us", "key", "topic")
    return [dict(zip(names, row, strict=True)) for row in zip(*(each.to_pylist() for each in columns), strict=True)]


def whole(dataset: TopicDataset) -> pa.Table | None:
    """Return all rows of a dataset, counted by the reader of its logs; None if its log is damaged."""
    try:
        table = dataset.to_table()
    except KwireError:
        return None
    assert table.num_rows == sum(1 for each in dataset.ranges for _ in each.log.read(isolation="read_committed"))
    return table


@dataclass(slots=True)
class Compared:
    """Counts of queries and of the rows that they returned; the queries that differed, and those that failed."""

    queries: int = 0
    rows: int = 0
    differing: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)


def compare(
    logs: LogSource[Any], topics: Iterable[str], engines: tuple[str, ...], count: int, rnd: random.Random
) -> dict[str, Compared]:
    """Compare `count` random queries of topics, by engine."""
    pairs = []
    for topic in topics:
        dataset = logs.topic(topic)
        table = whole(dataset)
        if table is not None and table.num_rows:
            both = {engine: (engine_query(engine, dataset), engine_query(engine, table)) for engine in engines}
            pairs.append((rows_of(table), both))
    found = {engine: Compared() for engine in engines}
    for n in range(count):
        rows, both = rnd.choice(pairs)
        engine, condition, columns = engines[n % len(engines)], draw_condition(rnd, rows), rnd.choice(COLUMNS)
        result = found[engine]
        result.queries += 1
        try:
            pushed, own = (query(condition, columns).sort_by(ORDER) for query in both[engine])
        except Exception as error:  # of an engine: it has no rows that could be wrong
            result.failing.append(f"{rows[0]['topic']}: {to_sql(condition, 'duckdb')}: {str(error)[:300]}")
            continue
        result.rows += own.num_rows
        if not pushed.cast(own.schema).equals(own):
            result.differing.append(f"{rows[0]['topic']}: {to_sql(condition, 'duckdb')}")
    return found


def compare_source(kind: str, engines: tuple[str, ...], count: int, seed: int, folder: Path) -> dict[str, Compared]:
    """Compare `count` random queries of a kind of source, by engine."""
    with open_source(kind, folder) as (path, settings, topics), kwire.open(path, **settings) as logs:
        return compare(logs, topics, engines, count, random.Random(f"{kind} {seed}"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="queries in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--source", choices=SOURCES, action="append")
    arguments = parser.parse_args()
    sources = arguments.source or SOURCES
    began, differences = time.process_time(), 0
    for kind in sources:
        with tempfile.TemporaryDirectory() as folder:
            results = compare_source(kind, ENGINES, -(-arguments.count // len(sources)), arguments.seed, Path(folder))
        for engine, result in results.items():
            differences += len(result.differing) + len(result.failing)
            print(f"{kind:13} {engine:11} {result.queries:6} queries {result.rows:10} rows", end=" ")
            print(f"{len(result.differing)} differences, {len(result.failing)} errors", end="")
            print("", *result.differing[:5], *result.failing[:5], sep="\n    ", flush=True)
    print(f"{differences} differences and errors, {time.process_time() - began:.0f} s of CPU time")
    return differences > 0


if __name__ == "__main__":
    sys.exit(main())
