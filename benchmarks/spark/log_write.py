"""How fast does Spark write a DataFrame as a log directory with kafka-log, compared to other sinks?

4 M rows of 116 B (key, value), cached in memory in 4 partitions, become a directory of 4 partitions; local[2]. Peers:
kafka-live, which writes them to kwire's broker; a Python sink that discards its rows, the lower bound of any; Spark's
Parquet. Ratio: rows per second by the peer's. KWIRE_BENCH_RECORDS and KWIRE_BENCH_RUNS change the size of the run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from itertools import count

from benchmarks.broker.serving import kwire_broker
from benchmarks.data import RECORDS_PER_BATCH, log_directory
from benchmarks.spark.clusters import PARTITIONS, Cluster
from benchmarks.spark.discard import DiscardingSink
from benchmarks.spark.measure import Cost, Meter, in_turns, show, start_session

TOPIC = "written"


def main() -> None:
    """Print the figures."""
    requested = int(os.environ.get("KWIRE_BENCH_RECORDS", "4000000"))
    runs = int(os.environ.get("KWIRE_BENCH_RUNS", "3"))
    log = log_directory(requested, partitions=1, segments=2)
    records = requested // RECORDS_PER_BATCH // 2 * RECORDS_PER_BATCH * 2
    with kwire_broker() as served, tempfile.TemporaryDirectory() as folder:
        spark = start_session()
        spark.dataSource.register(DiscardingSink)
        meter, cluster = Meter(spark), Cluster("kwire", served)
        rows = spark.read.format("kafka-log").load(str(log)).select("key", "value").repartition(PARTITIONS).cache()
        assert rows.count() == records
        names = count()

        def directory(sink: str, **options: str) -> Cost:
            path = f"{folder}/{next(names)}"
            cost = meter.run(lambda: rows.write.format(sink).options(**options).mode("append").save(path))
            shutil.rmtree(path, ignore_errors=True)
            return cost

        def topic() -> Cost:
            cluster.create(TOPIC)
            cost = meter.run(lambda: cluster.write(rows, "kafka-live", TOPIC), served)
            cluster.delete(TOPIC)
            return cost

        cost = in_turns(
            {
                "kafka-log": lambda: directory("kafka-log", topic=TOPIC, partitions=str(PARTITIONS)),
                "kafka-live": topic,
                "discard": lambda: directory("discard"),
                "parquet": lambda: directory("parquet"),
            },
            runs,
        )
        ours = cost.pop("kafka-log")
        show("spark.log_write.kafka-log", ours, records, cost)
        for name, peer in cost.items():
            show(f"spark.log_write.{name}", peer, records, {})
        spark.stop()


if __name__ == "__main__":
    main()
