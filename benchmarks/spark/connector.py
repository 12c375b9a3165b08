"""How fast does Spark read a topic of a real broker's log directory, beside Spark's own Kafka connector on that broker?

Real Kafka gets 4 M records of 116 B from its own Java producer (4 partitions, 16 KB batches). The connector reads them
from the running broker, as it comes and with consumer settings tuned for it; kafka-log reads the same bytes from the
broker's log directory. noop, local[2], page cache warm. The broker's own share of the connector's work is not counted.
Needs a JDK and mvn. KWIRE_BENCH_RECORDS, KWIRE_BENCH_RUNS: a smaller or longer run.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from benchmarks.spark.measure import Cost, Meter, best, start_session
from pyspark.sql import DataFrame
from tools import kafka

TUNED = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": "16777216",
    "kafka.receive.buffer.bytes": "4194304",
}


def main() -> None:
    """Print the figures, or say what is missing."""
    records, runs = int(os.environ.get("KWIRE_BENCH_RECORDS", "4000000")), int(os.environ.get("KWIRE_BENCH_RUNS", "3"))
    try:
        classes = kafka.compile_java(kafka.ROOT / "tools" / "java" / "FillTopic.java")
        connector = ",".join(map(str, kafka.spark_connector_jars().glob("*.jar")))
    except kafka.Unavailable as missing:
        print(f"# left out: {missing}", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder, kafka.KafkaBroker(Path(folder), **{"num.partitions": 4}) as broker:
        kafka.java("FillTopic", broker.bootstrap_servers, "bench", "4", str(records), "none", classes=classes)
        spark = start_session(**{"spark.jars": connector})
        meter = Meter(spark)

        def live(**options: str) -> DataFrame:
            source = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
            return source.option("subscribe", "bench").options(**options).load()

        frames = {
            "kafka-log": lambda: spark.read.format("kafka-log").option("subscribe", "bench").load(str(broker.log_dir)),
            "connector": live,
            "connector-tuned": lambda: live(**TUNED),
        }
        found = {name: frame().count() for name, frame in frames.items()}
        assert set(found.values()) == {records}, found
        costs: dict[str, list[Cost]] = {name: [] for name in frames}
        for run in range(runs + 1):
            for name, frame in frames.items():
                cost = meter.run(lambda frame=frame: frame().write.format("noop").mode("overwrite").save())
                if run:
                    costs[name].append(cost)
        least = {name: best(each) for name, each in costs.items()}
        for name, cost in least.items():
            print(f"spark.read.broker_log.{name} {records / cost.wall / 1e6:.2f} M_rows/s 1.00 -")
            for part in ("jvm", "python"):
                print(
                    f"spark.read.broker_log.{name}.cpu_{part} {getattr(cost, part) / records * 1e9:.0f} ns/row 1.00 -"
                )
        for peer in ("connector", "connector-tuned"):
            ratio = least[peer].wall / least["kafka-log"].wall
            print(f"spark.read.broker_log.speedup {ratio:.2f} x {ratio:.2f} {peer}", flush=True)
        spark.stop()
