"""README.md: its examples run exactly as printed, and its lines are short."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.examples import PAGES, blocks, needs_spark
from tests.spark.conftest import need_java
from tests.waiting import HANG_S

PYTHON, SHELL = blocks("README.md", "python"), blocks("README.md", "sh")
MAX_LINE = 120


def run(arguments: list[str], folder: Path, stdin: str | None = None) -> str:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        arguments, cwd=folder, env=environment, input=stdin, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a reader who has run the program that writes `data`."""
    path = tmp_path_factory.mktemp("reader")
    (writing,) = (source for source in PYTHON if "range(1000)" in source)
    run([sys.executable, "-c", writing], path)
    return path


def kwire(words: str, folder: Path) -> str:
    program, *arguments = words.split()
    assert program == "kwire"
    return run([sys.executable, "-m", "kwire.cli", *arguments], folder)


@pytest.mark.spark
def test_spark_reads_the_log_directory(folder: Path) -> None:
    need_java()
    listed = kwire("kwire log ls data --format json", folder)
    ends = [each["log_end_offset"] for each in json.loads(listed) if each["topic"] == "orders"]
    assert (len(ends), sum(ends)) == (3, 1000)
    (program,) = filter(needs_spark, PYTHON)
    printed = run([sys.executable, "-c", program], folder)
    counts = [line.split("|")[1:3] for line in printed.splitlines()[3:6]]
    assert [[int(number) for number in row] for row in counts] == [[i, end] for i, end in enumerate(ends)]


def test_a_topic_becomes_a_table_once(folder: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    (append,) = (source for source in SHELL if "lake append" in source)
    for _ in range(2):
        kwire(append, folder)
        assert deltalake.DeltaTable(folder / append.split()[4]).to_pyarrow_table().num_rows == 1000


def test_damage_is_found(folder: Path) -> None:
    (verify,) = (source for source in SHELL if "log verify" in source)
    assert "no damage" in kwire(verify, folder)
    damaged = folder / "damaged"
    shutil.copytree(folder / "data", damaged / "data")
    segment = max(damaged.glob("data/orders-*/*.log"), key=lambda path: path.stat().st_size)
    segment.write_bytes(segment.read_bytes()[:-3] + b"xyz")
    with pytest.raises(AssertionError, match=r"CRC|checksum"):
        kwire(verify, damaged)


def test_the_broker_fixture_delivers_an_order(tmp_path: Path) -> None:
    (test,) = (source for source in PYTHON if "def test_" in source)
    (tmp_path / "test_orders.py").write_text(test)
    printed = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_orders.py"], tmp_path)
    assert "1 passed" in printed


def test_lines_are_short() -> None:
    assert [line for line in PAGES["README.md"].read_text("utf-8").splitlines() if len(line) > MAX_LINE] == []
