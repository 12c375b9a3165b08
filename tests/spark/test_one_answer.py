"""The same queries have the same answers in Spark and Sail as in DuckDB."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("duckdb")

from tests.sql.one_answer import OF_SESSIONS, Engine, ask_duckdb, ask_engine, call, draw
from tests.sql.test_one_answer import QUERIES, SOME_WRITTEN
from tools.sail import SailEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check(engine: Engine, kind: str, folder: Path) -> None:
    folders = [folder / name for name in ("draw", "directory", "other")]
    for each in folders:
        each.mkdir()
    conditions = draw(QUERIES, 1, folders[0])
    expected = ask_duckdb("directory", conditions, folders[1], SOME_WRITTEN)
    assert ask_engine(engine, kind, conditions, folders[2], SOME_WRITTEN) == expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", OF_SESSIONS)
def test_spark_has_the_answers_of_duckdb(spark: SparkSession, kind: str, tmp_path: Path) -> None:
    check(partial(call, spark), kind, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", OF_SESSIONS)
def test_sail_has_the_answers_of_duckdb(sail: SailEngine, kind: str, tmp_path: Path) -> None:
    check(sail, kind, tmp_path)
