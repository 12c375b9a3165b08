"""Short soaks of `kwire lake` commands and jobs.table that are killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.soak.commands import WAYS, Way, soak_commands
from tests.soak.tables import FORMATS
from tests.spark.conftest import need_java

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_killed_command_loses_and_doubles_nothing(format: str, way: Way, tmp_path: Path) -> None:
    report = soak_commands(tmp_path, format=format, way=way, kills=6, seed=1)
    assert report.kills >= 6


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["append", "changes", "fill"])
def test_a_command_that_is_killed_at_a_request_of_a_store(format: str, name: str, tmp_path: Path) -> None:
    (way,) = [each for each in WAYS if each.name == name]
    report = soak_commands(tmp_path, format=format, way=way, kills=4, seed=1, in_object_store=True)
    assert report.kills >= 4


@pytest.mark.jvm
@pytest.mark.spark
@pytest.mark.parametrize("format", FORMATS)
def test_a_killed_job_loses_and_doubles_nothing(format: str, tmp_path: Path) -> None:
    need_java()
    report = soak_commands(tmp_path, format=format, way=WAYS[0], kills=4, seed=1, on_spark=True)
    assert report.kills + report.task_kills >= 4
