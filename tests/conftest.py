"""Fixtures that every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import golden


@pytest.fixture(scope="session")
def kafka_logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with real log directories by name (modern, modern44, legacy, unclean, wire); read only."""

    class Logs(dict[str, Path]):
        def __missing__(self, name: str) -> Path:
            self[name] = golden.extract(name, root)
            return self[name]

    root = tmp_path_factory.mktemp("kafka-logs")
    return Logs()
