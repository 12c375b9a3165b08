"""How long does a new Spark session take to its first rows of a log directory, compared to Parquet?

20,000 records of 116 B in 2 partitions, and the same rows in 2 Parquet files; local[2], alternating new sessions. A
program imports kwire.spark, starts the session, and then measures `load` and `show()` together, twice. A stream with
Trigger.AvailableNow is the third query of a program; its first batch ends with its start.
Figures: minimum wall time of several sessions, and the CPU time of the JVM and of Spark's Python processes.
KWIRE_BENCH_RUNS changes the number of sessions.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.data import log_directory
from benchmarks.spark.measure import Cost, Meter, start_session

RECORDS = 20_000
QUERIES = ("first_show", "second_show", "first_batch")
CPU_PARTS = ("jvm", "python")


def main() -> None:
    """Print the figures."""
    log = str(log_directory(RECORDS, partitions=2, segments=1))
    with tempfile.TemporaryDirectory() as folder:
        places = {"parquet": f"{folder}/parquet", "kafka-log": log}
        run("kafka-log", log, folder, copy_to=places["parquet"])
        found: dict[str, list[dict[str, Cost]]] = {name: [] for name in places}
        for _ in range(int(os.environ.get("KWIRE_BENCH_RUNS", "3"))):
            for name, place in places.items():
                found[name].append(run(name, place, folder))
    for query in QUERIES:
        for name, sessions in found.items():
            for part, unit in (("wall", "s"), *((part, "s_cpu") for part in CPU_PARTS)):
                value, theirs = (
                    min(getattr(each[query], part) for each in costs) for costs in (sessions, found["parquet"])
                )
                ratio = f"{value / theirs:.2f}" if theirs else "-"
                print(f"spark.startup.{query}.{name}.{part} {value:.2f} {unit} {ratio} parquet", flush=True)


def run(name: str, place: str, folder: str, *, copy_to: str = "") -> dict[str, Cost]:
    """Run a program in a new process."""
    words = [sys.executable, "-c", "from benchmarks.spark.startup import program; program()", name, place, folder]
    done = subprocess.run([*words, copy_to], stdout=subprocess.PIPE, check=True)
    return {query: Cost(**cost) for query, cost in json.loads(done.stdout.splitlines()[-1]).items()}


def program() -> None:
    """Measure the queries of a new session; print their costs as JSON. Arguments: format, path, folder, copy."""
    name, place, folder, copy_to = sys.argv[1:]
    spark = start_session()
    meter = Meter(spark)

    def show() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            spark.read.format(name).load(place).show()

    def first_batch() -> None:
        reader = spark.readStream.format(name)
        if name == "parquet":
            reader = reader.schema(spark.read.parquet(place).schema)
        else:
            reader = reader.option("startingOffsets", "earliest")
        stream = reader.load(place).writeStream.format("noop").trigger(availableNow=True)
        stream.option("checkpointLocation", str(Path(folder) / str(time.time_ns()))).start().awaitTermination()

    queries: dict[str, Callable[[], None]] = dict(zip(QUERIES, (show, show, first_batch), strict=True))
    print(json.dumps({query: asdict(meter.run(work)) for query, work in queries.items()}))
    if copy_to:
        spark.read.format(name).load(place).coalesce(2).write.parquet(copy_to)
    spark.stop()


if __name__ == "__main__":
    main()
