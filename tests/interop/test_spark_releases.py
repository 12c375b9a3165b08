"""Earlier releases of Spark: 4.1 and 4.2 give the results of 4.3.

Each is installed from the package index to a separate environment (pip caches its wheels), with kwire from its wheel.
The environment is not activated: programs run with its Python, which Spark uses because of `import kwire.spark`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.interop import installed
from tests.interop.test_spark_deployment import CONF, EVERYWHERE, Place, run_checks
from tests.spark.conftest import need_java

from kwire.broker import Broker

pytestmark = [pytest.mark.jvm, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
CHECKS = [name for name in EVERYWHERE if name.startswith(("sources.", "columns.messages"))]


def environment_with(folder: Path, release: str) -> Path:
    """Create an environment with kwire's wheel and the latest PySpark of a release; return its python."""
    need_java()
    wheel = installed.build_wheel(folder / "wheel")
    python = installed.make_environment(folder / "environment", wheel, extras=("arrow",), compiled=False)
    words = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", f"pyspark=={release}.*"]
    installed.run(words, timeout=1200, env=dict(os.environ))
    return python


def not_activated(python: Path, home: Path) -> dict[str, str]:
    """Return variables of a shell in which the environment is not active."""
    variables = installed.environment(python, home, PATH="/usr/local/bin:/usr/bin:/bin")
    return {name: value for name, value in variables.items() if not name.startswith("PYSPARK")}


@pytest.mark.parametrize("release", ["4.1", "4.2"])
def test_earlier_spark_releases_give_the_same_results(
    release: str, tmp_path: Path, kafka_logs: dict[str, Path]
) -> None:
    python = environment_with(tmp_path, release)
    given = {
        "logs": str(kafka_logs["modern"] / "data"),
        "captures": str(next(kafka_logs["wire"].rglob("k391.clean.pcap")).parent),
        "checkout": str(ROOT),
    }
    with Broker() as broker:
        found = run_checks(
            Place(folder=tmp_path, cluster=python, client=python, bare=python, given=given),
            python,
            "checks",
            not_activated(python, tmp_path / "home"),
            servers=broker.bootstrap_servers,
            master="local[2]",
            conf=CONF | {"spark.python.daemon.module": "kwire.spark.process.daemon"},
            checks=CHECKS,
            pages={},
        )
    assert found == dict.fromkeys(CHECKS)
