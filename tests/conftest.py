"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import golden
from tests.object_store import ObjectStore, serve_object_store

# What gates a change draws the same examples every time; people's runs and `./dev fuzz` look for new ones.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker for all Spark tests, so that a run starts one JVM; the other tests go where there is room.

    xdist_group marks would say the same, but xdist 3.8 writes them where pytest 9.2 does not look.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith(("tests/spark/", "tests/docs/")) else nodeid

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def kafka_logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with real log directories by name (modern, modern44, legacy, unclean, wire); read only."""

    class Logs(dict[str, Path]):
        def __missing__(self, name: str) -> Path:
            self[name] = golden.extract(name, root)
            return self[name]

    root = tmp_path_factory.mktemp("kafka-logs")
    return Logs()


@pytest.fixture
def object_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """S3 on loopback, empty; mark tests with filterwarnings("ignore"), which boto and its server need."""
    with serve_object_store(monkeypatch) as store:
        yield store
