"""Passwords in options do not appear in plans, logs, events, errors, progress or checkpoints of real queries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.conftest import need_java

from kwire.broker import Broker

PASSWORD = "wonderland-7"
PROGRAM = """
import sys
from pyspark.sql import SparkSession

servers, folder, password, form = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "1g")
    .config("spark.eventLog.enabled", "true").config("spark.eventLog.compress", "false")
    .config("spark.eventLog.dir", f"file://{folder}/events").config("spark.log.level", "DEBUG").getOrCreate()
)


def secured(password, **more):
    login = f'required username="alice" password="{password}";'
    return {
        "kafka.bootstrap.servers": servers,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        **(
            {"kafka.sasl.jaas.config": f"org.apache.kafka.common.security.scram.ScramLoginModule {login}"}
            if form == "jaas" else {"kafka.sasl.username": "alice", "kafka.sasl.password": password}
        ),
        **more,
    }


def read(password, **more):
    return spark.read.format("kafka-live").options(**secured(password, subscribe="t", **more)).load()


def write(password, **more):
    rows = spark.range(20).selectExpr("CAST(id AS string) AS value")
    rows.write.format("kafka-live").options(**secured(password, topic="t", **more)).mode("append").save()


def stream(password, name):
    source = spark.readStream.format("kafka-live").options(**secured(password, subscribe="t"))
    sink = secured(password, topic="u", transactionalIdPrefix=name, checkpointLocation=f"{folder}/{name}")
    rows = source.option("startingOffsets", "earliest").load().select("value")
    query = rows.writeStream.format("kafka-live").options(**sink).trigger(availableNow=True).start()
    query.awaitTermination()
    query.explain(True)
    print(query.lastProgress)


write(password)
found = read(password)
assert found.count() == 20
found.explain("extended")
found.explain("formatted")
found.explain("codegen")
print(found, found._jdf.queryExecution().toString(), found.schema)
stream(password, "good")
for fails in (
    lambda: read(password + "x").count(),
    lambda: write(password + "x"),
    lambda: stream(password + "x", "bad"),
    lambda: read(password, nonsense="1"),
    lambda: read(password, **{"kafka.sasl.passwort": password}),
    lambda: write(password, **{"kafka.acks": "7"}),
):
    try:
        fails()
    except Exception as error:
        print("REFUSED:", error)
    else:
        sys.exit("a query with a wrong password or option works")
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("form", ["jaas", "plain"])
def test_passwords_do_not_appear_in_plans_logs_events_errors_or_checkpoints(tmp_path: Path, form: str) -> None:
    pytest.importorskip("pyspark")
    need_java()
    (tmp_path / "events").mkdir()
    with Broker(listeners="SASL_PLAINTEXT://127.0.0.1:0", users={"alice": PASSWORD}) as broker:
        broker.call(lambda node: [node.controller.create_topic(name, 2) for name in "tu"])
        arguments = [broker.bootstrap_servers, str(tmp_path), PASSWORD, form]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            capture_output=True, text=True, timeout=600, check=False,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr).replace(PASSWORD, "...")[-3000:]
    assert done.stdout.count("REFUSED:") == 6
    assert done.stdout.count("due to invalid credentials with SASL mechanism SCRAM-SHA-256") >= 3
    shown = {"stdout": done.stdout, "stderr": done.stderr}
    written = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any("events" in name for name in written)
    assert any("good/offsets" in name for name in written)
    assert [name for name, text in shown.items() if PASSWORD in text] == []
    assert [name for name, data in written.items() if PASSWORD.encode() in data] == []
