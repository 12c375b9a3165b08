"""Running the command line inside the test's process, and small log directories made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kwire.cli.main import run


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def kwire(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """kwire("log", "ls", path) -> its exit code and output."""

    def call(*arguments: str | Path) -> Result:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call
