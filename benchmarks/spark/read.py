"""How fast does Spark read a log through kafka-log, beside the most a Python data source can do, and beside Parquet?

4 M records of 116 B in 16 KB batches, two partitions of three segments, page cache warm, local[2], default settings.
`prebuilt` hands Spark the same rows as Arrow batches made beforehand; `parquet` is the same rows read by Spark's own
vectorised reader. Ratio: rows a second over the peer's in the same run; for CPU, ns a row over the peer's.
KWIRE_BENCH_RECORDS, KWIRE_BENCH_RUNS: a smaller or longer run.
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
# The columns a query needs: what `columns` is good for.
NEEDED = {"count": ("partition",), "sum_length_value": ("value",), "group_by_partition": ("partition", "offset")}


def main() -> None:
    """Print the figures."""
    asked, runs = int(os.environ.get("KWIRE_BENCH_RECORDS", "4000000")), int(os.environ.get("KWIRE_BENCH_RUNS", "4"))
    logs = {
        codec: log_directory(asked, partitions=PARTITIONS, segments=SEGMENTS, codec=codec) for codec in ("none", "zstd")
    }
    tasks = PARTITIONS * SEGMENTS
    records = asked // RECORDS_PER_BATCH // tasks * RECORDS_PER_BATCH * tasks
    spark = start_session()
    meter = Meter(spark)
    spark.dataSource.register(PrebuiltSource)
    parquet = write_parquet(spark, str(logs["none"]), asked)

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
    """Lines of one query: name value unit ratio peer."""
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


def write_parquet(spark: SparkSession, log: str, asked: int) -> str:
    """The same rows as Parquet, made on the first call."""
    path = CACHE / f"parquet-{asked}"
    if not (path / "_SUCCESS").exists():
        shutil.rmtree(path, ignore_errors=True)
        spark.read.format("kafka-log").load(log).write.parquet(str(path))
    return str(path)


if __name__ == "__main__":
    main()
