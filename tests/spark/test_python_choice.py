"""The Python that Spark starts after `import kwire.spark`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kwire.spark.python_choice import choose_python, spark_properties


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """An environment with another python3 and without Spark."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").write_text("#!/bin/sh\n")
    (folder / "python3").chmod(0o755)
    (tmp_path / "conf").mkdir()
    return {"PATH": str(folder), "SPARK_CONF_DIR": str(tmp_path / "conf")}


def chosen(environ: dict[str, str]) -> str | None:
    before = dict(environ)
    choose_python(environ)
    python = environ.pop("PYSPARK_PYTHON", None)
    before.pop("PYSPARK_PYTHON", None)
    assert environ == before
    return python


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """No active session, as in a new process, since other tests may have started Spark."""
    monkeypatch.delitem(sys.modules, "pyspark.core.context", raising=False)


def test_spark_uses_the_python_of_the_program(elsewhere: dict[str, str]) -> None:
    assert chosen(dict(elsewhere)) == sys.executable
    assert chosen({**elsewhere, "PATH": ""}) == sys.executable
    assert chosen({**elsewhere, "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}) == sys.executable


@pytest.mark.parametrize(
    "more",
    [
        {"PYSPARK_PYTHON": "/opt/python"},
        {"PYSPARK_DRIVER_PYTHON": "/opt/python"},
        {"PYSPARK_GATEWAY_PORT": "40001"},  # a program of spark-submit
        {"SPARK_ENV_LOADED": "1"},  # a Python worker
        {"MASTER": "spark://master:7077"},
        {"SPARK_REMOTE": "sc://server"},
        {"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"},
        {"PYSPARK_SUBMIT_ARGS": "--conf spark.pyspark.python=/opt/python pyspark-shell"},
    ],
)
def test_a_configured_python_is_kept(elsewhere: dict[str, str], more: dict[str, str]) -> None:
    assert chosen({**elsewhere, **more}) == more.get("PYSPARK_PYTHON")


@pytest.mark.parametrize(
    "line",
    [
        "spark.pyspark.python /opt/python",
        "spark.pyspark.driver.python=/opt/python",
        "  spark.master\tspark://master:7077",
    ],
)
def test_spark_defaults_apply(elsewhere: dict[str, str], line: str) -> None:
    defaults = Path(elsewhere["SPARK_CONF_DIR"], "spark-defaults.conf")
    defaults.write_text("# spark.pyspark.python /not/this\n\nspark.ui.enabled false\n")
    assert chosen(dict(elsewhere)) == sys.executable
    defaults.write_text(f"spark.ui.enabled false\n{line}\n")
    assert chosen(dict(elsewhere)) is None
    assert len(dict(spark_properties({**elsewhere, "PYSPARK_SUBMIT_ARGS": "'"}))) == 2  # unbalanced quotes are Spark's
    home = Path(elsewhere["SPARK_CONF_DIR"]).parent
    assert chosen({"PATH": elsewhere["PATH"], "SPARK_HOME": str(home)}) is None


def test_an_active_virtual_environment_is_kept(elsewhere: dict[str, str]) -> None:
    assert chosen({**elsewhere, "PATH": os.path.dirname(sys.executable)}) is None


def test_a_running_session_is_unchanged(elsewhere: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    context = pytest.importorskip("pyspark.core.context")
    monkeypatch.setitem(sys.modules, "pyspark.core.context", context)
    monkeypatch.setattr(context.SparkContext, "_gateway", object())
    assert chosen(dict(elsewhere)) is None
    monkeypatch.setattr(context.SparkContext, "_gateway", None)
    assert chosen(dict(elsewhere)) == sys.executable


def test_importing_sets_pyspark_python_without_heavy_imports() -> None:
    program = """
import os, sys
import kwire.spark
heavy = {"pyspark", "py4j", "numba", "numpy", "pyarrow"} & set(sys.modules)
assert not heavy, heavy
print(os.environ["PYSPARK_PYTHON"])
"""
    kept = {name: value for name, value in os.environ.items() if "SPARK" not in name and name != "MASTER"}
    environ = kept | {"PATH": "/nonexistent"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environ)
    assert done.stdout.strip() == sys.executable, done.stderr
