"""How fast does Spark read a log with kafka-log, compared to the limit of Python data sources and to Parquet?

4 M records of 116 B in 16 KB batches, two partitions of three segments, warm page cache, local[2], default configs.
`prebuilt` passes the same rows to Spark as prebuilt Arrow batches; `parquet` reads them with Spark's vectorized reader.
Ratio: rows per second by the peer's in the same run; for CPU, ns per row by the peer's.
KWIRE_BENCH_RECORDS and KWIRE_BENCH_RUNS change the size of the run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from benchmarks.data import CACHE, RECORDS_PER_BATCH, log_directory
from benchmarks.spark.measure import Cost, Meter, in_turns, start_session
from benchmarks.spark.prebuilt import PrebuiltSource
from pyspark.sql import DataFrame, SparkSession, functions

PARTITIONS, SEGMENTS = 2, 3
SEVEN = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")

QUERIES: dict[str, Callable[[DataFrame], object]] = {
    "noop": lambda frame: frame.write.format("noop").mode("overwrite").save(),
    "count": lambda frame: frame.count(),
    "sum_length_value": lambda frame: frame.agg(functions.sum(functions.length("value"))).collect(),
    "group_by_partition": lambda frame: (
        frame.groupBy("partition").agg(functions.max("offset"), functions.count("*")).collect()
    ),
}
# The columns that a query needs, for the option `columns`.
NEEDED = {"count": ("partition",), "sum_length_value": ("value",), "group_by_partition": ("partition", "offset")}


def main() -> None:
    """Print the figures."""
    requested, runs = (
        int(os.environ.get("KWIRE_BENCH_RECORDS", "4000000")),
        int(os.environ.get("KWIRE_BENCH_RUNS", "4")),
    )
    logs = {
        codec: log_directory(requested, partitions=PARTITIONS, segments=SEGMENTS, codec=codec)
        for codec in ("none", "zstd")
    }
    tasks = PARTITIONS * SEGMENTS
    records = requested // RECORDS_PER_BATCH // tasks * RECORDS_PER_BATCH * tasks
    spark = start_session()
    meter = Meter(spark)
    spark.dataSource.register(PrebuiltSource)
    parquet = write_parquet(spark, str(logs["none"]), requested)

    def kafka_log(columns: tuple[str, ...], codec: str = "none") -> DataFrame:
        return spark.read.format("kafka-log").option("columns", ",".join(columns)).load(str(logs[codec]))

    def prebuilt(columns: tuple[str, ...]) -> DataFrame:
        segment = sorted(logs["none"].glob("*/*.log"))[0]
        options = {"segment": str(segment), "columns": ",".join(columns), "rows": str(records), "tasks": str(tasks)}
        return spark.read.format("prebuilt").options(**options).load()

    for name, query in QUERIES.items():
        frames = {
            "kafka-log": lambda: kafka_log(SEVEN),
            "prebuilt": lambda: prebuilt(SEVEN),
            "parquet": lambda: spark.read.parquet(parquet),
        }
        if name in NEEDED:
            frames["kafka-log.columns"] = lambda name=name: kafka_log(NEEDED[name])
            frames["prebuilt.columns"] = lambda name=name: prebuilt(NEEDED[name])
        else:
            frames["kafka-log.zstd"] = lambda: kafka_log(SEVEN, "zstd")
        cases: dict[str, Callable[[], Cost]] = {
            frame: lambda query=query, make=make: meter.run(lambda: query(make())) for frame, make in frames.items()
        }
        report(f"spark.read.{name}", in_turns(cases, runs), records)
    spark.stop()


def report(name: str, costs: dict[str, Cost], records: int) -> None:
    """Print a query: name value unit ratio peer."""
    for frame, cost in costs.items():
        line = name if frame == "kafka-log" else f"{name}.{frame}"
        ceiling = "prebuilt.columns" if frame.endswith(".columns") else "prebuilt"
        for peer in (ceiling, "parquet"):
            if frame == "kafka-log" or (frame.startswith("kafka-log.") and peer == ceiling):
                print(f"{line} {records / cost.wall / 1e6:.2f} M_rows/s {costs[peer].wall / cost.wall:.2f} {peer}")
        if not frame.startswith("kafka-log"):
            print(f"{line} {records / cost.wall / 1e6:.2f} M_rows/s 1.00 -")
        for part in ("jvm", "python"):
            ours, peers = getattr(cost, part), getattr(costs[ceiling], part)
            ratio = f"{ours / peers:.2f} {ceiling}" if frame.startswith("kafka-log") and peers else "1.00 -"
            print(f"{line}.cpu_{part} {ours / records * 1e9:.0f} ns/row {ratio}", flush=True)


def write_parquet(spark: SparkSession, log: str, requested: int) -> str:
    """Write the same rows as Parquet, on the first call."""
    path = CACHE / f"parquet-{requested}"
    if not (path / "_SUCCESS").exists():
        shutil.rmtree(path, ignore_errors=True)
        spark.read.format("kafka-log").load(log).write.parquet(str(path))
    return str(path)


if __name__ == "__main__":
    main()
