"""The fixture in another project."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from kwire.broker import Broker
from kwire.client import Client
from tests.waiting import HANG_S

TEST = """
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

@pytest.fixture(scope="session")
def kafka_broker_settings():
    return {"num_partitions": 3}

@pytest.mark.parametrize("n", range(2))
def test_the_fixture_example_delivers_an_order(kafka_broker, n):
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
    assert admin.list_topics(timeout=240).topics == {}
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    producer.produce("orders", b"v")
    assert producer.flush(240) == 0
    assert len(admin.list_topics("orders", timeout=240).topics["orders"].partitions) == 3
"""


CLUSTER = """
import pytest
from kwire.client import Client

@pytest.mark.parametrize("n", range(2))
def test_each_test_has_a_clean_cluster_of_three_nodes(kafka_cluster, n):
    assert [(node.id, node.rack, node.is_running) for node in kafka_cluster.nodes] == [
        (1, "a", True), (2, "b", True), (3, "c", True)
    ]
    with Client(kafka_cluster.bootstrap_servers) as client:
        assert client.metadata().topics == {}
    kafka_cluster.create_topic("orders", 3)
    kafka_cluster.stop(2)
"""


OTHER_SETTINGS = """
import pytest

@pytest.fixture(scope="session")
def kafka_broker_settings():
    return {"num_partitions": %d}
"""
COUNT = """
def test_partitions(kafka_broker):
    assert kafka_broker.call(lambda node: node.settings.num_partitions) == %d
"""
OUTAGE = """
import pytest
from kwire.client import Client

@pytest.fixture(scope="session")
def address(kafka_broker_session):
    return kafka_broker_session.bootstrap_servers

def test_one_stops_it_and_fails(address, kafka_broker):
    with Client(address) as client:
        assert client.metadata().topics == {}
    kafka_broker.stop()
    assert 0, "the outage was not survived"

def test_the_next_has_a_broker_at_the_same_address(address, kafka_broker):
    with Client(address) as client:
        assert client.metadata().topics == {}
"""
SESSION = """
def test_session(kafka_broker_session):
    assert kafka_broker_session.call(lambda node: node.settings.num_partitions) == 2
"""
FAILING = """
from kwire.client import Client
from kwire.errors import KwireError

def test_requests_are_reported(kafka_broker):
    kafka_broker.faults.fail("Metadata", "TOPIC_AUTHORIZATION_FAILED")
    kafka_broker.faults.drop("Heartbeat", group="misspelled")
    with Client(kafka_broker.bootstrap_servers) as client:
        try:
            client.metadata(["orders"])
        except KwireError:
            pass
    assert kafka_broker.records == "shown"
"""

IMPORTS = """
def test_an_import():
    import kwire.broker
    from _pytest.assertion.rewrite import AssertionRewritingHook
    assert not isinstance(kwire.broker.__loader__, AssertionRewritingHook)
"""


TAP = """
import pytest
from kwire.client import Client

@pytest.fixture(scope="session")
def kafka_tap_servers(kafka_broker_session):
    return kafka_broker_session.bootstrap_servers

def test_one_adds_a_fault_and_fails(kafka_tap):
    assert list(kafka_tap.requests) == []
    kafka_tap.faults.drop("Heartbeat", group="misspelled")
    with Client(kafka_tap.bootstrap_servers) as client:
        assert client.metadata().topics == {}
    assert 0

def test_the_next_has_no_fault(kafka_tap):
    assert kafka_tap.faults.all == []
    assert list(kafka_tap.requests) == []
"""
NO_CLUSTER = """
def test_a_tap(kafka_tap):
    pass
"""
NO_SPARK = """
import sys
sys.modules["pyspark"] = None

def test_a_stream(kafka_spark):
    pass
"""


def run_project(folder: Path, files: dict[str, str]) -> str:
    """Run a project's tests in their order; returns the output."""
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "."],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        timeout=HANG_S,
    )
    return done.stdout + done.stderr


def test_another_project_gets_the_fixture_with_a_new_broker_per_test(tmp_path: Path) -> None:
    output = run_project(tmp_path, {"test_the_fixture_example_delivers_an_order.py": TEST})
    assert "2 passed" in output, output


def test_each_test_gets_a_clean_cluster(tmp_path: Path) -> None:
    output = run_project(tmp_path, {"test_clusters.py": CLUSTER})
    assert "2 passed" in output, output


def test_modules_of_kwire_are_not_rewritten(tmp_path: Path) -> None:
    # pytest parsed each in the thread that imports it, also in the broker's: two at a time failed on Python 3.11.7.
    output = run_project(tmp_path, {"test_import.py": IMPORTS})
    assert "1 passed" in output, output


def test_kafka_spark_without_spark_fails(tmp_path: Path) -> None:
    """A skip would let the tests of a project whose environment lacks the extra pass."""
    output = run_project(tmp_path, {"test_stream.py": NO_SPARK})
    assert "1 error" in output, output
    assert "\nkafka_spark: needs pyspark, which is not installed; pip install 'kwire[spark]'\n" in output


def test_folders_with_their_own_settings_have_their_own_brokers(tmp_path: Path) -> None:
    files = {"test_first.py": COUNT % 1}
    for count in (2, 3):
        files |= {f"f{count}/conftest.py": OTHER_SETTINGS % count, f"f{count}/test_{count}.py": COUNT % count}
    output = run_project(tmp_path, files)
    assert "3 passed" in output, output


def test_a_session_broker_is_not_used_with_settings_of_another_folder(tmp_path: Path) -> None:
    files = {}
    for count in (2, 3):
        files |= {f"f{count}/conftest.py": OTHER_SETTINGS % count, f"f{count}/test_{count}.py": SESSION}
    output = run_project(tmp_path, files)
    assert "1 passed, 1 error" in output, output
    assert "kafka_broker_session has other settings than kafka_broker_settings of this test" in output


def test_a_test_that_stops_the_broker_and_fails_does_not_fail_the_next_one(tmp_path: Path) -> None:
    output = run_project(tmp_path, {"test_outage.py": OUTAGE})
    assert "1 failed, 1 passed" in output, output


def test_a_failing_test_shows_the_address_and_the_last_requests(tmp_path: Path) -> None:
    output = run_project(tmp_path, {"test_failing.py": FAILING})
    assert re.search(r"kafka_broker = Broker\(127\.0\.0\.1:\d+\)", output), output
    assert re.search(r"-+ Broker\(127\.0\.0\.1:\d+\): last requests -+", output), output
    assert "faults that matched no request" in output
    assert "<drop api='Heartbeat', group='misspelled': 0 of 0 requests>" in output
    assert re.search(r"[\d:.]{12} Metadata v\d+ from kwire\S*: TOPIC_AUTHORIZATION_FAILED\n", output), output


def test_each_test_gets_a_tap_without_faults(tmp_path: Path) -> None:
    output = run_project(tmp_path, {"test_tap.py": TAP, "test_without.py": NO_CLUSTER})
    assert "1 failed, 1 passed, 1 error" in output, output
    assert re.search(r"-+ Tap\(127\.0\.0\.1:\d+ to 127\.0\.0\.1:\d+\): last requests -+", output), output
    assert "<drop api='Heartbeat', group='misspelled': 0 of 0 requests>" in output
    assert re.search(r"[\d:.]{12} Metadata v\d+ from kwire\S*: ok\n", output), output
    assert "kafka_tap needs a cluster: define a fixture kafka_tap_servers" in output


def test_the_fixture_is_a_running_broker(kafka_broker: Broker) -> None:
    with Client(kafka_broker.bootstrap_servers) as client:
        assert client.metadata().topics == {}
    assert {each.api for each in kafka_broker.requests} == {"ApiVersions", "Metadata"}


def test_loading_the_plugin_does_not_import_kwire() -> None:
    code = "import kwire.pytest_plugin, sys; print(sorted(m for m in sys.modules if m.startswith('kwire')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['kwire', 'kwire.pytest_plugin']"


def test_the_plugin_can_be_switched_off(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(kafka_broker): pass\n")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:kwire", "test_it.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "fixture 'kafka_broker' not found" in done.stdout, done.stdout + done.stderr
