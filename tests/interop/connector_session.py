"""A Spark session with Spark's Kafka connector and kwire's sources, in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.spark.conftest import need_java
from tests.waiting import HANG_S
from tools import kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["session"]


@contextmanager
def session() -> Iterator[SparkSession]:
    """A session on local[2] in a separate JVM with the connector's jars. Skips without Java or the connector."""
    pytest.importorskip("pyspark")
    need_java()
    jars = ",".join(map(str, sorted(kafka.spark_connector_jars().glob("*.jar"))))
    from pyspark.sql import SparkSession

    assert SparkSession.getActiveSession() is None, "another session would be taken, without the jars"
    end_jvm()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    found = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    try:
        yield found
    finally:
        found.stop()
        end_jvm()


def end_jvm() -> None:
    """Stop PySpark's JVM, if any, so that the next session starts one with its own class path."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        process = gateway.proc
        gateway.shutdown()
        process.stdin.close()  # what a JVM that PySpark starts waits for
        process.wait(HANG_S)
        SparkContext._gateway = SparkContext._jvm = None
