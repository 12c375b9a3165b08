"""The tests in examples/, in Java, Go and JavaScript, as their README runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import HANG_S
from tools.kafka import ROOT, Unavailable, need

pytestmark = [pytest.mark.slow]

GO = "/usr/local/go/bin"  # where go's own archive is unpacked
NO_NETWORK = ("dial tcp", "could not be resolved", "Could not transfer artifact", "EAI_AGAIN", "ENOTFOUND", "ETIMEDOUT")


def run(folder: Path, program: str, install: str, *commands: list[str]) -> str:
    """Run commands in a folder, with `kwire` on the path; return their output. Raises Unavailable."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""), GO))
    found = shutil.which(program, path=path)
    if found is None:
        need(program, install)
    output = ""
    for command in commands:
        done = subprocess.run(
            [str(found), *command],
            cwd=folder,
            env={**os.environ, "PATH": path, "GOTOOLCHAIN": "local", "CI": "1"},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        output += done.stdout + done.stderr
        if done.returncode and any(each in output for each in NO_NETWORK):
            raise Unavailable(f"{program} could not fetch the packages of examples/{folder.name}: {output[-300:]}")
        assert done.returncode == 0, output
    return output


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of the folder, in which builds leave their files."""
    return Path(shutil.copytree(ROOT / "examples", tmp_path / "examples"))


def test_java(examples: Path) -> None:
    output = run(examples / "java", "mvn", "maven", ["--batch-mode", "test"])
    assert "Tests run: 2, Failures: 0, Errors: 0, Skipped: 0" in output


def test_go(examples: Path) -> None:
    output = run(examples / "go", "go", "golang-go", ["test", "-v", "-mod=readonly", "./..."])
    assert "--- PASS: TestAnOrderArrives" in output
    assert "--- PASS: TestOnePartitionFailsAndTheOthersDoNot" in output


def test_node(examples: Path) -> None:
    output = run(examples / "node", "npm", "npm", ["install", "--no-audit", "--no-fund"], ["test"])
    assert "# pass 2" in output
    assert "# fail 0" in output
