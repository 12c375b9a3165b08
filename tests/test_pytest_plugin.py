"""The fixture in another project."""

from __future__ import annotations

import os
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


def test_another_project_gets_the_fixture_with_a_new_broker_per_test(tmp_path: Path) -> None:
    (tmp_path / "test_the_fixture_example_delivers_an_order.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        timeout=HANG_S,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_fixture_is_a_running_broker(kafka_broker: Broker) -> None:
    with Client(kafka_broker.bootstrap_servers) as client:
        assert client.metadata().topics == {}
    assert {each.api for each in kafka_broker.requests} == {"ApiVersions", "Metadata"}


def test_loading_the_plugin_does_not_import_kwire() -> None:
    code = "import kwire.pytest_plugin, sys; print(sorted(m for m in sys.modules if m.startswith('kwire')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['kwire', 'kwire.pytest_plugin']"
