"""The examples of docs/tables.md run from top to bottom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.docs.examples import blocks

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_examples_of_the_page_run_in_order(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    (tmp_path / "lake").mkdir()
    try:
        for source in blocks("tables.md", "python"):
            exec(compile(source.replace("/tmp/", f"{tmp_path}/"), "tables.md", "exec"), names)
        assert names["spark"] is spark
    finally:
        if "broker" in names:
            names["broker"].stop()
