"""Fixtures to run commands in the test's process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kwire.cli.main import run


@dataclass(frozen=True)
class Result:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def kwire(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Function that runs a command: kwire("log", "ls", path) -> Result."""

    def call(*arguments: str | Path) -> Result:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call
