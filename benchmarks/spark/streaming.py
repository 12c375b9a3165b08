"""How fast are streaming queries with kafka-live, compared to Spark's Kafka connector?

Throughput: a query with Trigger.AvailableNow copies 2 M records of 116 B from a topic of real Kafka (4 partitions) to
the noop sink and to another topic, with a new checkpoint each time. Figures: rows per second of the whole query, the
time of its start alone, and rows per second within its micro-batches (triggerExecution).

Latency: a producer writes 1,000 records per second, five every 5 ms; a query without trigger interval copies them to
another topic. The latency is the time from a record's timestamp to the log append time of its copy, without the first
10 s. Both formats run twice, in turns, since a broker that has just started is slower; the figures are those of the run
with the lower median.

local[2], the broker on the same two cores. Ratio: by the connector's figure. Needs a JDK and mvn.
KWIRE_BENCH_RECORDS, KWIRE_BENCH_RUNS and KWIRE_BENCH_SECONDS change the size of the run.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.spark.clusters import PARTITIONS, Cluster, clusters, connector_jars
from benchmarks.spark.measure import Cost, Meter, in_turns, show, start_session
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from kwire.client import Client, Producer
from kwire.records import BatchBuilder, read_batches

FORMATS = {"kafka-live": "kafka-live", "connector": "kafka"}
WARM_UP_S = 10
LATENCY_RUNS = 2
TICK_S, RECORDS_A_TICK = 0.005, 5
VALUE = b"v" * 100


def main() -> None:
    """Print the figures, or what is missing."""
    records, runs = int(os.environ.get("KWIRE_BENCH_RECORDS", "2000000")), int(os.environ.get("KWIRE_BENCH_RUNS", "3"))
    seconds = int(os.environ.get("KWIRE_BENCH_SECONDS", "20"))
    jars = connector_jars()
    if jars is None:
        return
    with clusters() as (cluster, ours), tempfile.TemporaryDirectory() as folder:
        spark = start_session(**{"spark.jars": jars})
        throughput(spark, cluster, folder, records, runs)
        for each in (cluster, ours):
            compare_latencies(spark, each, folder, seconds)
        spark.stop()


def compare_latencies(spark: SparkSession, cluster: Cluster, folder: str, seconds: int) -> None:
    """Print the latencies of both formats."""
    found: dict[str, list[float]] = {}
    for turn in range(LATENCY_RUNS):
        for name in FORMATS:
            sorted_ms = latencies(spark, cluster, name, turn, folder, seconds)
            found[name] = min(found.get(name, sorted_ms), sorted_ms, key=lambda one: one[len(one) // 2])
    for name, sorted_ms in found.items():
        for percent in (50, 99):
            value, peers = (one[len(one) * percent // 100] for one in (sorted_ms, found["connector"]))
            line = f"spark.streaming.{cluster.name}.{name}.latency_p{percent} {value:.0f} ms"
            print(f"{line} {value / peers:.2f} connector", flush=True)


def source(spark: SparkSession, cluster: Cluster, name: str, topic: str, start: str) -> DataStreamWriter:
    """Return a streaming query of key and value of a topic."""
    options = {"kafka.bootstrap.servers": cluster.served.address, "subscribe": topic, "startingOffsets": start}
    return spark.readStream.format(FORMATS[name]).options(**options).load().select("key", "value").writeStream


def sink(query: DataStreamWriter, cluster: Cluster, name: str, topic: str) -> DataStreamWriter:
    """Write a query to another topic."""
    return query.format(FORMATS[name]).options(**{"kafka.bootstrap.servers": cluster.served.address, "topic": topic})


def throughput(spark: SparkSession, cluster: Cluster, folder: str, records: int, runs: int) -> None:
    """Print the throughput of queries with Trigger.AvailableNow."""
    cluster.fill("from", records)
    meter, made = Meter(spark), iter(range(10_000))
    in_batches: dict[str, list[float]] = {}

    def run(name: str, *, to_topic: bool) -> Cost:
        topic = f"to-{next(made)}"
        query = source(spark, cluster, name, "from", "earliest")
        if to_topic:
            cluster.create(topic)
            query = sink(query, cluster, name, topic)
        else:
            query = query.format("noop")
        query = query.option("checkpointLocation", str(Path(folder) / topic)).trigger(availableNow=True)
        running: list[StreamingQuery] = []

        def start() -> None:
            running.append(query.start())
            running[0].awaitTermination()

        cost = meter.run(start, cluster.served)
        progress = running[0].recentProgress
        assert sum(each["numInputRows"] for each in progress) == records
        took_ms = sum(each["durationMs"]["triggerExecution"] for each in progress)
        in_batches.setdefault(f"{'topic' if to_topic else 'noop'}.{name}", []).append(took_ms / 1000)
        if to_topic:
            assert sum(cluster.end_offsets(topic).values()) >= records
            cluster.delete(topic)
        return cost

    cases: dict[str, Callable[[], Cost]] = {
        f"{where}.{name}": lambda name=name, where=where: run(name, to_topic=where == "topic")
        for where in ("noop", "topic")
        for name in FORMATS
    }
    least = in_turns(cases, runs)
    for case, cost in least.items():
        where, _, name = case.partition(".")
        peers = {"connector": least[f"{where}.connector"]} if name != "connector" else {}
        show(f"spark.streaming.to_{where}.{name}", cost, records, peers)
        seconds, theirs = (min(in_batches[f"{where}.{each}"]) for each in (name, "connector"))
        line = f"spark.streaming.to_{where}.{name}"
        print(f"{line}.micro_batch {records / seconds / 1e6:.3f} M_rows/s {theirs / seconds:.2f} connector")
        print(f"{line}.start {cost.wall - seconds:.2f} s 1.00 -", flush=True)


def latencies(spark: SparkSession, cluster: Cluster, name: str, turn: int, folder: str, seconds: int) -> list[float]:
    """Return the latencies of records copied after the first seconds, in ms, in ascending order."""
    given, copies = f"given-{name}-{turn}", f"copies-{name}-{turn}"
    cluster.create(given)
    cluster.create(copies, message_timestamp_type="LogAppendTime")
    query = sink(source(spark, cluster, name, given, "earliest"), cluster, name, copies)
    place = str(Path(folder) / f"{cluster.name}-{copies}")
    stop = threading.Event()
    producer = threading.Thread(target=produce, args=(cluster.served.address, given, stop), daemon=True)
    running = query.option("checkpointLocation", place).start()
    try:
        producer.start()
        began_ms = time.time() * 1000
        time.sleep(WARM_UP_S + seconds)
        stop.set()
        producer.join()
        running.processAllAvailable()
    finally:
        running.stop()
    found = []
    with Client(cluster.served.address) as client:
        for partition, end in cluster.end_offsets(copies).items():
            for fetched in client.read(copies, partition, 0, end):
                for batch in read_batches(fetched.records):
                    for record in batch.records():
                        sent_ms = int(record.key) / 1e6
                        if sent_ms > began_ms + WARM_UP_S * 1000:
                            found.append(record.timestamp - sent_ms)
    rate = len(found) / seconds
    if rate < 0.95 * RECORDS_A_TICK / TICK_S:
        print(f"# {cluster.name}.{name}: only {rate:.0f} records a second could be written", file=sys.stderr)
    return sorted(found)


def produce(address: str, topic: str, stop: threading.Event) -> None:
    """Write records at a constant rate; the key is the time in ns."""
    with Client(address) as client, Producer(client) as producer:
        due, partition = time.monotonic(), 0
        while not stop.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            due += TICK_S
            partition = (partition + 1) % PARTITIONS
            builder = BatchBuilder(**producer.fields(topic, partition))
            now = time.time_ns()
            for _ in range(RECORDS_A_TICK):
                builder.append(b"%d" % now, VALUE, timestamp=now // 1_000_000)
            producer.send(topic, partition, builder.build(), RECORDS_A_TICK)


if __name__ == "__main__":
    main()
