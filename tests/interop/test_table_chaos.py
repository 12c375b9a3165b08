"""Streams into tables are killed while they commit; each row is in the table once, and no orphan is left."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.soak.tables import FORMATS, SCENARIOS, soak_tables
from tests.spark.conftest import need_java

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

pytestmark = [pytest.mark.jvm, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_has_every_row_once_despite_kills(format: str, tmp_path: Path) -> None:
    need_java()
    report = soak_tables(tmp_path, format=format, scenario=SCENARIOS[0], kills=5, seed=1)
    assert report.kills >= 5
    assert report.rows > 100
    assert report.orphans > 0


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_without_rows_in_the_jvm_writes_every_row_once_despite_kills(format: str, tmp_path: Path) -> None:
    need_java()
    scenario = next(each for each in SCENARIOS if each.is_direct)
    report = soak_tables(tmp_path, format=format, scenario=scenario, kills=12, seed=2)
    assert report.kills >= 12
    assert report.rows > 100
    assert report.orphans > 0
