"""The Python that Spark starts after `import kwire.spark`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.conftest import environment_of_a_new_session, need_java

from kwire.spark.process.python_choice import LAUNCHER, choose_python, spark_properties


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
    if python == LAUNCHER:
        assert environ.pop("KWIRE_SPARK_PYTHON") == sys.executable
        assert Path(environ.pop("KWIRE_PYSPARK"), "python", "lib", "pyspark.zip").exists()
    assert environ == before
    return python


def launched(code: str, *arguments: str, **environ: str) -> str:
    """Return what a program prints with `bin/python3`."""
    environ = {"KWIRE_SPARK_PYTHON": sys.executable, **environ}
    return subprocess.run(
        [LAUNCHER, "-c", code, *arguments], capture_output=True, text=True, check=True, env=environ
    ).stdout.strip()


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """No active session, as in a new process, since other tests may have started Spark."""
    monkeypatch.delitem(sys.modules, "pyspark.core.context", raising=False)


def test_spark_uses_the_python_of_the_program(elsewhere: dict[str, str]) -> None:
    assert chosen(dict(elsewhere)) == LAUNCHER
    assert chosen({**elsewhere, "PATH": ""}) == LAUNCHER
    assert chosen({**elsewhere, "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}) == LAUNCHER


def test_a_spark_that_is_not_in_the_installed_pyspark_keeps_its_zip_files(elsewhere: dict[str, str]) -> None:
    assert chosen({**elsewhere, "SPARK_HOME": "/opt/spark"}) == sys.executable
    active = {**elsewhere, "SPARK_HOME": "/opt/spark", "PATH": os.path.dirname(sys.executable)}
    assert chosen(active) is None


def test_the_archives_of_the_installed_pyspark_are_removed_from_the_path() -> None:
    pyspark = "/env with space/site-packages/pyspark"
    archives = [f"{pyspark}/python/lib/pyspark.zip", f"{pyspark}/jars/spark-core.jar"]
    path = ":".join([*archives, "/mine", *archives, "/opt/*/pyspark.zip"])
    code = "import os, sys; print(sys.executable, os.environ.get('PYTHONPATH'))"
    assert launched(code, PYTHONPATH=path, KWIRE_PYSPARK=pyspark) == f"{sys.executable} /mine:/opt/*/pyspark.zip"
    assert launched(code, PYTHONPATH=path) == f"{sys.executable} {path}"
    assert launched(code) == f"{sys.executable} None"


@pytest.mark.parametrize(
    ("module", "environ", "threads"),
    [
        ("pyspark.sql.worker.plan_data_source_read", {}, "1"),
        ("pyspark.sql.streaming.python_streaming_source_runner", {"OPENBLAS_NUM_THREADS": "3"}, "3"),
        ("pyspark.sql.worker.plan_data_source_read", {"OMP_NUM_THREADS": "2"}, "None"),
        ("pyspark.worker", {}, "None"),
    ],
)
def test_processes_that_plan_start_no_threads_of_openblas(module: str, environ: dict[str, str], threads: str) -> None:
    code = "import os; print(os.environ.get('OPENBLAS_NUM_THREADS'))"
    assert launched(code, module, **environ) == threads


def test_an_executor_on_another_machine_runs_the_python_of_its_environment(tmp_path: Path) -> None:
    launcher = tmp_path / "lib" / "python3.11" / "site-packages" / "kwire" / "spark" / "bin" / "python3"
    for path, text in ((launcher, Path(LAUNCHER).read_text()), (tmp_path / "bin" / "python3", "#!/bin/sh\necho $1\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    assert subprocess.run([launcher, "one"], capture_output=True, text=True, check=True, env={}).stdout == "one\n"


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
    assert chosen(dict(elsewhere)) == LAUNCHER
    defaults.write_text(f"spark.ui.enabled false\n{line}\n")
    assert chosen(dict(elsewhere)) is None
    assert len(dict(spark_properties({**elsewhere, "PYSPARK_SUBMIT_ARGS": "'"}))) == 2  # unbalanced quotes are Spark's
    home = Path(elsewhere["SPARK_CONF_DIR"]).parent
    assert chosen({"PATH": elsewhere["PATH"], "SPARK_HOME": str(home)}) is None


def test_an_active_virtual_environment_is_kept(elsewhere: dict[str, str]) -> None:
    path = os.path.dirname(sys.executable)
    environ = {**elsewhere, "PATH": path}
    choose_python(environ)
    assert "PYSPARK_PYTHON" not in environ  # executors may have Python elsewhere
    assert environ["PATH"] == f"{os.path.dirname(LAUNCHER)}:{path}"
    assert environ["KWIRE_SPARK_PYTHON"] == sys.executable


def test_a_running_session_is_unchanged(elsewhere: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    context = pytest.importorskip("pyspark.core.context")
    monkeypatch.setitem(sys.modules, "pyspark.core.context", context)
    monkeypatch.setattr(context.SparkContext, "_gateway", object())
    assert chosen(dict(elsewhere)) is None
    monkeypatch.setattr(context.SparkContext, "_gateway", None)
    assert chosen(dict(elsewhere)) == LAUNCHER


def test_importing_sets_pyspark_python_without_heavy_imports() -> None:
    program = """
import os, sys
import kwire.spark
heavy = {"pyspark", "py4j", "numpy", "pyarrow"} & set(sys.modules)
assert not heavy, heavy
print(os.environ["PYSPARK_PYTHON"])
"""
    kept = {name: value for name, value in os.environ.items() if "SPARK" not in name and name != "MASTER"}
    environ = kept | {"PATH": "/nonexistent"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environ)
    assert done.stdout.strip() == LAUNCHER, done.stderr


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("path", ["/usr/bin:/bin", f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"])
def test_sparks_processes_import_the_installed_pyspark(path: str) -> None:
    pytest.importorskip("pyspark")
    need_java()
    program = """
import kwire.spark
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()

@udf("array<string>")
def imported():
    import py4j, pyspark, sys
    return [sys.executable, pyspark.__file__, py4j.__file__]

print(*spark.range(1).select(imported()).first()[0])
"""
    environ = {**environment_of_a_new_session(), "PATH": path}
    environ.pop("PYSPARK_PYTHON", None), environ.pop("PYSPARK_DRIVER_PYTHON", None)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    python, *modules = done.stdout.split()
    assert python == sys.executable
    assert [".zip" in module for module in modules] == [False, False]
