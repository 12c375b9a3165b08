"""Fixtures that every test may use."""

from __future__ import annotations

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tools import kafka
from tools.kafka import Unavailable

from tests import golden
from tests.object_store import ObjectStore, serve_object_store

# What gates a change draws the same examples every time; people's runs and `./dev fuzz` look for new ones. How long an
# example takes, to draw or to run, says something about the machine and nothing about the code.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

kafka.JVM_OPTIONS = kafka.SHORT_LIVED
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(kafka.SHORT_LIVED))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker for all tests of tests/spark, so that they share a JVM; the other tests go where there is room.

    xdist_group marks would say the same, but xdist 3.8 writes them where pytest 9.2 does not look.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith("tests/spark/") else nodeid

    return Scheduling(config, log)


# A test that lacks a program (Java, Maven, kcat ...) raises Unavailable, which names the command that installs it: the
# test is skipped, the closing lines say so, and with KWIRE_NO_SKIPS (`./dev interop`) the run fails.
MISSING = "missing here: "


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    try:
        return (yield)
    except Unavailable as missing:
        pytest.skip(f"{MISSING}{missing}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    try:
        return (yield)
    except Unavailable as missing:
        pytest.skip(f"{MISSING}{missing}")


def skipped_for_want(reports: list[pytest.TestReport]) -> dict[str, Counter[str]]:
    """What is missing on this machine -> the test modules that need it, with how many of their tests."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for report in reports:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if MISSING in reason:
            found[reason.partition(MISSING)[2]][report.nodeid.partition("::")[0]] += 1
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if found := skipped_for_want(terminalreporter.stats.get("skipped", [])):
        terminalreporter.section("tests skipped: something is missing on this machine", yellow=True)
        for missing, modules in found.items():
            terminalreporter.write_line(missing)
            for module, count in sorted(modules.items()):
                terminalreporter.write_line(f"    {count:4} of {module}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("KWIRE_NO_SKIPS") and reporter and skipped_for_want(reporter.stats.get("skipped", [])):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


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
