"""The fixture kafka_spark in another project without a Spark session: Spark's own connector on the broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.conftest import need_java
from tests.test_pytest_plugin import run_project
from tools import kafka

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def kafka_spark_settings():
    return {"spark.jars": %r, "spark.sql.shuffle.partitions": 1}
"""
TESTS = """
import pytest

JOB = "upper(CAST(value AS string)) AS value"

def start_copy(session, servers, checkpoint):
    rows = session.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = rows.option("subscribe", "in").option("startingOffsets", "earliest").load().selectExpr("key", JOB)
    writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", "out")
    return writer.option("checkpointLocation", checkpoint).start()

@pytest.mark.parametrize("n", range(2))  # the second finds consumers and producers that Spark keeps
def test_a_job_from_topic_to_topic(kafka_spark, n):
    kafka_spark.create_topic("in", 2)
    kafka_spark.create_topic("out", 2)
    servers = kafka_spark.bootstrap_servers
    stream = kafka_spark.start(lambda checkpoint: start_copy(kafka_spark.session, servers, checkpoint))
    kafka_spark.add_data("in", ("k", "a"), "b")
    stream.process_all()
    kafka_spark.check_topic("out", [("k", "A"), "B"])
    stream.restart()
    kafka_spark.add_data("in", f"c{n}")
    stream.process_all()
    kafka_spark.check_topic("out", ["A", "B", f"C{n}"])

def test_rows_of_the_connector(kafka_spark):
    kafka_spark.create_topic("in", 2)
    stream = kafka_spark.start(kafka_spark.read("in", format="kafka").selectExpr(JOB))
    kafka_spark.add_data("in", "a", "b")
    stream.process_all()
    stream.check_answer(["A", "B"])
    assert kafka_spark.session.conf.get("spark.sql.shuffle.partitions") == "1"
    assert kafka_spark.session.sparkContext.uiWebUrl is None
"""


def test_a_project_without_a_session_tests_jobs_of_sparks_connector(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    need_java()
    jars = ",".join(map(str, sorted(kafka.spark_connector_jars().glob("*.jar"))))
    output = run_project(tmp_path, {"conftest.py": CONFTEST % jars, "test_jobs.py": TESTS})
    assert "3 passed" in output, output
