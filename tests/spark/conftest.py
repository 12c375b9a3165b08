"""One Spark session for all tests of this folder, in one worker of a parallel run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tools.kafka import Unavailable
from tools.sail import SailEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
INSTALL = "is not installed, and Spark needs it; on Debian or Ubuntu: apt-get install openjdk-17-jre-headless"


@pytest.hookimpl(tryfirst=True)  # before xdist looks at groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # of a parallel run: these take one worker longest, so they begin
        items.sort(key=lambda item: HERE not in item.path.parents)
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))
            if "spark" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def modern(kafka_logs: dict[str, Path]) -> Path:
    """The log directory of a real broker."""
    return kafka_logs["modern"] / "data"


def need_java() -> None:
    """Raise Unavailable if Spark cannot run."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        raise Unavailable(f"java {INSTALL}")
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', shown)
    if version is None or int(version[1]) < 17:
        raise Unavailable(f"{java} is {shown.splitlines()[0] if shown else 'silent'}; Java 17 or later {INSTALL}")


def environment_of_a_new_session() -> dict[str, str]:
    """Return this process's environment without the variables of its own session."""
    mine = ("PYSPARK_GATEWAY", "SPARK_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
    return {**kept, "SPARK_SUBMIT_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", "")}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on local[2] that finds kwire's sources by name, without registration."""
    pytest.importorskip("pyspark")
    need_java()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("kwire tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def sail() -> Iterator[SailEngine]:
    """Sail, the other engine: sail(function, ...) calls a function of a test module with its session."""
    engine = SailEngine()
    yield engine
    engine.close()
