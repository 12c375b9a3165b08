"""A program of Spark with kwire-iceberg and jobs.table: python -m tests.spark.lake.catalog_program FOLDER OPTIONS.

OPTIONS is a JSON object of the sink's catalog options. Prints what the tables have as JSON. The event log and the
checkpoint are in the folder. A process of its own: catalogs' settings are read from its environment.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka

import kwire.spark
from kwire.broker import Broker
from kwire.lake import open_table
from kwire.spark import jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 300


def session(folder: Path) -> SparkSession:
    """Return a session that logs everything."""
    from pyspark.sql import SparkSession

    (folder / "events").mkdir()
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", f"file://{folder}/events")
        .config("spark.log.level", "INFO")
        .getOrCreate()
    )


def stream(spark: SparkSession, servers: str, folder: Path, options: dict[str, str]) -> None:
    """Copy the topic in micro-batches of 100 rows until its end."""
    read = spark.readStream.format("kafka-live").option("kafka.bootstrap.servers", servers)
    read = read.option("subscribe", "orders").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 100)
    writer = read.load().writeStream.format("kwire-iceberg").options(**options).option("table", "sales.streamed")
    query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()


def forget_the_last_commit(folder: Path) -> None:
    """Remove the last micro-batch from the checkpoint's commits, as if the driver had died before it wrote that."""
    commits = folder / "checkpoint" / "commits"
    last = max(int(each.name) for each in commits.glob("[0-9]*"))
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink()


def content(name: str, catalog: dict[str, str]) -> tuple[int, int]:
    """Return the number of rows of a table, and of different ones."""
    table: Any = open_table(name, catalog=catalog)
    table.refresh()
    rows = table.table.scan().to_arrow().to_pylist()
    return len(rows), len({tuple(sorted(row.items())) for row in rows})


def main() -> None:
    """Write three tables, each with something run again."""
    folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    catalog = {name.removeprefix("catalog."): value for name, value in options.items() if name != "catalog"}
    if "catalog" in options:
        catalog["name"] = options["catalog"]
    spark = session(folder)
    with Broker(num_partitions=2) as broker:
        servers = broker.bootstrap_servers
        producer = confluent_kafka.Producer({"bootstrap.servers": servers})
        for number in range(ROWS):
            producer.produce("orders", str(number), f"k{number % 10}", partition=number % 2)
        assert producer.flush(30) == 0
        stream(spark, servers, folder, options)
        forget_the_last_commit(folder)
        stream(spark, servers, folder, options)
        job = [jobs.table(spark, f"kafka://{servers}", "sales.job", catalog=catalog, topics=["orders"]) for _ in "ab"]
    for version in (1, 1, 2):
        rows = spark.range(10 * version, 10 * version + 10)
        once = {"txnAppId": "copy", "txnVersion": str(version)}
        rows.write.format("kwire-iceberg").options(**options, **once).mode("append").save("sales.batch")
    found = {name: content(f"sales.{name}", catalog) for name in ("streamed", "job", "batch")}
    print(json.dumps(found | {"jobs": [each.total("rows") for each in job]}))
    spark.stop()


if __name__ == "__main__":
    assert kwire.spark
    main()
