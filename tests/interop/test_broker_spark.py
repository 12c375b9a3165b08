"""Spark's Kafka connector reads and writes the broker's topics, in batch and streaming queries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.spark.conftest import need_java
from tests.waiting import HANG_S
from tools import kafka

from kwire.broker import Broker

pytestmark = [pytest.mark.jvm, pytest.mark.spark, pytest.mark.slow]

ROWS = 500
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

RANGE = {"startingOffsets": '{"in":{"0":10,"1":-2}}', "endingOffsets": '{"in":{"0":30,"1":5}}'}
servers, jars, folder = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "1g").config("spark.log.level", "ERROR")
    .config("spark.sql.shuffle.partitions", "2").getOrCreate()
)

def live(reader, topic, **options):
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": "true", **options}
    return reader.format("kafka").options(**options)

found = live(spark.read, "in").load()
result = {
    "rows": found.count(),
    "sum": found.select(F.sum(F.col("value").cast("string").cast("long"))).first()[0],
    "headers": found.select(F.sum(F.size("headers"))).first()[0],
    "partitions": sorted(r[0] for r in found.select("partition").distinct().collect()),
    "committed": live(spark.read, "tx", **{"kafka.isolation.level": "read_committed"}).load().count(),
    "range": live(spark.read, "in", **RANGE).load().count(),
}
found.select("key", "value", "headers").write.format("kafka").options(
    **{"kafka.bootstrap.servers": servers, "topic": "out", "kafka.compression.type": "zstd", "includeHeaders": "true"}
).save()
result["written"] = live(spark.read, "out").load().select(F.count("*"), F.sum(F.size("headers"))).first().asDict()
query = (
    live(spark.readStream, "in", startingOffsets="earliest", maxOffsetsPerTrigger="200").load()
    .select("key", "value").writeStream.format("kafka")
    .options(**{"kafka.bootstrap.servers": servers, "topic": "streamed", "checkpointLocation": folder})
    .trigger(availableNow=True).start()
)
query.awaitTermination()
result["batches"] = query.lastProgress["batchId"] + 1
result["streamed"] = live(spark.read, "streamed").load().select("value").distinct().count()
print("RESULT" + json.dumps(result))
spark.stop()
"""


def test_sparks_connector_reads_writes_and_streams(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    need_java()
    jars = ",".join(map(str, sorted(kafka.spark_connector_jars().glob("*.jar"))))
    with Broker() as broker:
        for name in ("in", "out", "tx", "streamed"):
            broker.call(lambda node, name=name: node.controller.create_topic(name, 2))
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": "lz4"})
        for number in range(ROWS):
            producer.produce("in", str(number), str(number), partition=number % 2, headers={"h": "1"})
        assert producer.flush(HANG_S) == 0
        transactional = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"})
        transactional.init_transactions(HANG_S)
        for commit in (True, False, True):
            transactional.begin_transaction()
            transactional.produce("tx", "x", partition=0)
            transactional.commit_transaction(HANG_S) if commit else transactional.abort_transaction(HANG_S)
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        (tmp_path / "program.py").write_text(PROGRAM)
        words = [broker.bootstrap_servers, jars, str(tmp_path / "checkpoint")]
        done = subprocess.run(
            [sys.executable, str(tmp_path / "program.py"), *words],
            env=environment, capture_output=True, text=True, timeout=HANG_S, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    assert json.loads(line.removeprefix("RESULT")) == {
        "rows": ROWS,
        "sum": sum(range(ROWS)),
        "headers": ROWS,
        "partitions": [0, 1],
        "committed": 2,
        "range": 25,
        "written": {"count(1)": ROWS, "sum(size(headers))": ROWS},
        "batches": 3,
        "streamed": ROWS,
    }
