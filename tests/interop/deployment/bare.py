"""A Spark Connect client with PySpark but without kwire: bare.py REMOTE LOGS OUT SERVERS TOPIC."""

from __future__ import annotations

import importlib.util
import json
import sys

from pyspark.sql import SparkSession

assert importlib.util.find_spec("kwire") is None
remote, logs, out, servers, topic = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
found = spark.read.format("kafka-log").option("subscribe", "orders").load(logs)
live = {"kafka.bootstrap.servers": servers}
found.select("key", "value").write.format("kafka-live").options(**live, topic=topic).mode("append").save()
query = (
    spark.readStream.format("kafka-live")
    .options(**live, subscribe=topic, startingOffsets="earliest")
    .load()
    .writeStream.format("parquet")
    .option("path", f"{out}/rows")
    .option("checkpointLocation", f"{out}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
assert query.awaitTermination(600)
reported = {
    "log": found.count(),
    "streamed": spark.read.parquet(f"{out}/rows").count(),
    "offsets": spark.read.format("kafka-internal")
    .option("kind", "offsets")
    .load(logs)
    .where("offset IS NOT NULL")
    .count(),
}
spark.stop()
print(json.dumps(reported))
