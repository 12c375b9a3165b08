"""The pytest fixtures `kafka_broker`, a Kafka broker for tests, `kafka_cluster`, `kafka_tap` and `kafka_spark`.

    def test_orders(kafka_broker):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})

One broker serves the session (with pytest-xdist, the session of a worker) and is reset after every test, which takes
milliseconds. Fixtures of a wider scope use `kafka_broker_session`, the same broker. To configure it, define a fixture
`kafka_broker_settings` that returns Kafka's broker configs, with underscores instead of dots; each set
of settings, for example of another folder, gets a broker of its own. The report of a failed test has the last requests
of its brokers.

`kafka_cluster` is a kwire.broker.Cluster of three nodes, with `kafka_cluster_settings`.

`kafka_tap` is a kwire.tap.Tap before the cluster whose address the project's fixture `kafka_tap_servers` returns, with
`kafka_tap_settings`. Its faults are removed after every test.

    def test_totals(kafka_spark):
        kafka_spark.create_topic("orders")
        stream = kafka_spark.start(kafka_spark.read("orders").selectExpr("CAST(value AS string)"))
        kafka_spark.add_data("orders", "one", "two")
        stream.process_all()
        stream.check_answer(["one", "two"])

`kafka_spark` is a kwire.testing.SparkTest on the Spark session of the project's fixture `spark`. Without such a fixture
it is `kafka_spark_session`, which starts once, with the configs of `kafka_spark_settings`.

pytest loads this module in every project where kwire is installed, so it imports only what pytest has imported.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from kwire.broker import Broker, Cluster
    from kwire.tap import Tap
    from kwire.testing.spark import SparkTest

__all__ = [
    "kafka_broker",
    "kafka_broker_session",
    "kafka_broker_settings",
    "kafka_cluster",
    "kafka_cluster_settings",
    "kafka_spark",
    "kafka_spark_session",
    "kafka_spark_settings",
    "kafka_tap",
    "kafka_tap_servers",
    "kafka_tap_settings",
]

KEPT_REQUESTS = 10_000
REPORTED_REQUESTS = 20


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Keep pytest from rewriting the assert statements of all modules of kwire, as it does with plugins.

    It parses each module at its first import. A broker imports in a thread of its own, and up to Python 3.11.7 and
    3.12.1 two threads that parse at a time may fail (gh-106905): "SystemError: AST constructor recursion depth
    mismatch". pytest has no setting for it.
    """
    hook = getattr(early_config.pluginmanager, "rewrite_hook", None)
    marked = getattr(hook, "_must_rewrite", None)
    if hook is not None and isinstance(marked, set):
        marked.discard("kwire")
        hook.mark_rewrite()  # forgets what it has found of names so far


AnyBroker = TypeVar("AnyBroker", bound="Broker")


class Brokers(Generic[AnyBroker]):
    """The brokers of a session, or its clusters: one for each of the different settings. start: starts a new one."""

    def __init__(self, cleanup: contextlib.ExitStack, start: Callable[[dict[str, Any]], AnyBroker]) -> None:
        self._cleanup, self._start = cleanup, start
        self._known: list[tuple[dict[str, Any], AnyBroker]] = []

    def get(self, settings: dict[str, Any]) -> AnyBroker:
        """Return the running broker with these settings."""
        for known, broker in self._known:
            if known == settings:
                if not broker.is_running:  # a test has stopped it
                    broker.start()
                return broker
        broker = self._start({"keep_requests": KEPT_REQUESTS, **settings})
        self._cleanup.enter_context(broker)
        self._known.append((dict(settings), broker))
        return broker


def new_broker(settings: dict[str, Any]) -> Broker:
    """Return a broker with settings."""
    from kwire.broker import Broker

    return Broker(**settings)


def new_cluster(settings: dict[str, Any]) -> Cluster:
    """Return a cluster with settings, by default of three nodes in different racks."""
    from kwire.broker import Cluster

    return Cluster(**({} if "nodes" in settings else {"racks": ["a", "b", "c"]}) | settings)


@pytest.fixture(scope="session")
def kafka_broker_settings() -> dict[str, Any]:
    """Configs of the broker by name; override this fixture to set some."""
    return {}


@pytest.fixture(scope="session")
def _kafka_brokers() -> Iterator[Brokers[Broker]]:
    with contextlib.ExitStack() as cleanup:
        yield Brokers(cleanup, new_broker)


@pytest.fixture(scope="session")
def kafka_broker_session(kafka_broker_settings: dict[str, Any], _kafka_brokers: Brokers[Broker]) -> Broker:
    """The broker of the session, for fixtures of a wider scope; it is reset after tests that use kafka_broker only."""
    return _kafka_brokers.get(kafka_broker_settings)


@pytest.fixture
def kafka_broker(kafka_broker_settings: dict[str, Any], _kafka_brokers: Brokers[Broker]) -> Iterator[Broker]:
    """A running broker without topics, groups or faults: kwire.broker.Broker."""
    yield _kafka_brokers.get(kafka_broker_settings)
    _kafka_brokers.get(kafka_broker_settings).reset()


@pytest.fixture(scope="session")
def kafka_cluster_settings() -> dict[str, Any]:
    """Settings of the cluster, such as nodes and configs by name; override this fixture to set some."""
    return {}


@pytest.fixture(scope="session")
def _kafka_clusters() -> Iterator[Brokers[Cluster]]:
    with contextlib.ExitStack() as cleanup:
        yield Brokers(cleanup, new_cluster)


@pytest.fixture
def kafka_cluster(kafka_cluster_settings: dict[str, Any], _kafka_clusters: Brokers[Cluster]) -> Iterator[Cluster]:
    """A running cluster of three nodes without topics, groups or faults: kwire.broker.Cluster."""
    yield _kafka_clusters.get(kafka_cluster_settings)
    _kafka_clusters.get(kafka_cluster_settings).reset()


@pytest.fixture(scope="session")
def kafka_tap_servers() -> str:
    """The bootstrap servers of the cluster behind kafka_tap; a project overrides this fixture."""
    pytest.fail(
        "kafka_tap needs a cluster: define a fixture kafka_tap_servers with scope='session' that returns its "
        "bootstrap.servers",
        pytrace=False,
    )


@pytest.fixture(scope="session")
def kafka_tap_settings() -> dict[str, Any]:
    """Arguments of kwire.tap.Tap, such as record or TLS configs of the cluster; override this fixture to set some."""
    return {}


@pytest.fixture(scope="session")
def _kafka_tap(kafka_tap_servers: str, kafka_tap_settings: dict[str, Any]) -> Iterator[Tap]:
    from kwire.tap import Tap

    with Tap(kafka_tap_servers, **{"keep_requests": KEPT_REQUESTS, **kafka_tap_settings}) as tap:
        yield tap


@pytest.fixture
def kafka_tap(_kafka_tap: Tap) -> Iterator[Tap]:
    """A running proxy before a cluster, without faults and requests: kwire.tap.Tap."""
    _kafka_tap.requests.clear()
    yield _kafka_tap
    _kafka_tap.faults.clear()


@pytest.fixture(scope="session")
def kafka_spark_settings() -> dict[str, Any]:
    """Configs of the Spark session by name, such as spark.jars.packages; override this fixture to set some."""
    return {}


@pytest.fixture(scope="session")
def kafka_spark_session(
    kafka_spark_settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """A small Spark session for all tests, stopped at the end; of projects without a fixture `spark`."""
    from kwire.extras import MissingExtra, need

    try:
        need("pyspark", what="kafka_spark")
    except MissingExtra as missing:  # not a skip: a run that tests nothing would pass
        pytest.fail(str(missing), pytrace=False)
    from kwire.testing.spark import new_session

    session = new_session(kafka_spark_settings, tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture
def kafka_spark(request: pytest.FixtureRequest, kafka_broker: Broker, tmp_path: Path) -> Iterator[SparkTest]:
    """Topics and streaming queries of one test: kwire.testing.SparkTest."""
    try:
        session = request.getfixturevalue("spark")
    except pytest.FixtureLookupError as error:
        if error.argname != "spark":
            raise
        session = request.getfixturevalue("kafka_spark_session")
    from kwire.testing.spark import SparkTest

    with contextlib.closing(SparkTest(session, kafka_broker, tmp_path / "kafka_spark")) as test:
        yield test


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a session broker of other settings: pytest creates it once, with the first test's settings."""
    values = getattr(item, "funcargs", {})
    if "kafka_broker_session" in values and "_kafka_brokers" in values:
        settings = values["kafka_broker_settings"]
        if values["_kafka_brokers"].get(settings) is not values["kafka_broker_session"]:
            pytest.fail(
                f"kafka_broker_session has other settings than kafka_broker_settings of this test, {settings!r}: there "
                "is one for the whole session; use kafka_broker, which has a broker for each settings",
                pytrace=False,
            )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Add the last requests of the brokers and taps that a failed test used."""
    outcome = yield
    report = outcome.get_result()
    modules = [("kwire.broker", "Broker"), ("kwire.tap", "Tap")]
    kinds = tuple(getattr(sys.modules[name], kind) for name, kind in modules if name in sys.modules)
    if not report.failed or not kinds:
        return
    values = getattr(item, "funcargs", {}).values()
    for broker in {id(each): each for each in values if isinstance(each, kinds)}.values():
        if broker.requests.limit:
            report.sections.append((f"{broker!r}: last requests", last_requests(broker)))
        if unmatched := broker.faults.unmatched:
            report.sections.append((f"{broker!r}: faults that matched no request", "\n".join(map(repr, unmatched))))


def last_requests(broker: Broker | Tap) -> str:
    """Return the last requests of a broker or a tap, a line each."""
    requests = list(broker.requests)
    lines = [f"({len(requests) - REPORTED_REQUESTS} more)"] if len(requests) > REPORTED_REQUESTS else []
    return "\n".join([*lines, *map(str, requests[-REPORTED_REQUESTS:])]) or "none"
