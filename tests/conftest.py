"""Fixtures and hooks for all tests."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tools import kafka
from tools.kafka import Unavailable

from tests import golden
from tests.object_store import ObjectStore, serve_object_store
from tests.sampling import mark_sampled

# CI draws the same examples every time; local runs and `./dev fuzz` draw new ones. There is no deadline for examples:
# their duration depends on the machine.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

kafka.JVM_OPTIONS = kafka.SHORT_LIVED
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(kafka.SHORT_LIVED))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run all of tests/spark on one worker, so that they share a JVM; distribute the other tests by module.

    Tests of a module share its fixtures. One by one they would also cost time: at the end of each test, xdist counts
    the tests of all units that a worker ever got, which is half a minute for 16,000 units.
    xdist_group marks would do the same, but xdist 3.8 stores them where pytest 9.2 does not look.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith("tests/spark/") else nodeid.partition("::")[0]

    config.option.loadscopereorder = False  # else what takes longest, modules of one test, runs last
    return Scheduling(config, log)


# A test that needs a missing program (Java, Maven, kcat) raises Unavailable with the command that installs it. The test
# is skipped and listed in the summary; with KWIRE_NO_SKIPS (`./dev interop`) the run fails. KWIRE_NO_SKIPS=all, of
# .ci/run, makes it fail for any skip.
MISSING = "missing here: "


class MissingClient(MetaPathFinder):
    """Skips what imports confluent-kafka where it is not installed: the newest Python has no wheel at first."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Find nothing; the last finder is asked for modules that no other has found."""
        if name == "confluent_kafka":
            pytest.skip(f"{MISSING}confluent-kafka: pip install confluent-kafka", allow_module_level=True)


sys.meta_path.append(MissingClient())


# The allocators of C and Arrow keep what tests have freed: workers reached 1.6 GB, of which they used 0.3.
FREED_BYTES = 64 << 20
malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
resident_bytes = 0


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark cases of sampled tests."""
    mark_sampled(items)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """Return freed memory to the system where the process has grown."""
    global resident_bytes
    if malloc_trim is not None and memory_bytes() > resident_bytes + FREED_BYTES:
        malloc_trim(0)
        if arrow := sys.modules.get("pyarrow"):
            arrow.default_memory_pool().release_unused()
        resident_bytes = memory_bytes()


def memory_bytes() -> int:
    """Return the resident memory of this process; 0 on systems without /proc."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


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
    except ImportError as missing:  # of plan.codec(kernels=True)
        from kwire import native

        if native.LEVEL is None and native.VARIABLE in str(missing):
            pytest.skip(str(missing))
        raise


def missing_programs(reports: list[pytest.TestReport]) -> dict[str, Counter[str]]:
    """Return the test modules that need each missing program, with the number of skipped tests."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for report in reports:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if MISSING in reason:
            found[reason.partition(MISSING)[2]][report.nodeid.partition("::")[0]] += 1
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if found := missing_programs(terminalreporter.stats.get("skipped", [])):
        terminalreporter.section("tests skipped: something is missing on this machine", yellow=True)
        for missing, modules in found.items():
            terminalreporter.write_line(missing)
            for module, count in sorted(modules.items()):
                terminalreporter.write_line(f"    {count:4} of {module}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    refused = os.environ.get("KWIRE_NO_SKIPS")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if (refused and missing_programs(skipped)) or (refused == "all" and skipped):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def kafka_logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with log directories of real Kafka by name (modern, modern44, legacy, unclean, wire); read only."""

    class Logs(dict[str, Path]):
        def __missing__(self, name: str) -> Path:
            self[name] = golden.extract(name, root)
            return self[name]

    root = tmp_path_factory.mktemp("kafka-logs")
    return Logs()


@pytest.fixture
def object_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """An empty S3 server on loopback; mark tests with filterwarnings("ignore"), which boto and its server need."""
    with serve_object_store(monkeypatch) as store:
        yield store


@pytest.fixture
def copied(kafka_logs: dict[str, Path], tmp_path: Path) -> Callable[[str, str], Path]:
    """copied("modern", "txn-0") returns a log directory with a copy of that partition and all checkpoints."""

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
