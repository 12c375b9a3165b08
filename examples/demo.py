"""The main features, on data that real Kafka brokers wrote: `./dev demo`.

Unpacks a broker's log directory to demo-output/, lists it, runs three typical queries on it with Spark, and writes
Parquet. Starts a broker in this process, writes to it with librdkafka, and reads the topic with Spark from the broker
and from the broker's files: both must agree. Shows the offsets of a consumer group, the requests of a packet capture
and the damage of a damaged directory. Writes HTML reports. Appends a topic to an Iceberg table, queries the table with
DuckDB, and lists all results.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from pyiceberg.catalog import load_catalog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import kwire.spark  # noqa: F401 (before the session: Spark then runs the Python of this program)
from kwire.broker import Broker
from kwire.cli.command import FINE, FOUND
from kwire.cli.main import run as run_kwire
from kwire.errors import counted

ROOT = Path(__file__).parents[1]
ARCHIVES = ROOT / "tests" / "data" / "logs"
OUTPUT = Path("demo-output")  # in the checkout, where main() goes
LOGS = {
    "modern": "Kafka 3.9.1: five codecs, compaction, transactions, consumer groups, KRaft metadata",
    "legacy": "Kafka 2.8.2: record formats 0, 1 and 2",
}
RECORDS = 50_000
QUERY = """\
SELECT fields ->> 'city' AS city, count(*) AS orders,
       sum(list_sum(CAST(fields -> '$.lines[*].qty' AS INT[]))) AS pieces
FROM (SELECT TRY_CAST(decode(value) AS JSON) AS fields FROM orders)
WHERE city IS NOT NULL GROUP BY ALL ORDER BY pieces DESC
"""
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # halves the CPU time of a short-lived JVM


def main() -> int:
    """Run the demo. Returns the exit code, 0 if every step succeeded."""
    started = time.monotonic()
    os.chdir(ROOT)
    with step("Log directories of real Kafka brokers"):
        for name, what in LOGS.items():
            print(f"  {unpack(name) / 'data'}  {what}")

    data = OUTPUT / "logs" / "modern" / "data"
    with step("Topics: kwire log ls --topics"):
        command("log", "ls", str(data), "--topics", "--sort", "size")

    spark = session()
    try:
        with step("Spark 1. Records and bytes by topic and five-minute window"):
            activity(spark, data).show(12, truncate=False)
        with step("Spark 2. The latest value of each key in a compacted topic"):
            current = latest_by_key(spark, data)
            current.show(6, truncate=60)
        with step("Spark 3. Records of committed, aborted and open transactions"):
            committed_and_not(spark, data).show(truncate=False)
        with step("Write Parquet with Spark"):
            orders, files, size = write_parquet(spark, data, OUTPUT / "orders.parquet")
            where = f"{counted(files, 'file')} of {size / 1024:,.0f} KiB"
            print(f"  {orders:,} records of the topic orders, read back from {where}")
        with step("Broker in this process: librdkafka writes, Spark reads the live topic and the files"):
            live_and_from_disk(spark)
    finally:
        spark.stop()

    with step("Offsets of a consumer group: kwire group"):
        command("group", str(data), "g-classic")

    with step("Requests in a packet capture: kwire capture --summary"):
        capture = unpack("wire", "k391.disordered.pcap") / "k391.disordered.pcap"
        command("capture", str(capture), "--summary", expect=FOUND)  # two requests have no response

    with step("Directory of a killed broker with a damaged disk: kwire log verify"):
        damaged = unpack("unclean", "damaged/data") / "damaged" / "data"
        verified = OUTPUT / "verify-damaged.html"
        command("log", "verify", str(damaged), "--report", str(verified), expect=FOUND)

    with step("HTML report: kwire log report"):
        reports = []
        for name in LOGS:
            reports.append(OUTPUT / f"report-{name}.html")
            command("log", "report", str(OUTPUT / "logs" / name / "data"), "-o", str(reports[-1]))

    with step("Iceberg table of the topic orders: kwire lake append, then a query with DuckDB"):
        query_table(data, OUTPUT / "lake")

    with step(f"Done in {time.monotonic() - started:.0f} s. Results"):
        for path, what in (
            (reports[0], "HTML report of the directory; open it in a browser"),
            (reports[1], "HTML report of the directory with older record formats"),
            (verified, "damage of the directory, with its effect on Kafka"),
            (OUTPUT / "orders.parquet", "topic orders as Parquet"),
            (OUTPUT / "lake" / "demo" / "orders", "topic orders as an Iceberg table"),
            (OUTPUT / "broker", "the broker's log directory; a real Kafka can take it over"),
            (data, "log directory; docs/quickstart.md shows what to try"),
        ):
            print(f"  {path!s:36}{what}")
    return 0


# ---- the three queries


def read(spark: SparkSession, data: Path, **options: str) -> DataFrame:
    """Read topics of a log directory, with the columns of Spark's Kafka source."""
    return spark.read.format("kafka-log").options(**options).load(str(data))


def activity(spark: SparkSession, data: Path) -> DataFrame:
    """Count records, bytes and tombstones by topic and five-minute window."""
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
    """Return the newest value of each key of the topic `compacted`, without keys that end with a tombstone."""
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
    """Compare all records of each partition of `txn` with those that a read_committed consumer gets."""

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
    """Write the topic orders. Returns (records read back, files, bytes)."""
    read(spark, data, subscribe="orders", includeHeaders="true").write.mode("overwrite").parquet(str(target))
    files = list(target.glob("*.parquet"))
    return spark.read.parquet(str(target)).count(), len(files), sum(file.stat().st_size for file in files)


def live_and_from_disk(spark: SparkSession) -> None:
    """Write a topic with librdkafka, read it from the broker and from its files, and compare both."""
    directory = OUTPUT / "broker"
    shutil.rmtree(directory, ignore_errors=True)
    with Broker(data_dir=directory, num_partitions=3) as broker:
        write_clicks(broker.bootstrap_servers)
        live = spark.read.format("kafka-live").options(
            **{"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "clicks"}
        )
        found = {"from the broker": summary(live.load()), "from its files": summary(read(spark, directory))}
    for name, (records, users, digest) in found.items():
        print(f"  {name:16}{records:,} records of {users} users, checksum {digest}")
    if len(set(found.values())) != 1:
        raise SystemExit("the live topic and the files differ")


def write_clicks(servers: str) -> None:
    """Write the topic clicks. The producer ends with this function: later, it would report that the broker stops."""
    producer = Producer({"bootstrap.servers": servers, "compression.type": "lz4"})
    for number in range(RECORDS):
        producer.produce("clicks", value=f"click {number}", key=f"user {number % 997}")
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(60):
        raise SystemExit("librdkafka did not deliver all records")


def summary(frame: DataFrame) -> tuple[int, int, int]:
    """Return the number of records and keys, and a checksum over all columns of all rows."""
    row = frame.agg(f.count("*"), f.count_distinct("key"), f.bit_xor(f.xxhash64(*frame.columns))).collect()[0]
    return row[0], row[1], row[2]


def query_table(data: Path, lake: Path) -> None:
    """Append the topic orders to a new Iceberg table, with its catalog in an SQLite file, and query the table."""
    shutil.rmtree(lake, ignore_errors=True)
    lake.mkdir(parents=True)
    catalog = {"type": "sql", "uri": f"sqlite:///{lake.resolve()}/catalog.db", "warehouse": f"file://{lake.resolve()}"}
    properties = [word for pair in catalog.items() for word in ("--catalog", "=".join(pair))]
    command("lake", "append", str(data), "demo.orders", "--topic", "orders", *properties)
    print(f"\n{textwrap.indent(QUERY, '  ')}")
    scan = load_catalog(**catalog).load_table("demo.orders").scan()
    with scan.to_duckdb("orders") as connection:
        connection.sql(QUERY).show()
    print(f"  table demo.orders: Parquet files and metadata in {lake}/demo/orders, catalog in {lake}/catalog.db")


def unpack(name: str, part: str = "data") -> Path:
    """Unpack a part of an archive of tests/data below demo-output/logs, and return the directory."""
    target = OUTPUT / "logs" / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tarfile.open(ARCHIVES / f"{name}.tar.gz") as archive:
        members = [member for member in archive if member.name.removeprefix("./").startswith(part)]
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not before Python 3.11.4
        archive.extractall(target, members=members)
    return target


def session() -> SparkSession:
    """Start Spark in this process, on two cores."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging = f"-Dlog4j2.configurationFile={ROOT / 'examples' / 'log4j2.properties'}"
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{logging} {SHORT_LIVED}")
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


def command(*arguments: str, expect: int = FINE) -> None:
    """Run a kwire command. Raises SystemExit unless it exits with this code."""
    if run_kwire(arguments) != expect:
        raise SystemExit(f"kwire {' '.join(arguments)} failed")


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print a heading, and the seconds that a longer step took."""
    started = time.monotonic()
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold}{title}{plain}", flush=True)
    yield
    took = time.monotonic() - started
    print(f"  ({took:.1f} s)" if took >= 1 else "", flush=True)


if __name__ == "__main__":
    sys.exit(main())
