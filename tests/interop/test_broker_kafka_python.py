"""kafka-python's integration tests, from its source distribution, on our broker.

The distribution is that of PyPI, in the version of the other tests. It lacks the module that starts services; one of
its classes is replaced, since the broker already runs. Tests of SASL and TLS, which start brokers with Kafka's scripts,
are not run.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tools.kafka import BUILD, Unavailable

from kwire.broker import Broker

pytestmark = [pytest.mark.slow]

SERVICE = """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


class SpawnedService:
    pass
"""
LEAST_PASSED = 50


@pytest.fixture(scope="module")
def checkout() -> Path:
    """The unpacked source distribution; downloaded once."""
    version = importlib.metadata.version("kafka-python")
    target = BUILD.parent / f"kafka_python-{version}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        done = subprocess.run(
            [*command, f"kafka-python=={version}", "--dest", str(target.parent)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode != 0:
            raise Unavailable(f"pip could not fetch kafka-python {version}: {done.stderr[-500:]}")
        with tarfile.open(target.parent / f"kafka_python-{version}.tar.gz") as archive:
            archive.extractall(target.parent, filter="data")
    (target / "test" / "__init__.py").touch()
    (target / "test" / "service.py").write_text(SERVICE)
    return target


def test_kafka_pythons_integration_tests_pass(checkout: Path, tmp_path: Path) -> None:
    settings = {"num_partitions": 4, "group_min_session_timeout_ms": 1000, "allow_everyone_if_no_acl_found": True}
    with Broker(node_id=0, acls=True, **settings) as broker:
        environment = {
            **os.environ,
            "KAFKA_VERSION": "4.3.0",  # what it infers from the versions of our APIs
            "KAFKA_URI": f"kafka://{broker.bootstrap_servers}",
            "KAFKA_ROOT": str(tmp_path),
            "PYTHONPATH": str(checkout),
        }
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="),
                *("--timeout", "300", "--tb", "short", "--show-capture", "no"),
                *("--ignore", "test/integration/test_sasl_integration.py"),
                *("--ignore", "test/integration/test_ssl_integration.py"),
                "test/integration",
            ],
            cwd=checkout,
            env=environment,
            capture_output=True,
            text=True,
            timeout=1500,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= LEAST_PASSED
