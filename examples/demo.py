"""The main job, on bytes that real Kafka brokers wrote: `./dev demo`.

Unpacks a broker's log directory into demo-output/, lists it, reads it with Spark, answers three questions that a data
engineer would ask, writes Parquet, decodes one message, writes an HTML report, and says where everything is. There is
no broker anywhere: the files are the whole input.
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kwire.cli import main as kwire
from kwire.log import LogDirectory
from kwire.messages import OffsetCommitKey, OffsetCommitValue

ROOT = Path(__file__).parents[1]
ARCHIVES = ROOT / "tests" / "data" / "logs"
OUTPUT = Path("demo-output")  # in the checkout, where main() goes
LOGS = {
    "modern": "Kafka 3.9.1: five codecs, compaction, transactions, consumer groups, KRaft metadata",
    "legacy": "Kafka 2.8.2: record formats 0, 1 and 2 side by side",
}


def main() -> int:
    """Run the demo; the exit code is 0 when every step worked."""
    started = time.monotonic()
    os.chdir(ROOT)
    with step("Real log directories, as the brokers left them"):
        for name, what in LOGS.items():
            print(f"  {unpack(name)}  {what}")

    data = OUTPUT / "logs" / "modern" / "data"
    with step("Topics: kwire log ls --topics"):
        command("log", "ls", str(data), "--topics", "--sort", "size")

    spark = session()
    try:
        with step("1. How much, when? Records and bytes by topic and five minutes"):
            activity(spark, data).show(12, truncate=False)
        with step("2. What is current? The latest value of each key in a compacted topic"):
            current = latest_by_key(spark, data)
            current.show(6, truncate=60)
        with step("3. What do readers of committed data see? Transactions, aborted and still open ones"):
            committed_and_not(spark, data).show(truncate=False)
        with step("Parquet, with Spark's own writer"):
            orders, files, size = write_parquet(spark, data, OUTPUT / "orders.parquet")
            print(f"  {orders:,} records of the topic orders, read back from {files} files of {size / 1024:,.0f} KiB")
    finally:
        spark.stop()

    with step("One message of an internal topic: what a consumer group committed"):
        print(f"  {first_commit(data)}")

    with step("The report: kwire log report"):
        reports = []
        for name in LOGS:
            reports.append(OUTPUT / f"report-{name}.html")
            command("log", "report", str(OUTPUT / "logs" / name / "data"), "-o", str(reports[-1]))

    with step(f"Done in {time.monotonic() - started:.0f} s. Where things are"):
        for path, what in (
            (reports[0], "the HTML report: open it in any browser, no network needed"),
            (reports[1], "the same for the older record formats"),
            (OUTPUT / "orders.parquet", "the topic orders as Parquet"),
            (data, "the log directory: try kwire log dump, docs/quickstart.md"),
        ):
            print(f"  {path!s:36}{what}")
    return 0


# ---- the three questions


def read(spark: SparkSession, data: Path, **options: str) -> DataFrame:
    """The topics of a log directory as Spark sees a Kafka topic: key, value, topic, partition, offset, ..."""
    return spark.read.format("kafka-log").options(**options).load(str(data))


def activity(spark: SparkSession, data: Path) -> DataFrame:
    """Records, bytes and tombstones by topic in windows of five minutes."""
    size = f.coalesce(f.length("key"), f.lit(0)) + f.coalesce(f.length("value"), f.lit(0))
    return (
        read(spark, data)
        .groupBy("topic", f.window("timestamp", "5 minutes").start.alias("from"))
        .agg(
            f.count("*").alias("records"),
            f.sum(size).alias("bytes"),
            f.count_if(f.col("value").isNull()).alias("tombstones"),
        )
        .orderBy("topic", "from")
    )


def latest_by_key(spark: SparkSession, data: Path) -> DataFrame:
    """The newest value of each key of the topic `compacted`; keys whose newest record is a tombstone are gone."""
    records = read(spark, data, subscribe="compacted").where("key IS NOT NULL")
    newest = records.groupBy("key", "partition").agg(
        f.max_by(f.struct("value", "offset"), "offset").alias("last"), f.count("*").alias("versions")
    )
    alive = newest.where("last.value IS NOT NULL").persist()
    total, kept = newest.count(), alive.count()
    print(
        f"  {records.count():,} records, {total:,} keys: {kept:,} have a value, {total - kept:,} end with a tombstone"
    )
    return alive.select(
        f.col("key").cast("string"),
        "versions",
        "partition",
        "last.offset",
        f.col("last.value").cast("string").alias("value"),
    ).orderBy(f.desc("versions"), "key")


def committed_and_not(spark: SparkSession, data: Path) -> DataFrame:
    """For each partition of `txn`: all records, those a read_committed consumer gets, and where such a reader stops."""

    def counted(isolation: str, prefix: str) -> DataFrame:
        return (
            read(spark, data, subscribe="txn", **{"kafka.isolation.level": isolation})
            .groupBy("partition")
            .agg(f.count("*").alias(f"{prefix}records"), f.max("offset").alias(f"{prefix}last_offset"))
        )

    everything, committed = counted("read_uncommitted", ""), counted("read_committed", "committed_")
    hidden = (f.col("records") - f.col("committed_records")).alias("aborted_or_open")
    waiting = (f.col("last_offset") - f.col("committed_last_offset")).alias("offsets_held_back")
    return everything.join(committed, "partition").select("*", hidden, waiting).orderBy("partition")


# ---- the other steps


def write_parquet(spark: SparkSession, data: Path, target: Path) -> tuple[int, int, int]:
    """Write the topic orders; returns (records read back, files, bytes)."""
    read(spark, data, subscribe="orders", includeHeaders="true").write.mode("overwrite").parquet(str(target))
    files = list(target.glob("*.parquet"))
    return spark.read.parquet(str(target)).count(), len(files), sum(file.stat().st_size for file in files)


def first_commit(data: Path) -> str:
    """The first offset commit in __consumer_offsets, in words."""
    logs = LogDirectory(data)
    for key, log in logs.items():
        if key[0] != "__consumer_offsets":
            continue
        for record in log.read():
            if record.key is None or record.value is None:
                continue
            (kind,), (version,) = struct.unpack_from(">h", record.key), struct.unpack_from(">h", record.value)
            if kind not in (0, 1):  # the other kinds are about groups and their members
                continue
            who = OffsetCommitKey.decode(record.key[2:], version=0)
            what = OffsetCommitValue.decode(record.value[2:], version=version)
            return f"group {who.group} committed offset {what.offset} of {who.topic}-{who.partition}"
    raise SystemExit("no offset commit in __consumer_offsets")


def unpack(name: str) -> Path:
    """The archive of one log directory below demo-output/logs, unpacked afresh."""
    target = OUTPUT / "logs" / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tarfile.open(ARCHIVES / f"{name}.tar.gz") as archive:
        members = [member for member in archive if member.name.removeprefix("./").startswith("data")]
        archive.extractall(target, members=members, filter="data")
    return target / "data"


def session() -> SparkSession:
    """Spark inside this process, on two cores."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # its workers would take the first python3 on the PATH
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={ROOT / 'examples' / 'log4j2.properties'}")
    return (
        SparkSession.builder.master("local[2]")
        .appName("kwire demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )


def command(*arguments: str) -> None:
    """A kwire command, as a user would type it."""
    if kwire.run(arguments) != 0:
        raise SystemExit(f"kwire {' '.join(arguments)} failed")


@contextmanager
def step(title: str) -> Iterator[None]:
    """A heading, and the seconds it took when that is worth knowing."""
    started = time.monotonic()
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold}{title}{plain}", flush=True)
    yield
    took = time.monotonic() - started
    print(f"  ({took:.1f} s)" if took >= 1 else "", flush=True)


if __name__ == "__main__":
    sys.exit(main())
