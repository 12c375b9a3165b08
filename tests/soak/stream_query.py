"""One streaming query in a separate process, to be killed: `python -m tests.soak.stream_query`.

    live-live           kafka-live -> kafka-live, in transactions
    live-shuffled-live  the same, by key to other tasks between
    live-parquet        kafka-live -> Parquet files, Spark's own sink
    live-logs           kafka-live -> foreachBatch -> a kafka-log directory for each micro-batch
    live-iceberg        kafka-live -> kwire-iceberg
    live-delta          kafka-live -> kwire-delta
    log-live            the broker's log directory, as kafka-log -> kafka-live, in transactions

All of them read committed records of the topic `in` and write its keys, and its values enclosed in `<` and `>`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LAKE", "PREFIX", "VARIANTS", "table_options"]

VARIANTS = ("live-live", "live-shuffled-live", "live-parquet", "live-logs", "live-iceberg", "live-delta", "log-live")
LAKE = ("live-iceberg", "live-delta")
PREFIX = "chaos"


def rows(spark: SparkSession, variant: str, servers: str, data: str, limit: str) -> DataFrame:
    """Return the rows of the query, changed so that the sink differs from a copy of the topic."""
    reader = spark.readStream.option("subscribe", "in").option("startingOffsets", "earliest")
    reader = reader.option("kafka.isolation.level", "read_committed").option("maxOffsetsPerTrigger", limit)
    if variant.startswith("log"):
        # a task for each partition: a sink of one task commits it whole or not at all
        found = reader.format("kafka-log").option("maxRecordsPerPartition", limit).load(data)
    else:
        found = reader.format("kafka-live").option("kafka.bootstrap.servers", servers).load()
    if "shuffled" in variant:
        found = found.repartition(5, "key")
    where = ("topic", "partition", "offset") if variant in LAKE else ()
    return found.selectExpr(*where, "key", "concat('<', CAST(value AS string), '>') AS value")


def save_directory(batch: DataFrame, number: int, folder: Path) -> None:
    """Write the log directory of a micro-batch; it replaces that of an earlier run."""
    if batch.isEmpty():  # a micro-batch of transaction markers alone; a log directory has records
        return
    folder.mkdir(exist_ok=True)
    writer = batch.write.format("kafka-log").option("topic", "out").option("partitions", 4)
    writer.mode("overwrite").save(str(folder / f"batch-{number:06d}"))


def table_options(variant: str, folder: Path) -> dict[str, str]:
    """Return the options of a table."""
    if variant == "live-delta":
        return {"path": str(folder / "table")}
    return {
        "table": "soak.rows",
        "catalog.type": "sql",
        "catalog.uri": f"sqlite:///{folder}/catalog.db",
        "catalog.warehouse": f"file://{folder}/warehouse-iceberg",
    }


def main() -> None:
    """Run until the query ends. Raises its error."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.stream_query", description=__doc__)
    parser.add_argument("variant", choices=VARIANTS)
    parser.add_argument("servers")
    parser.add_argument("folder", type=Path)
    parser.add_argument("data")
    parser.add_argument("--limit", default="20000")
    parser.add_argument("--rest", action="store_true", help="end when all available records have been read")
    given = parser.parse_args()
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2,4]")  # tasks whose worker is killed are tried again
        .appName("chaos")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.warehouse.dir", str(given.folder / "warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    found = rows(spark, given.variant, given.servers, given.data, given.limit)
    writer = found.writeStream.option("checkpointLocation", str(given.folder / "checkpoint"))
    if given.variant.endswith("live"):
        writer = writer.format("kafka-live").option("kafka.bootstrap.servers", given.servers)
        writer = writer.option("topic", "out").option("transactionalIdPrefix", PREFIX)
    elif given.variant in LAKE:
        options = table_options(given.variant, given.folder)
        writer = writer.format(f"kwire-{given.variant.removeprefix('live-')}").options(**options)
    elif given.variant == "live-parquet":
        writer = writer.format("parquet").option("path", str(given.folder / "parquet"))
    else:
        writer = writer.foreachBatch(lambda batch, number: save_directory(batch, number, given.folder / "logs"))
    if given.rest:
        writer = writer.trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # once, and without the JVM's part of it
        print(f"ended: {str(error).split('JVM stacktrace')[0][-6000:]}", file=sys.stderr, flush=True)
        raise SystemExit(1) from None
