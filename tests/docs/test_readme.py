"""README.md: its examples run exactly as printed, and its lines are short."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.examples import PAGES, blocks, needs_spark
from tests.spark.conftest import need_java
from tests.waiting import HANG_S

PYTHON = blocks("README.md", "python")
MAX_LINE = 120


def run(arguments: list[str], folder: Path, stdin: str | None = None) -> str:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        arguments, cwd=folder, env=environment, input=stdin, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.spark
def test_spark_reads_the_log_directory(tmp_path: Path) -> None:
    need_java()
    (writing,) = (source for source in PYTHON if "range(1000)" in source)
    run([sys.executable, "-c", writing], tmp_path)
    listed = run([sys.executable, "-m", "kwire.cli", "log", "ls", "data", "--format", "json"], tmp_path)
    ends = [each["log_end_offset"] for each in json.loads(listed) if each["topic"] == "orders"]
    assert (len(ends), sum(ends)) == (3, 1000)
    (program,) = filter(needs_spark, PYTHON)
    printed = run([sys.executable, "-c", program], tmp_path)
    counts = [line.split("|")[1:3] for line in printed.splitlines()[3:6]]
    assert [[int(number) for number in row] for row in counts] == [[i, end] for i, end in enumerate(ends)]


def test_the_broker_fixture_delivers_an_order(tmp_path: Path) -> None:
    (test,) = (source for source in PYTHON if "def test_" in source)
    (tmp_path / "test_orders.py").write_text(test)
    printed = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_orders.py"], tmp_path)
    assert "1 passed" in printed


def test_the_message_decodes(capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = (source for source in PYTHON if "decode(" in source)
    exec(compile(source, "README.md", "exec"), {})
    (shown,) = (line.partition("  # ")[2] for line in source.splitlines() if line.startswith("print("))
    assert capsys.readouterr().out == shown + "\n"


def test_lines_are_short() -> None:
    assert [line for line in PAGES["README.md"].read_text("utf-8").splitlines() if len(line) > MAX_LINE] == []
