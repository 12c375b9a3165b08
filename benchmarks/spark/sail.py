"""How fast does Sail read a log with kafka-log, compared to Spark with the same program, and to Parquet on Sail?

4 M records of 116 B in 16 KB batches, two partitions of three segments, warm page cache, default configs. Spark runs on
local[2]; Sail is a server in the process of its client, as in its quick start. Both read all seven columns unless the
name ends with `columns`, where option `columns` names what the query needs. `varied` are records of different lengths
with headers.
Ratio: rows per second by the peer's in the same run; for CPU of all processes, ns per row by the peer's.
KWIRE_BENCH_RECORDS and KWIRE_BENCH_RUNS change the size of the run.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

from benchmarks.data import RECORDS_PER_BATCH, log_directory, varied_log_directory
from benchmarks.spark.measure import Cost, Meter, cpu_s, in_turns, start_session
from benchmarks.spark.read import NEEDED, PARTITIONS, QUERIES, SEGMENTS, write_parquet
from pyspark.sql import SparkSession
from tools.sail import SailEngine


def run(session: SparkSession, query: str, source: str, path: str, columns: tuple[str, ...]) -> float:
    """Run a query on either engine; return its seconds. columns: empty for all."""
    started = time.perf_counter()
    reader = session.read.format(source)
    if columns:
        reader = reader.option("columns", ",".join(columns))
    QUERIES[query](reader.load(path))
    return time.perf_counter() - started


def main() -> None:
    """Print the figures."""
    requested = int(os.environ.get("KWIRE_BENCH_RECORDS", "4000000"))
    runs = int(os.environ.get("KWIRE_BENCH_RUNS", "4"))
    log = str(log_directory(requested, partitions=PARTITIONS, segments=SEGMENTS))
    tasks = PARTITIONS * SEGMENTS
    records = requested // RECORDS_PER_BATCH // tasks * RECORDS_PER_BATCH * tasks
    spark, sail = start_session(), SailEngine()
    meter = Meter(spark)
    parquet = write_parquet(spark, log, requested)

    def on_sail(query: str, source: str, path: str, columns: tuple[str, ...] = ()) -> Cost:
        before = cpu_s(sail.pid)
        wall = sail(run, query, source, path, columns)
        return Cost(wall, 0.0, cpu_s(sail.pid) - before)

    def on_spark(query: str, columns: tuple[str, ...] = (), path: str = log) -> Cost:
        cost = meter.run(lambda: run(spark, query, "kafka-log", path, columns))
        return replace(cost, jvm=0.0, python=cost.jvm + cost.python)

    varied = str(varied_log_directory(requested, partitions=PARTITIONS, segments=SEGMENTS))
    varied_records = spark.read.format("kafka-log").load(varied).count()

    for query in QUERIES:
        cases = {
            "sail": lambda query=query: on_sail(query, "kafka-log", log),
            "spark": lambda query=query: on_spark(query),
            "parquet": lambda query=query: on_sail(query, "parquet", parquet),
        }
        if query in NEEDED:
            cases["sail.columns"] = lambda query=query: on_sail(query, "kafka-log", log, NEEDED[query])
            cases["spark.columns"] = lambda query=query: on_spark(query, NEEDED[query])
        if query == "noop":
            cases["sail.varied"] = lambda: on_sail("noop", "kafka-log", varied)
            cases["spark.varied"] = lambda: on_spark("noop", path=varied)
        costs = in_turns(cases, runs)
        for ours in (name for name in costs if name.startswith("sail")):
            name, cost = ours.replace("sail", f"spark.sail.{query}", 1), costs[ours]
            is_varied = ours == "sail.varied"
            rows = varied_records if is_varied else records
            for peer in (ours.replace("sail", "spark", 1), *(() if is_varied else ("parquet",))):
                rate, cpu = costs[peer].wall / cost.wall, cost.python / costs[peer].python
                print(f"{name} {rows / cost.wall / 1e6:.2f} M_rows/s {rate:.2f} {peer}")
                print(f"{name}.cpu {cost.python / rows * 1e9:.0f} ns/row {cpu:.2f} {peer}", flush=True)
    sail.close()
    spark.stop()


if __name__ == "__main__":
    main()
