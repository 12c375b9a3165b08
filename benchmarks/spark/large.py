"""Is a topic of 10 GB read as fast as a small one, with the same memory? (`./dev bench --large large`)

77 M records of 116 B, encoded by kwire in batches of 256 KB, are written to a broker: real Kafka, or kwire's without a
JDK. kafka-log reads its log directory, kafka-live and Spark's connector (tuned) read from the broker, first a twentieth
of the offsets, then all of them. Figures: rows per second, and peak memory of Spark's largest Python worker after each
read, including mapped pages of the log, which belong to the page cache. noop sink, 7 columns, local[2]. Needs 12 GB of
temporary disk space and about five minutes. KWIRE_BENCH_GB changes the size.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable

from benchmarks.broker.serving import BROKERS
from benchmarks.data import log_directory
from benchmarks.spark.clusters import TUNED_READING, Cluster, connector_jars
from benchmarks.spark.measure import Meter, start_session
from pyspark.sql import DataFrame

from kwire.records.columns.reader import ColumnReader
from kwire.spark.live.write_options import parse_write_options
from kwire.spark.live.writing import write_task

LARGE = True  # only with --large
TOPIC = "large"
RECORD_BYTES = 129  # approximate size of the log
AT_A_TIME = 1_000_064  # records that are written repeatedly
SMALL_PART = 20


def main() -> None:
    """Print the figures, or what is missing."""
    size = int(os.environ.get("KWIRE_BENCH_GB", "10")) * 1_000_000_000
    need = size + size // 5
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < need:
        print(f"# skipped: needs {need / 1e9:.0f} GB in {folder}, {free / 1e9:.0f} GB are free", file=sys.stderr)
        return
    jars = connector_jars()
    name = "kwire" if jars is None else "kafka"
    with BROKERS[name]() as served:
        cluster = Cluster(name, served)
        ends = fill(cluster, size)
        spark = start_session(**({} if jars is None else {"spark.jars": jars}))
        meter = Meter(spark)

        def log(**options: str) -> DataFrame:
            return spark.read.format("kafka-log").options(subscribe=TOPIC, **options).load(cluster.log_dir)

        ways: dict[str, Callable[..., DataFrame]] = {
            "kafka-log": log,
            "kafka-live": lambda **options: cluster.read(spark, "kafka-live", TOPIC, **options),
        }
        if jars is not None:
            ways["connector-tuned"] = lambda **options: cluster.read(spark, "kafka", TOPIC, **TUNED_READING, **options)
        for way, frame in ways.items():
            for part, share in (("small", SMALL_PART), ("whole", 1)):
                upto = {str(partition): end // share for partition, end in ends.items()}
                some = frame(endingOffsets=json.dumps({TOPIC: upto}))
                cost = meter.run(lambda some=some: some.write.format("noop").mode("overwrite").save(), served)
                rows = sum(upto.values())
                print(f"spark.large.{way}.{part} {rows / cost.wall / 1e6:.2f} M_rows/s 1.00 -")
                jvm, python = meter.peak_mb()
                print(f"spark.large.{way}.{part}.peak_python {python:.0f} MB 1.00 -")
                print(f"spark.large.{way}.{part}.peak_jvm {jvm:.0f} MB 1.00 -", flush=True)
        spark.stop()


def fill(cluster: Cluster, size: int) -> dict[int, int]:
    """Write about size bytes of records; return the number of records per partition."""
    cluster.create(TOPIC)
    (segment,) = log_directory(AT_A_TIME, partitions=1, segments=1).glob("*/*.log")
    rows = list(ColumnReader(("key", "value")).read(segment.read_bytes()))
    times = size // (RECORD_BYTES * sum(len(each) for each in rows))
    options = parse_write_options({"kafka.bootstrap.servers": cluster.served.address, "topic": TOPIC})
    write_task((each for _ in range(times) for each in rows), ("key", "value"), options, task=0)
    return cluster.end_offsets(TOPIC)


if __name__ == "__main__":
    main()
