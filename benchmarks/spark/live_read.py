"""How fast does Spark read a topic with kafka-live, compared to its Kafka connector on the same broker?

Kafka's Java producer writes 4 M records of 116 B (4 partitions, 16 KB batches) to real Kafka and to kwire's broker.
They are read with kafka-live, and with the connector in its default configuration and tuned. `varied` are records of
different lengths and with headers, on real Kafka. kafka-log reads Kafka's log directory; `prebuilt` passes prebuilt
Arrow batches to Spark, the limit of Python sources; `parquet` is Spark's reader on the same rows. noop sink, 7 columns
(`columns`: value and timestamp), warm page cache, local[2] with the broker on the same two cores. Ratio: rows per
second by the peer's. `cores`: by those of all processes on one core. `slots`: by those of local[1] on two cores, where
one task may use both: its Python process and the broker work beside the JVM. Needs Linux, a JDK and mvn.
KWIRE_BENCH_RECORDS and KWIRE_BENCH_RUNS change the size of the run.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.broker.serving import Served
from benchmarks.spark.clusters import PARTITIONS, TUNED_READING, Cluster, clusters, connector_jars
from benchmarks.spark.measure import Cost, Meter, in_turns, show, start_session
from benchmarks.spark.prebuilt import PrebuiltSource
from pyspark.sql import DataFrame, SparkSession

TOPIC, VARIED = "bench", "varied"
SEVEN = "key,value,topic,partition,offset,timestamp,timestampType"
TWO = "value,timestamp"
PEERS = {
    "kafka-live": ("connector", "connector-tuned", "kafka-log", "prebuilt", "parquet"),
    "varied.kafka-live": ("varied.connector", "varied.connector-tuned"),
}
SCALED = ("kafka-live", "connector-tuned", "varied.kafka-live", "varied.connector-tuned")


def main() -> None:
    """Print the figures, or what is missing."""
    records, runs = int(os.environ.get("KWIRE_BENCH_RECORDS", "4000000")), int(os.environ.get("KWIRE_BENCH_RUNS", "3"))
    jars = connector_jars()
    if jars is None:
        return
    with clusters() as both, tempfile.TemporaryDirectory() as folder:
        for cluster in both:
            cluster.fill(TOPIC, records)
        both[0].fill(VARIED, records, VARIED)
        parquet = str(Path(folder) / "parquet")
        two = measure("local[2]", jars, both, parquet, records, runs)
        for name, cost in two.items():
            place, _, what = name.partition(".")
            peers = [f"{place}.{peer}" for peer in PEERS.get(what, ()) if f"{place}.{peer}" in two]
            show(f"spark.live_read.{name}", cost, records, {peer: two[peer] for peer in peers})
        for what, master, cores in (("cores", "local[2]", 1), ("slots", "local[1]", 2)):
            one = measure(master, jars, both, parquet, records, runs, only=SCALED, cores=cores)
            for name, cost in one.items():
                gain = cost.wall / two[name].wall
                print(f"spark.live_read.{name}.{what} {gain:.2f} x {gain:.2f} one", flush=True)


def measure(
    master: str,
    jars: str,
    both: Sequence[Cluster],
    parquet: str,
    records: int,
    runs: int,
    only: tuple[str, ...] = (),
    cores: int = 2,
) -> dict[str, Cost]:
    """Measure the cost of each way to read, in a new session.

    only: the ways to measure, all by default. cores: on which all processes run.
    """
    spark = start_session(master, **{"spark.jars": jars})
    meter = Meter(spark)
    meter.pin([each.served for each in both], cores)
    spark.dataSource.register(PrebuiltSource)
    cases: dict[str, Callable[[], Cost]] = {}
    for cluster in both:
        for name, make in frames(spark, cluster, parquet, records).items():
            if not only or name in only:
                frame = make()
                if not only:
                    assert frame.count() == records, name
                cases[f"{cluster.name}.{name}"] = lambda frame=frame, cluster=cluster: read(
                    meter, frame, cluster.served
                )
    found = in_turns(cases, runs)
    spark.stop()
    return found


def read(meter: Meter, frame: DataFrame, broker: Served) -> Cost:
    """Read all rows."""
    return meter.run(lambda: frame.write.format("noop").mode("overwrite").save(), broker)


def frames(spark: SparkSession, cluster: Cluster, parquet: str, records: int) -> dict[str, Callable[[], DataFrame]]:
    """Return a DataFrame for each way to read a cluster's topic."""
    found = {
        "kafka-live": lambda: cluster.read(spark, "kafka-live", TOPIC),
        "kafka-live.columns": lambda: cluster.read(spark, "kafka-live", TOPIC, columns=TWO),
        "connector": lambda: cluster.read(spark, "kafka", TOPIC),
        "connector-tuned": lambda: cluster.read(spark, "kafka", TOPIC, **TUNED_READING),
    }
    if cluster.name != "kafka":
        return found
    found |= {
        "varied.kafka-live": lambda: cluster.read(spark, "kafka-live", VARIED),
        "varied.connector": lambda: cluster.read(spark, "kafka", VARIED),
        "varied.connector-tuned": lambda: cluster.read(spark, "kafka", VARIED, **TUNED_READING),
    }

    def log() -> DataFrame:
        return spark.read.format("kafka-log").option("subscribe", TOPIC).load(cluster.log_dir)

    def prebuilt() -> DataFrame:
        segment = next(Path(cluster.log_dir).glob(f"{TOPIC}-*/*.log"))
        options = {"segment": str(segment), "columns": SEVEN, "rows": str(records), "tasks": str(PARTITIONS)}
        return spark.read.format("prebuilt").options(**options).load()

    def as_parquet() -> DataFrame:
        if not Path(parquet).exists():
            log().write.parquet(parquet)
        return spark.read.parquet(parquet)

    return {**found, "kafka-log": log, "prebuilt": prebuilt, "parquet": as_parquet}


if __name__ == "__main__":
    main()
