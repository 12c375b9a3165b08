"""How fast does Spark write a DataFrame to topics with kafka-live, compared to its Kafka connector?

2 M rows of 116 B (key, value), cached in memory in 4 partitions, are written to a topic of 4 partitions of real Kafka
and of kwire's broker; local[2], the broker on the same cores. kafka-live by default (idempotent, acks=all) and in
transactions; the connector by default (also idempotent, acks=all) and with linger.ms 5 and batch.size 256 KB. `varied`
are rows of different lengths and with headers, on real Kafka. Ratio: rows per second by the peer's. Needs a JDK and
mvn. KWIRE_BENCH_RECORDS and KWIRE_BENCH_RUNS change the size of the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from benchmarks.data import RECORDS_PER_BATCH, log_directory, varied_log_directory
from benchmarks.spark.clusters import PARTITIONS, TUNED_WRITING, Cluster, clusters, connector_jars
from benchmarks.spark.measure import Cost, Meter, in_turns, show, start_session
from pyspark.sql import DataFrame

TOPIC = "written"
SINKS: dict[str, tuple[str, dict[str, str]]] = {
    "kafka-live": ("kafka-live", {}),
    "kafka-live-transactional": ("kafka-live", {"transactionalIdPrefix": "bench"}),
    "connector": ("kafka", {}),
    "connector-tuned": ("kafka", TUNED_WRITING),
}


def main() -> None:
    """Print the figures, or what is missing."""
    requested, runs = (
        int(os.environ.get("KWIRE_BENCH_RECORDS", "2000000")),
        int(os.environ.get("KWIRE_BENCH_RUNS", "3")),
    )
    jars = connector_jars()
    if jars is None:
        return
    records = requested // RECORDS_PER_BATCH // 2 * RECORDS_PER_BATCH * 2
    log = log_directory(requested, partitions=1, segments=2)
    with clusters() as both:
        spark = start_session(**{"spark.jars": jars})
        meter = Meter(spark)
        rows = spark.read.format("kafka-log").load(str(log)).select("key", "value").repartition(PARTITIONS).cache()
        assert rows.count() == records
        varied = (
            spark.read.format("kafka-log").option("includeHeaders", True).load(str(varied_log_directory(requested)))
        )
        varied = varied.select("key", "value", "headers").repartition(PARTITIONS).cache()
        counts = {"": records, "varied.": varied.count()}

        cases: dict[str, Callable[[], Cost]] = {}
        for cluster in both:
            for name, (sink, options) in SINKS.items():
                cases[f"{cluster.name}.{name}"] = lambda cluster=cluster, sink=sink, options=options: to_topic(
                    cluster, meter, rows, records, sink, options
                )
        for name, (sink, options) in SINKS.items():
            cases[f"kafka.varied.{name}"] = lambda sink=sink, options=options: to_topic(
                both[0], meter, varied, counts["varied."], sink, options
            )
        least = in_turns(cases, runs)
        for name, cost in least.items():
            place = name.rpartition(".")[0]
            peers = [f"{place}.connector", f"{place}.connector-tuned"] if "kafka-live" in name else []
            written = counts["varied." if place.endswith("varied") else ""]
            show(f"spark.live_write.{name}", cost, written, {peer: least[peer] for peer in peers})
        spark.stop()


def to_topic(cluster: Cluster, meter: Meter, rows: DataFrame, records: int, sink: str, options: dict[str, str]) -> Cost:
    """Write to a new topic."""
    cluster.create(TOPIC)
    cost = meter.run(lambda: cluster.write(rows, sink, TOPIC, **options), cluster.served)
    assert sum(cluster.end_offsets(TOPIC).values()) >= records
    cluster.delete(TOPIC)
    return cost


if __name__ == "__main__":
    main()
