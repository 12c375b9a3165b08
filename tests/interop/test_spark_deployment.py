"""kwire from its wheel, with executors in separate processes and over Spark Connect (docs/deployment.md).

The package is read-only, as in an image. tests/interop/deployment has the programs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.interop import installed
from tests.spark.conftest import need_java
from tests.waiting import HANG_S
from tools.kafka import Unavailable

from kwire.broker import Broker
from kwire.log import LogDirectory
from kwire.log.topics import replay_groups

pytestmark = [pytest.mark.jvm, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "deployment"

EVERYWHERE = [
    "columns.places",
    "sources.log_batch",
    "sources.log_stream",
    "sources.log_sink",
    "sources.live_batch",
    "sources.live_stream_in_transactions",
    "sources.live_batch_in_a_transaction",
    "sources.capture",
    "sources.internal",
    "columns.messages",
    "columns.registry",
    "columns.pages",
    "job_checks.verify",
    "job_checks.export",
    "job_checks.convert",
    "job_checks.compact",
    "job_checks.restore_and_translate",
    "job_checks.advise",
    "job_checks.pull_and_table",
]
ON_A_CLUSTER = [
    *EVERYWHERE,
    "killed.a_worker_in_a_read",
    "killed.an_executor_in_a_read",
    "killed.an_executor_in_a_transactional_write",
]
THROUGH_CONNECT = ["remote.the_client", *EVERYWHERE, "remote.errors_arrive", "remote.registered_by_the_client"]
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
}
CLUSTER = {"spark.executor.memory": "1024m"}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Environments with kwire for a cluster and a client, one for a client without, and what the checks are given."""

    folder: Path
    cluster: Path
    client: Path
    bare: Path
    given: Mapping[str, object]

    @property
    def package(self) -> Path:
        """The location of kwire in the cluster."""
        (found,) = self.cluster.parents[1].glob("lib/*/site-packages/kwire")
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, kafka_logs: dict[str, Path]) -> Iterator[Place]:
    pytest.importorskip("pyspark")
    need_java()
    if os.getuid() == 0 and not installed.as_others():
        raise Unavailable("setpriv is not installed; on Debian or Ubuntu: apt-get install util-linux")
    folder = tmp_path_factory.mktemp("deployment")
    wheel = installed.build_wheel(folder / "wheel")
    with Broker() as broker:
        broker.call(lambda node: node.controller.create_topic("without", 2))
        found = Place(
            folder=folder,
            cluster=installed.make_environment(folder / "cluster", wheel, extras=("cli", "spark", "delta")),
            client=installed.make_environment(
                folder / "client", wheel, "pyspark[connect]", extras=("cli", "spark", "delta"), compiled=False
            ),
            bare=installed.make_environment(folder / "bare", None, "pyspark[connect]"),
            given={
                "servers": broker.bootstrap_servers,
                "logs": str(kafka_logs["modern"] / "data"),
                "captures": str(next(kafka_logs["wire"].rglob("k391.clean.pcap")).parent),
                "checkout": str(ROOT),
            },
        )
        installed.make_read_only(found.package)
        yield found
        installed.make_writable(found.package)


def pages(place: Place, *names: str) -> dict[str, list[str]]:
    """Return the examples of pages with local paths and addresses."""
    found = {}
    for name in names:
        text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
        text = text.replace("/var/lib/kafka/data", str(place.given["logs"]))
        found[name] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        assert found[name], name
    return found


def run_checks(place: Place, python: Path, name: str, variables: Mapping[str, str], **given: object) -> dict[str, str]:
    """Run deployment/main.py in an environment; return errors by check, None for success."""
    folder = place.folder / name
    folder.mkdir()
    shutil.copytree(PROGRAMS, folder / "programs", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "out").mkdir()
    (folder / "environment").symlink_to(python.parents[1])
    (folder / "given.json").write_text(json.dumps({**place.given, "out": str(folder / "out"), **given}))
    words = [str(python), str(folder / "programs" / "main.py"), str(folder / "given.json")]
    printed = installed.run([*installed.as_others(), *words], env=dict(variables), cwd=folder, timeout=1000)
    print(printed)
    return installed.results(printed)  # type: ignore[return-value]


def chosen(request: pytest.FixtureRequest, checks: Sequence[str]) -> list[str]:
    """Return the checks selected for this run of pytest."""
    wanted = {item.name for item in request.session.items if item.path == request.path}
    return [each for each in checks if any(name.endswith(f"[{each}]") for name in wanted)]


@pytest.fixture(scope="module")
def on_a_cluster(place: Place, request: pytest.FixtureRequest) -> dict[str, str]:
    """Errors of the checks on local-cluster, which starts executors as separate JVMs in separate folders."""
    home = installed.spark_home(place.folder / "spark-cluster")
    return run_checks(
        place,
        place.cluster,
        "on-a-cluster",
        installed.environment(place.cluster, place.folder / "home", SPARK_HOME=str(home)),
        master="local-cluster[2,1,1024]",
        conf=CONF | CLUSTER,
        checks=chosen(request, ON_A_CLUSTER),
        pages=pages(place, "functions", "deployment"),
    )


@pytest.mark.parametrize("check", ON_A_CLUSTER)
def test_jobs_run_on_separate_executors(on_a_cluster: dict[str, str], check: str) -> None:
    assert on_a_cluster[check] is None, on_a_cluster[check]


def test_jobs_run_from_a_packed_environment(place: Place) -> None:
    """spark.archives: executors unpack it; the driver has it under the same name."""
    archive = place.folder / "environment.tar.gz"
    words = ["tar", "-I", "gzip -1", "-chf", str(archive), "--exclude=pyspark", "--exclude=pyspark-*", "--mode=u+w"]
    words += ["bin", "lib", "pyvenv.cfg"]
    installed.run(words, cwd=place.cluster.parents[1])
    home = installed.spark_home(place.folder / "spark-packed")
    variables = installed.environment(place.cluster, place.folder / "packed-home", SPARK_HOME=str(home))
    del variables["PYSPARK_DRIVER_PYTHON"]
    found = run_checks(
        place,
        place.cluster,
        "packed",
        variables | {"PYSPARK_PYTHON": "./environment/bin/python"},
        master="local-cluster[1,1,1024]",
        conf=CONF | CLUSTER | {"spark.archives": f"{archive}#environment"},
        checks=["columns.places", "sources.log_batch"],
        pages={},
    )
    archive.unlink()
    assert found == {"columns.places": None, "sources.log_batch": None}


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[str]:
    """Start a Spark Connect server with its script and return its URL."""
    home = installed.spark_home(place.folder / "spark-connect")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port)}
    words = [str(home / "sbin" / "start-connect-server.sh"), "--wait", "--master", "local[2]"]
    words += [word for name, value in (CONF | address).items() for word in ("--conf", f"{name}={value}")]
    log = place.folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*installed.as_others(), *words],
            env=installed.environment(place.cluster, place.folder / "server-home", SPARK_HOME=str(home)),
            cwd=place.folder,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        wait_for(port, process, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # the server takes its Python workers with it
        process.wait(HANG_S)


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server accepts connections."""
    deadline = time.monotonic() + HANG_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert process.poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < deadline, log.read_text()[-4000:]
            time.sleep(0.3)


def without_java(python: Path, home: Path) -> dict[str, str]:
    """Return environment variables of a client without Java and SPARK_HOME."""
    kept = installed.environment(python, home, PATH=str(python.parent))
    return {name: value for name, value in kept.items() if not name.startswith(("JAVA", "PYSPARK", "SPARK"))}


@pytest.fixture(scope="module")
def through_connect(place: Place, server: str, request: pytest.FixtureRequest) -> dict[str, str]:
    return run_checks(
        place,
        place.client,
        "through-connect",
        without_java(place.client, place.folder / "client-home"),
        remote=server,
        conf={},
        checks=chosen(request, THROUGH_CONNECT),
        pages=pages(place, "functions", "deployment"),
    )


@pytest.mark.parametrize("check", THROUGH_CONNECT)
def test_jobs_run_over_spark_connect(through_connect: dict[str, str], check: str) -> None:
    assert through_connect[check] is None, through_connect[check]


def test_a_spark_connect_client_needs_no_kwire_for_sources_and_sinks(place: Place, server: str) -> None:
    folder = place.folder / "without"
    folder.mkdir()
    shutil.copy(PROGRAMS / "bare.py", folder)
    logs = LogDirectory(Path(str(place.given["logs"])))
    words = [server, str(place.given["logs"]), str(folder / "out"), str(place.given["servers"]), "without"]
    reported = installed.results(
        installed.run(
            [str(place.bare), str(folder / "bare.py"), *words],
            env=without_java(place.bare, folder / "home"),
            cwd=folder,
            timeout=300,
        )
    )
    orders = sum(len(list(logs["orders", number].read())) for number in range(3))
    offsets = sum(len(group.offsets) for group in replay_groups(logs).groups.values())
    assert reported == {"log": orders, "streamed": orders, "offsets": offsets}
