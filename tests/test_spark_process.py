"""Spark in a new process, as users start it, instead of the shared session of tests/spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import environment_of_a_new_session, need_java

FRESH = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.driver.memory", "512m").getOrCreate()
print("rows", spark.read.format("kafka-log").option("columns", "offset").option("subscribe", "ids").load(sys.argv[1]).count())
print("kwire here", "kwire" in sys.modules)
spark.stop()
"""  # noqa: E501


@pytest.mark.spark
def test_the_format_is_found_by_name_without_importing_kwire(kafka_logs: dict[str, Path]) -> None:
    need_java()
    shown = subprocess.run(
        [sys.executable, "-c", FRESH, str(kafka_logs["modern"] / "data")],
        capture_output=True,
        text=True,
        check=True,
        env=environment_of_a_new_session(),
    )
    assert shown.stdout.split("\n")[:2] == ["rows 1500", "kwire here False"]
