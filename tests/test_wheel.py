"""The wheel: all of the package and nothing else, whole with the libraries it names, and Spark finds its formats."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.interop import installed

ROOT = Path(__file__).parents[1]

# Imports every module, and looks formats up as Spark does; says what it got and from where.
PROGRAM = """
import importlib, json, pkgutil, sys
import kwire
missing = {}
for module in pkgutil.walk_packages(kwire.__path__, "kwire."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        missing[module.name] = error.name
found = {}
for module in pkgutil.iter_modules():
    if module.name.startswith("pyspark_"):
        source = importlib.import_module(module.name).DefaultSource
        found[source.name()] = source.__module__
print(json.dumps({"file": kwire.__file__, "missing": missing, "formats": found, "path": sys.path}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed.build_wheel(tmp_path_factory.mktemp("wheel"))


def test_it_has_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    there = {line for line in tracked.stdout.splitlines() if (ROOT / line).exists()}
    assert {f"src/{name}" for name in names} == {*there, "src/kwire/native/_kernels.abi3.so"}
    assert {name.partition("/")[0] for name in names} == {path.name for path in (ROOT / "src").iterdir()}


def test_an_environment_with_what_it_asks_for_runs_all_of_it(wheel: Path, tmp_path: Path) -> None:
    python = installed.make_environment(tmp_path / "environment", wheel, "pyspark", compiled=False)
    variables = installed.environment(python, tmp_path / "home")
    told = json.loads(installed.run([str(python), "-c", PROGRAM], env=variables, cwd=tmp_path))
    assert told["file"].startswith(str(tmp_path))
    assert not [path for path in told["path"] if path.startswith(str(ROOT))]
    assert told["formats"] == {
        "kafka-capture": "kwire.spark.capture.source",
        "kafka-internal": "kwire.spark.internal.source",
        "kafka-live": "kwire.spark.live.source",
        "kafka-log": "kwire.spark.log.source",
    }
    # pytest's plugin and what compiles kernels need more than the wheel asks for
    assert told["missing"] == {"kwire.pytest_plugin": "pytest", "kwire.wire.kernels.intrinsics": "llvmlite"}
    shown = installed.run([str(python.with_name("kwire")), "--version"], env=variables, cwd=tmp_path)
    assert shown.split()[1] in wheel.name
    assert "kernels: x86-64" in shown or "kernels: arm" in shown
