"""The wheel: all of the package and nothing else, whole with the libraries it names, and Spark finds its formats."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import kwire
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


# Uses messages, records and a broker where nothing is compiled.
WITHOUT_CODE = """
import importlib.util, json
from kwire import native
from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.messages import CreateTopicsRequest, FetchRequest
from kwire.records import ColumnReader, from_arrow
import pyarrow as pa
rows = pa.record_batch({"key": pa.array([b"a", b"b"], pa.binary()), "value": pa.array([b"1", None], pa.binary())})
request = FetchRequest(max_wait_ms=7)
with Broker() as broker, Client(broker.bootstrap_servers) as client, Producer(client) as producer:
    topic = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
    client.request(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    producer.send("orders", 0, from_arrow(rows, compression="lz4", **producer.fields("orders", 0)), 2)
    fetched = b"".join(each.records for each in client.read("orders", 0, 0, 2))
read = [row for batch in ColumnReader(["key", "value"]).read(fetched) for row in batch.to_pylist()]
print(json.dumps({
    "level": native.LEVEL,
    "message": FetchRequest.decode(request.encode(version=17), version=17) == request,
    "read": [[row[name] and row[name].decode() for name in ("key", "value")] for row in read],
}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed.build_wheel(tmp_path_factory.mktemp("wheel"))


def test_it_has_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        licenses = {name.partition("/licenses/")[2] for name in archive.namelist() if "/licenses/" in name}
    assert licenses == {"LICENSE", "NOTICE"}
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    there = {line for line in tracked.stdout.splitlines() if (ROOT / line).exists()}
    assert {f"src/{name}" for name in names} == {*there, "src/kwire/native/_kernels.abi3.so"}
    assert {name.partition("/")[0] for name in names} == {path.name for path in (ROOT / "src").iterdir()}


@pytest.mark.slow
def test_a_wheel_built_from_the_sdist_is_the_same(wheel: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    installed.run([*build, "-t", "sdist"], cwd=ROOT, timeout=600)
    (packed,) = tmp_path.glob("*.tar.gz")
    assert packed.stat().st_size < 4_000_000
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    installed.run([*build, "-t", "wheel"], cwd=tmp_path / packed.name.removesuffix(".tar.gz"), timeout=600)
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as found, zipfile.ZipFile(wheel) as expected:
        assert {each.filename: each.CRC for each in found.infolist()} == {
            each.filename: each.CRC for each in expected.infolist()
        }


def test_an_environment_with_what_it_asks_for_runs_all_of_it(wheel: Path, tmp_path: Path) -> None:
    python = installed.make_environment(tmp_path / "environment", wheel, extras=("cli", "spark"), compiled=False)
    variables = installed.environment(python, tmp_path / "home")
    told = json.loads(installed.run([str(python), "-c", PROGRAM], env=variables, cwd=tmp_path))
    assert told["file"].startswith(str(tmp_path))
    assert not [path for path in told["path"] if path.startswith(str(ROOT))]
    assert told["formats"] == {
        "kafka-capture": "kwire.spark.capture.source",
        "kafka-internal": "kwire.spark.internal.source",
        "kafka-live": "kwire.spark.live.source",
        "kafka-log": "kwire.spark.log.source",
        "kwire-delta": "kwire.spark.lake.source",
        "kwire-iceberg": "kwire.spark.lake.source",
    }
    assert told["missing"] == {"kwire.pytest_plugin": "pytest"}  # needs more than the wheel asks for
    shown = installed.run([str(python.with_name("kwire")), "--version"], env=variables, cwd=tmp_path)
    assert shown.split()[1] in wheel.name
    assert "kernels: x86-64" in shown or "kernels: arm" in shown


@pytest.mark.slow
def test_a_wheel_without_compiled_code_does_the_same_in_plain_python(tmp_path: Path) -> None:
    wheel = installed.build_wheel(tmp_path / "wheel", KWIRE_WHEEL_TARGET="any")
    assert wheel.name.endswith("-py3-none-any.whl")
    python = installed.make_environment(tmp_path / "environment", wheel, extras=("arrow", "cli"), compiled=False)
    variables = installed.environment(python, tmp_path / "home")
    found = installed.results(installed.run([str(python), "-c", WITHOUT_CODE], env=variables, cwd=tmp_path))
    assert found == {"level": None, "message": True, "read": [["a", "1"], ["b", None]]}
    shown = installed.run([str(python.with_name("kwire")), "--version"], env=variables, cwd=tmp_path)
    assert shown.strip().endswith("(kernels: none, plain Python)")
    built = subprocess.run(
        [str(python), "-m", "kwire.native.build"],
        env=variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (1, "ziglang: not installed; pip install 'kwire[compiler]'\n")


def test_wheels_are_built_with_the_compilers_of_the_lock() -> None:
    """Equal versions give equal bytes, also with `python -m build`."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    locked = (ROOT / "requirements.lock").read_text()
    for name in ("ziglang",):
        (pinned,) = (each for each in needed if each.startswith(f"{name}=="))
        assert f"\n{pinned} " in locked


def metadata_of(root: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "hatchling", "metadata"]
    found: dict[str, Any] = json.loads(installed.run(command, cwd=root, env=dict(os.environ)))
    return found


RELATIVE_LINK = re.compile(r"\]\((?!https://)[^)]*\)")


def test_the_readme_of_the_metadata_has_no_dead_links(tmp_path: Path) -> None:
    """It is shown by package indexes, where no other file of the repository is."""
    assert len(RELATIVE_LINK.findall((ROOT / "README.md").read_text("utf-8"))) > 40
    found = metadata_of(ROOT)
    assert RELATIVE_LINK.findall(found["readme"]["text"]) == []
    assert "Quick start (`docs/quickstart.md`)" in found["readme"]["text"]
    for name in ("README.md", "LICENSE", "NOTICE", "hatch_build.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    settings = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'repository = ""' in settings
    (tmp_path / "pyproject.toml").write_text(
        settings.replace('repository = ""', 'repository = "https://example.org/kwire/"')
    )
    found = metadata_of(tmp_path)
    assert RELATIVE_LINK.findall(found["readme"]["text"]) == []
    assert (
        f"[Quick start](https://example.org/kwire/blob/v{kwire.__version__}/docs/quickstart.md)"
        in found["readme"]["text"]
    )
    assert found["urls"]["Source"] == "https://example.org/kwire"


@pytest.mark.slow
def test_two_builds_of_the_module_are_equal(tmp_path: Path) -> None:
    """In different folders, with different seeds of hashes, and at different times."""
    found = []
    for number in (1, 2):
        root = tmp_path / f"checkout {number}"
        shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        (root / "tmp").mkdir()
        variables = {"PYTHONPATH": str(root / "src"), "PYTHONHASHSEED": str(number), "TMPDIR": str(root / "tmp")}
        command = [sys.executable, "-m", "kwire.native.build"]
        path = installed.run(command, cwd=root, env={**os.environ, **variables}, timeout=800).strip()
        assert path.startswith(str(root))
        found.append(Path(path).read_bytes())
    assert found[0] == found[1]
