"""What do 10,000 small partitions cost: planning, `kwire log ls`, and a count with Spark, compared to Parquet?

100 topics of 100 partitions of 736 records of 116 B (93 KB each; 930 MB in all), in 10,000 and in 100,000 segments;
warm page cache. Planning and `ls` are CPU time of one process, without the start of Python. `s3` plans 1,000 of the
partitions on moto's server on loopback and counts requests. Spark, local[2]: the count of all columns with kafka-log,
with the option columns, and of 10,000 Parquet files with the same rows, in turns. Then kafka-live and Spark's
connector count a topic of 1,000 partitions of 100 records on kwire's broker. Ratio: the peer's time by ours.
KWIRE_BENCH_RUNS changes the number of runs.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from benchmarks.broker.serving import kwire_broker
from benchmarks.data import CACHE
from benchmarks.many_partitions import RECORDS, many_partitions
from benchmarks.spark.clusters import connector_jars
from benchmarks.spark.measure import Cost, Meter, in_turns, start_session
from pyspark.sql import DataFrame, SparkSession

from kwire.cli.log.ls import ls
from kwire.client import Client
from kwire.client.producer import OutgoingBatch, Producer
from kwire.log import LogDirectory
from kwire.messages import registry
from kwire.records import Record, TimestampType, write_batch
from kwire.spark.log.options import parse_options
from kwire.spark.log.planning import plan_batch

PARTITIONS = 10_000
LIVE_PARTITIONS, LIVE_RECORDS = 1000, 100


def main() -> None:
    """Print the figures."""
    runs = int(os.environ.get("KWIRE_BENCH_RUNS", "3"))
    few, many = many_partitions(), many_partitions(segments=10)
    for name, folder in (("10k_segments", few), ("100k_segments", many)):
        seconds, tasks = best_cpu(partial(plan, folder), runs)
        floor, _ = best_cpu(partial(list_and_measure, folder), runs)
        print(f"spark.small_partitions.plan.{name} {seconds:.2f} s {floor / seconds:.2f} scandir-and-stat")
        print(f"spark.small_partitions.tasks.{name} {tasks} tasks {PARTITIONS / tasks:.0f} partitions", flush=True)
    seconds, _ = best_cpu(lambda: quietly(lambda: ls(str(few))), runs)
    print(f"spark.small_partitions.ls {seconds:.2f} s 1.00 -", flush=True)
    plan_on_object_store()
    count_with_spark(few, runs)


def best_cpu(work: Callable[[], int], runs: int) -> tuple[float, int]:
    """Return the smallest CPU time in seconds of several runs, and the result."""
    times, result = [], 0
    for _ in range(runs + 1):
        started = time.process_time()
        result = work()
        times.append(time.process_time() - started)
    return min(times), result


def plan(folder: Path) -> int:
    """Plan a query on all partitions; return the number of tasks."""
    return len(plan_batch(parse_options({"path": str(folder)})))


def list_and_measure(folder: Path) -> int:
    """List every partition and ask for the size of each segment: the least that planning has to do."""
    total = 0
    for partition in os.scandir(folder):
        if partition.is_dir():
            with os.scandir(partition.path) as files:
                total += sum(file.stat().st_size for file in files if file.name.endswith(".log"))
    return total


def quietly(work: Callable[[], int]) -> int:
    """Run a command without its output."""
    with contextlib.redirect_stdout(io.StringIO()):
        return work()


# ---- S3


@contextlib.contextmanager
def object_store() -> Iterator[str]:
    """Run moto's server in a process of its own; yield its URL."""
    program = (
        "from moto.server import ThreadedMotoServer as S; import sys; s = S(ip_address='127.0.0.1', port=0, "
        "verbose=False); s.start(); print('http://%s:%d' % s.get_host_and_port(), flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-W", "ignore", "-c", program]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def plan_on_object_store() -> None:
    """Print the requests of planning a query on 1,000 partitions."""
    try:
        import fsspec
        from aiobotocore.httpsession import AIOHTTPSession  # type: ignore[import-untyped]
    except ImportError as missing:
        print(f"# skipped: {missing}", file=sys.stderr)
        return
    folder = many_partitions(topics=10)
    os.environ |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nonexistent", "NO_PROXY": "127.0.0.1"}
    requests, send = [0], AIOHTTPSession.send

    async def counted(self: object, request: object) -> object:
        requests[0] += 1
        return await send(self, request)

    AIOHTTPSession.send = counted
    with object_store() as endpoint:
        storage = {"endpoint_url": endpoint, "key": "key", "secret": "secret"}
        fs = fsspec.filesystem("s3", **storage)
        fs.mkdir("many")
        fs.put(str(folder), "many/", recursive=True)
        requests[0] = 0
        started = time.perf_counter(), time.process_time()
        options = {"path": f"s3://many/{folder.name}", **{f"storage.{name}": value for name, value in storage.items()}}
        tasks = plan_batch(parse_options(options))
        wall, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
    AIOHTTPSession.send = send
    assert sum(len(list(task.splits)) for task in tasks) == 1000
    files = sum(len(files) for _, _, files in os.walk(folder))
    print(f"spark.small_partitions.s3_requests {requests[0]} requests {files / requests[0]:.0f} files")
    print(f"spark.small_partitions.s3_plan {cpu:.2f} s 1.00 wall-{wall:.2f}s", flush=True)


# ---- Spark


def count_with_spark(folder: Path, runs: int) -> None:
    """Print the figures of counts."""
    jars = connector_jars()
    spark = start_session("local[2]", **({"spark.jars": jars} if jars else {}))
    meter = Meter(spark)
    parquet = parquet_files(folder)
    frames: dict[str, Callable[[], DataFrame]] = {
        "kafka-log": lambda: spark.read.format("kafka-log").load(str(folder)),
        "kafka-log.columns": lambda: spark.read.format("kafka-log").option("columns", "partition").load(str(folder)),
        "parquet": lambda: spark.read.parquet(parquet),
    }
    load = meter.run(lambda: frames["kafka-log"]())
    print(f"spark.small_partitions.first_load {load.wall:.2f} s 1.00 -", flush=True)
    show("count", meter, frames, RECORDS * PARTITIONS, runs, "parquet")
    if jars:
        with kwire_broker() as broker:
            fill(broker.address)
            show("live_count", meter, live_frames(spark, broker.address), LIVE_PARTITIONS * LIVE_RECORDS, runs, "kafka")
    spark.stop()


def show(
    name: str, meter: Meter, frames: dict[str, Callable[[], DataFrame]], records: int, runs: int, peer: str
) -> None:
    """Count each frame in turns, and print seconds: of wall time, and of CPU time in the JVM and in Python."""

    def count(make: Callable[[], DataFrame]) -> Cost:
        found: list[int] = []
        cost = meter.run(lambda: found.append(make().count()))
        assert found == [records], found
        return cost

    costs = in_turns({key: partial(count, make) for key, make in frames.items()}, runs)
    theirs = costs[peer]
    for key, cost in costs.items():
        title = f"spark.small_partitions.{name}.{key}"
        print(f"{title} {cost.wall:.2f} s {theirs.wall / cost.wall:.2f} {peer}")
        ratio = (theirs.jvm + theirs.python) / (cost.jvm + cost.python)
        print(f"{title}.cpu {cost.jvm + cost.python:.2f} s {ratio:.2f} {peer}", flush=True)


def parquet_files(folder: Path) -> str:
    """Write the rows of a partition as Parquet, and link the file for each partition. Written on the first call."""
    path = CACHE / "many-parquet"
    if not (path / "_SUCCESS").exists():
        path.mkdir(parents=True, exist_ok=True)
        rows = next(iter(LogDirectory(folder).values())).read_arrow().read_all()
        source = path / "part-00000.parquet"
        pq.write_table(rows, source)
        for number in range(1, PARTITIONS):
            os.link(source, path / f"part-{number:05d}.parquet")
        (path / "_SUCCESS").touch()
    return str(path)


def fill(address: str) -> None:
    """Create the topic and write its records."""
    cls: Any = registry.get("CreateTopicsRequest")
    forever = cls.CreatableTopicConfig(name="retention.ms", value="-1")
    topic = cls.CreatableTopic(name="small", num_partitions=LIVE_PARTITIONS, replication_factor=1, configs=[forever])
    records = [
        Record(offset=n, timestamp=n, timestamp_type=TimestampType.CREATE_TIME, key=None, value=b"x" * 100, headers=[])
        for n in range(LIVE_RECORDS)
    ]
    with Client(address, enable_idempotence="false") as client:
        client.request(cls(topics=[topic], timeout_ms=60_000))
        producer = Producer(client)
        batch = write_batch(records)
        producer.send_all([OutgoingBatch("small", each, batch, LIVE_RECORDS) for each in range(LIVE_PARTITIONS)])


def live_frames(spark: SparkSession, address: str) -> dict[str, Callable[[], DataFrame]]:
    """Return frames of the topic."""
    options = {"kafka.bootstrap.servers": address, "subscribe": "small"}
    return {source: spark.read.format(source).options(**options).load for source in ("kafka-live", "kafka")}


if __name__ == "__main__":
    main()
