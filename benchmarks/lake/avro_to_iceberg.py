"""How fast does Spark copy a topic of Avro values to an Iceberg table, compared with the JARs of Spark and Iceberg?

1 M orders of 10 fields in the wire format of schema registries; a topic of real Kafka with 4 partitions, batches of
16 KB. kwire: kafka-live, from_registry with a folder of schemas, kwire-iceberg; `kwire-source` decodes in kafka-live,
with option value.registry; `kwire-direct` is copy_stream. Peer: Spark's connector, also tuned,
from_avro of spark-avro on `substring(value, 6)`, and Iceberg's JAR with a Hadoop catalog. Both write unpartitioned
Parquet with zstd, their default. `batch` is one write, also with jobs.table, which writes Kafka's columns as well;
`stream` has the trigger availableNow, one micro-batch; `read` discards the decoded rows; `decode` reads the values from
Parquet and discards the rows. `kwire-tuned` is kwire with larger Arrow batches between Spark and Python, see ARROW.
All rows of the tables are compared. `batch.kwire-sail` is the program of `batch.kwire`
on Sail, if ./dev test has installed it; its CPU time counts as that of Python.

local[2] with the broker on the same two cores. Iceberg has no JAR for the newest Spark, so both sides run on Spark 4.1,
in one session: PySpark 4.1.1, for which the first run makes an environment in build/spark-4.1, since Spark's Python
processes start slower if PySpark is on PYTHONPATH. Ratio: rows per second by the peer's.
Needs a JDK and mvn. KWIRE_BENCH_RECORDS and KWIRE_BENCH_RUNS change the size of the run, KWIRE_BENCH_CASES
the cases, by the start of their names.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from tools import kafka
from tools.sail import SailEngine
from tools.spark_tables import PYSPARK

from benchmarks.broker.serving import real_kafka
from benchmarks.schemas.avro import ORDER, PREFIX, rows_of
from benchmarks.schemas.orders import even_orders
from benchmarks.spark.clusters import PARTITIONS, TUNED_READING, Cluster
from benchmarks.spark.measure import ROOT, Cost, Meter, cpu_s, in_turns, show, start_session
from kwire.schemas.avro import Encoder, parse

ENVIRONMENT = ROOT / "build" / "spark-4.1"
TOPIC = "orders"
SCHEMA_ID = int.from_bytes(PREFIX[1:], "big")
PEERS = ("connector", "connector-tuned")
ARROW = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",  # less makes Spark add up the sizes after each row
}


def main() -> None:
    """Print the figures, or what is missing. Runs itself with the older PySpark."""
    try:
        kafka.jars()
        jars = ",".join(map(str, sorted(kafka.spark_iceberg_jars().glob("*.jar"))))
    except kafka.Unavailable as missing:
        print(f"# skipped: {missing}", file=sys.stderr)
        return
    make_environment()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    code = f"from benchmarks.lake.avro_to_iceberg import measure; measure({jars!r})"
    python = str(ENVIRONMENT / "bin" / "python")
    subprocess.run([python, "-c", code], env={**kept, "PYTHONPATH": str(ROOT), "TZ": "UTC"}, cwd=ROOT, check=True)


def make_environment() -> None:
    """Make an environment with the PySpark that Iceberg supports, once; all else is of this one."""
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(ENVIRONMENT)}))
    if (packages / "others.pth").exists():
        return
    venv.create(ENVIRONMENT, clear=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(packages)]
    subprocess.run([*pip, f"pyspark=={PYSPARK}", "py4j==0.10.9.9"], check=True)
    others = sysconfig.get_path("purelib")
    (packages / "others.pth").write_text(f"import site; site.addsitedir({others!r})\n")


def measure(jars: str) -> None:
    """Measure all cases in one session, and compare the tables."""
    records, runs = int(os.environ.get("KWIRE_BENCH_RECORDS", "1000000")), int(os.environ.get("KWIRE_BENCH_RUNS", "3"))
    chosen = tuple(os.environ.get("KWIRE_BENCH_CASES", "").split(","))
    with tempfile.TemporaryDirectory() as folder, real_kafka() as served:
        work = Path(folder)
        cluster = Cluster("kafka", served)
        fill(cluster, avro_values(records), work)
        settings = {
            "spark.jars": jars,
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.peer": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.peer.type": "hadoop",
            "spark.sql.catalog.peer.warehouse": f"{work}/peer",
            "spark.sql.session.timeZone": "UTC",
        }
        spark = start_session(**settings)
        copies = Copies(spark, cluster, work)
        meter = Meter(spark)
        sail = engine_of_sail()
        cases = {name: case for name, case in copies.cases().items() if name.startswith(chosen)}
        runs_of = {name: partial(meter.run, case, served) for name, case in cases.items()}
        if sail is not None and "batch.kwire-sail".startswith(chosen):
            runs_of["batch.kwire-sail"] = lambda: on_sail(sail, copies.arguments("kwire.sail"))
        found = in_turns(runs_of, runs)
        for name, cost in found.items():
            kind, _, side = name.partition(".")
            peers = [
                f"{kind}.{peer}"
                for peer in (*PEERS, "from_avro")
                if side.startswith("kwire") and f"{kind}.{peer}" in found
            ]
            show(f"lake.avro_to_iceberg.{name}", cost, records, {peer: found[peer] for peer in peers})
        copies.compare(records)
        spark.stop()
        if sail is not None:
            sail.close()


def engine_of_sail() -> SailEngine | None:
    """Start Sail, if it is installed."""
    try:
        return SailEngine()
    except kafka.Unavailable as missing:
        print(f"# without Sail: {missing}", file=sys.stderr)
        return None


def on_sail(sail: SailEngine, arguments: tuple[object, ...]) -> Cost:
    """Copy the topic on Sail."""
    before, started = cpu_s(sail.pid), time.perf_counter()
    sail(copy_topic, *arguments)
    wall = time.perf_counter() - started
    return Cost(wall, 0.0, cpu_s(sail.pid) - before)


def copy_topic(session: SparkSession, address: str, schemas: str, options: dict[str, str], table: str) -> None:
    """Copy the topic to a new table with kwire, on either engine."""
    from kwire.spark.functions import from_registry

    reader = session.read.format("kafka-live").option("kafka.bootstrap.servers", address)
    values = reader.option("subscribe", TOPIC).option("columns", "value").load()
    rows = values.select(from_registry("value", schemas, topic=TOPIC).alias("o")).select("o.*")
    rows.write.format("kwire-iceberg").options(**options).mode("append").save(table)


def avro_values(count: int) -> pa.Table:
    """Return the values of the topic, as a column `value`."""
    encoder = Encoder(parse(json.dumps(ORDER)))
    rows = pa.array(rows_of(even_orders(count)), encoder.type)
    return pa.table({"value": encoder.encode(rows, prefix=PREFIX).array})


def fill(cluster: Cluster, values: pa.Table, work: Path) -> None:
    """Write the topic with librdkafka and Java's batch size; write a folder of schemas, and the values as Parquet."""
    from confluent_kafka import Producer

    cluster.create(TOPIC)
    producer = Producer({"bootstrap.servers": cluster.served.address, "batch.size": 16384, "linger.ms": 20})
    for number, value in enumerate(values["value"].to_pylist()):
        while True:
            try:
                producer.produce(TOPIC, value, partition=number % PARTITIONS, timestamp=1_767_225_600_000 + number)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    (work / "values").mkdir()
    for part in range(PARTITIONS):
        parquet.write_table(
            values.take(pa.array(range(part, len(values), PARTITIONS))), work / "values" / f"{part}.parquet"
        )
    (work / "schemas").mkdir()
    (work / "schemas" / f"{TOPIC}-value.1.{SCHEMA_ID}.avsc").write_text(json.dumps(ORDER))


@dataclass
class Copies:
    """The ways to copy the topic, each time to a new table."""

    spark: SparkSession
    cluster: Cluster
    work: Path
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    last: dict[str, str] = field(default_factory=dict)

    def cases(self) -> dict[str, Callable[[], object]]:
        """Return the cases by name."""
        spark, ours, tuned = self.spark, {"columns": "value"}, TUNED_READING
        values = spark.read.parquet(f"{self.work}/values")
        return {
            "batch.kwire": lambda: copy_topic(spark, *self.arguments("kwire.batch")),
            "batch.kwire-tuned": lambda: self.tuned(copy_topic, spark, *self.arguments("kwire.tuned")),
            "batch.kwire-source": lambda: self.kwire_write(self.from_source(self.read("kafka-live", self.decoded()))),
            "batch.kwire-table": self.kwire_table,
            "batch.connector": lambda: self.peer_write(self.from_avro(self.read("kafka", {}))),
            "batch.connector-tuned": lambda: self.peer_write(self.from_avro(self.read("kafka", tuned))),
            "stream.kwire": lambda: self.kwire_stream(self.from_registry(self.stream("kafka-live", ours))),
            "stream.kwire-tuned": lambda: self.tuned(
                lambda: self.kwire_stream(self.from_registry(self.stream("kafka-live", ours)))
            ),
            "stream.kwire-source": lambda: self.kwire_stream(
                self.from_source(self.stream("kafka-live", self.decoded()))
            ),
            "stream.kwire-direct": self.kwire_direct,
            "stream.connector": lambda: self.peer_stream(self.from_avro(self.stream("kafka", {}))),
            "stream.connector-tuned": lambda: self.peer_stream(self.from_avro(self.stream("kafka", tuned))),
            "read.kwire": lambda: discard(self.from_registry(self.read("kafka-live", ours))),
            "read.kwire-source": lambda: discard(self.from_source(self.read("kafka-live", self.decoded()))),
            "read.connector": lambda: discard(self.from_avro(self.read("kafka", {}))),
            "read.connector-tuned": lambda: discard(self.from_avro(self.read("kafka", tuned))),
            "decode.kwire": lambda: discard(self.from_registry(values)),
            "decode.kwire-tuned": lambda: self.tuned(lambda: discard(self.from_registry(values))),
            "decode.from_avro": lambda: discard(self.from_avro(values)),
        }

    def tuned(self, case: Callable[..., object], *arguments: object) -> None:
        """Run a case with ARROW."""
        for name, value in ARROW.items():
            self.spark.conf.set(name, value)
        try:
            case(*arguments)
        finally:
            for name in ARROW:
                self.spark.conf.unset(name)

    def read(self, source: str, options: dict[str, str]) -> DataFrame:
        """Read the topic."""
        return self.cluster.read(self.spark, source, TOPIC, **options)

    def stream(self, source: str, options: dict[str, str]) -> DataFrame:
        """Read the topic as a stream."""
        options = {
            "kafka.bootstrap.servers": self.cluster.served.address,
            "subscribe": TOPIC,
            "startingOffsets": "earliest",
            **options,
        }
        return self.spark.readStream.format(source).options(**options).load()

    def from_registry(self, frame: DataFrame) -> DataFrame:
        """Decode with kwire."""
        from kwire.spark.functions import from_registry

        return frame.select(from_registry("value", str(self.work / "schemas"), topic=TOPIC).alias("o")).select("o.*")

    def decoded(self) -> dict[str, str]:
        """Return the options with which kafka-live decodes."""
        return {"columns": "value", "value.registry": str(self.work / "schemas")}

    def from_source(self, frame: DataFrame) -> DataFrame:
        """Return the fields of decoded values."""
        return frame.select("value.*")

    def from_avro(self, frame: DataFrame) -> DataFrame:
        """Decode with spark-avro."""
        from pyspark.sql.avro.functions import from_avro
        from pyspark.sql.functions import expr

        return frame.select(from_avro(expr("substring(value, 6)"), json.dumps(ORDER)).alias("o")).select("o.*")

    def catalog(self) -> dict[str, str]:
        """Return the properties of kwire's catalog."""
        kwire = self.work / "kwire"
        kwire.mkdir(exist_ok=True)
        return {"type": "sql", "uri": f"sqlite:///{kwire}/catalog.db", "warehouse": f"file://{kwire}"}

    def table(self, case: str) -> str:
        """Return the name of a new table."""
        self.last[case] = f"sales.orders_{next(self.numbers)}"
        return self.last[case]

    def arguments(self, case: str) -> tuple[str, str, dict[str, str], str]:
        """Return the arguments of copy_topic for a new table."""
        options = {f"catalog.{key}": value for key, value in self.catalog().items()}
        return self.cluster.served.address, str(self.work / "schemas"), options, self.table(case)

    def kwire_table(self) -> None:
        """Create a table with kwire's job."""
        from kwire.spark import jobs

        jobs.table(
            self.spark,
            f"kafka://{self.cluster.served.address}/{TOPIC}",
            self.table("kwire.table"),
            catalog=self.catalog(),
            registry=str(self.work / "schemas"),
        )

    def kwire_direct(self) -> None:
        """Create a table with a stream whose rows stay in Arrow."""
        from kwire.spark import copy_stream

        table = self.table("kwire.stream")
        copy_stream(
            self.spark,
            "kafka-live",
            {
                "kafka.bootstrap.servers": self.cluster.served.address,
                "subscribe": TOPIC,
                "startingOffsets": "earliest",
                **self.decoded(),
            },
            "kwire-iceberg",
            {"table": table, **{f"catalog.{key}": value for key, value in self.catalog().items()}},
            checkpoint=f"{self.work}/{table}",
            function=fields_of,
            trigger={"availableNow": True},
        ).awaitTermination()

    def peer_write(self, frame: DataFrame) -> None:
        """Create a table with Iceberg."""
        frame.writeTo(f"peer.{self.table('peer.batch')}").create()

    def kwire_write(self, frame: DataFrame) -> None:
        """Create a table with kwire's sink."""
        options = {f"catalog.{key}": value for key, value in self.catalog().items()}
        frame.write.format("kwire-iceberg").options(**options).mode("append").save(self.table("kwire.batch"))

    def kwire_stream(self, frame: DataFrame) -> None:
        """Create a table with a stream of kwire."""
        options = {f"catalog.{key}": value for key, value in self.catalog().items()}
        table = self.table("kwire.stream")
        writer = frame.writeStream.format("kwire-iceberg").options(**options).option("table", table)
        writer.option("checkpointLocation", f"{self.work}/{table}").trigger(
            availableNow=True
        ).start().awaitTermination()

    def peer_stream(self, frame: DataFrame) -> None:
        """Create a table with a stream of Iceberg."""
        table = self.table("peer.stream")
        writer = frame.writeStream.format("iceberg").option("checkpointLocation", f"{self.work}/{table}")
        writer.trigger(availableNow=True).toTable(f"peer.{table}").awaitTermination()

    def compare(self, records: int) -> None:
        """Check that the last tables have the same rows, all of them."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.table import StaticTable

        sales = load_catalog("default", **self.catalog())
        first: pa.Table | None = None
        for case, name in self.last.items():
            if case.startswith("kwire"):
                found = sales.load_table(name).scan().to_arrow()
            else:
                metadata = Path(self.work, "peer", *name.split("."), "metadata")
                newest = max(metadata.glob("*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
                found = StaticTable.from_metadata(str(newest)).scan().to_arrow()
            if case == "kwire.table":
                found = pa.Table.from_batches(map(pa.RecordBatch.from_struct_array, found["value"].chunks))
            assert len(found) == records, (case, len(found))
            found = found.sort_by("id").combine_chunks()
            first = found if first is None else first
            assert found.cast(first.schema).equals(first), case


def fields_of(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the fields of decoded values."""
    return pa.RecordBatch.from_struct_array(rows.column("value"))


def discard(frame: DataFrame) -> None:
    """Compute all rows."""
    frame.write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main()
