"""Fixtures with real log directories that tests may change."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def copied(kafka_logs: dict[str, Path], tmp_path: Path) -> Callable[[str, str], Path]:
    """copied("modern", "txn-0") -> a log directory with a writable copy of that partition and all checkpoints."""

    def copy(archive: str, partition: str) -> Path:
        source, target = (
            kafka_logs[archive.split("/")[0]] / "/".join([*archive.split("/")[1:], "data"]),
            tmp_path / "data",
        )
        target.mkdir(exist_ok=True)
        for file in source.iterdir():
            if file.is_file():
                shutil.copy2(file, target)
        shutil.copytree(source / partition, target / partition)
        return target

    return copy
