"""KWIRE_SPARK_FORMATS: whether Spark finds the formats by name."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.datasource")

from tests.spark.conftest import environment_of_a_new_session

PACKAGES = sorted(module.name for module in pkgutil.iter_modules() if module.name.startswith("pyspark_kwire_"))
# What PySpark does at the first look-up: pyspark.sql.worker.lookup_data_sources.
LOOKUP = """
import importlib, sys
for name in sys.argv[1:]:
    print(getattr(getattr(importlib.import_module(name), "DefaultSource", None), "__name__", None))
print(sorted(name for name in sys.modules if name.startswith("kwire")))
"""
QUERY = """
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
try:
    session.read.format("kafka-log").load("/nowhere").count()
except Exception as error:
    print("DATA_SOURCE_NOT_FOUND" in str(error))
from kwire.spark import KafkaLogSource
session.dataSource.register(KafkaLogSource)
print(session.read.format("kafka-log").schema("offset LONG").load("/nowhere").columns)
"""


def looked_up(value: str | None) -> subprocess.CompletedProcess[str]:
    environment = {name: each for name, each in os.environ.items() if name != "KWIRE_SPARK_FORMATS"}
    if value is not None:
        environment["KWIRE_SPARK_FORMATS"] = value
    words = [sys.executable, "-c", LOOKUP, *PACKAGES]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def test_switched_off_the_packages_define_nothing() -> None:
    assert len(PACKAGES) == 6
    lines = looked_up("0").stdout.splitlines()
    assert lines == ["None"] * 6 + ["['kwire', 'kwire.errors', 'kwire.spark_formats']"]


@pytest.mark.parametrize("value", [None, "1"])
def test_otherwise_each_has_its_source(value: str | None) -> None:
    found = looked_up(value)
    assert len(set(found.stdout.splitlines()[:6]) - {"None"}) == 6, found.stderr


@pytest.mark.parametrize("value", ["", "off", "false"])
def test_another_value_is_refused(value: str) -> None:
    found = looked_up(value)
    assert found.returncode == 1
    assert f"KWIRE_SPARK_FORMATS={value}: expected 0, for no formats in Spark, or 1" in found.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_switched_off_spark_finds_no_format_but_those_registered(tmp_path: Path) -> None:
    environment = {**environment_of_a_new_session(), "KWIRE_SPARK_FORMATS": "0", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", QUERY], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-2:] == ["True", "['offset']"], done.stdout + done.stderr[-3000:]
