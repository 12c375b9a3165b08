"""Real Kafka for interop tests and benchmarks: its jars, a broker process, Java programs compiled against them.

`mvn` downloads the jars from Maven Central to build/kafka/VERSION, once. A broker is a single node on free loopback
ports, with its data below a directory of the caller: in KRaft mode, or with a ZooKeeper before 3.0.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "kafka"
VERSION = "3.9.1"
START_S = 240
"""Limit of the start and stop of a broker; ends a hang on slow machines."""
JVM_OPTIONS: tuple[str, ...] = ()
"""Options of every JVM started here. Benchmarks use Java's defaults."""
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of JVMs that live for seconds, such as those of tests. They halve the CPU time of a short Spark job."""
WITHOUT_TOOLS = ("4.4.0",)  # their kafka-tools jar is not on Maven Central


class Unavailable(Exception):
    """A program is missing on this machine. The message has the command that installs it."""


def need(program: str, install: str) -> str:
    """Return the path of a program. Raises Unavailable with the package that contains it."""
    found = shutil.which(program)
    if found is None:
        raise Unavailable(f"{program} is not installed; on Debian or Ubuntu: apt-get install {install}")
    return found


def jars(version: str = VERSION) -> Path:
    """The folder with the jars of one Kafka release (broker, clients, tools and what they depend on)."""
    old = version.startswith("0.")  # Scala 2.13 came later, and its tools are part of the broker's jar
    scala = ["-Dscala.version=2.11"] if old else []
    tools = [] if old or version in WITHOUT_TOOLS else ["-Ptools"]
    return fetch_jars(BUILD / version, "pom.xml", f"-Dkafka.version={version}", *scala, *tools)


def client_jars(version: str) -> Path:
    """The folder with the jars of one release of Kafka's Java client, down to 0.8.2."""
    return fetch_jars(BUILD / f"clients-{version}", "clients.xml", f"-Dkafka.version={version}")


def spark_connector_jars() -> Path:
    """The folder with the jars of Spark's own Kafka connector."""
    return fetch_jars(BUILD / "spark-connector", "spark-connector.xml")


def spark_iceberg_jars() -> Path:
    """The folder with the jars of Spark 4.1 that copy Avro values from Kafka to Iceberg."""
    return fetch_jars(BUILD / "spark-iceberg", "spark-iceberg.xml")


def spark_table_jars() -> Path:
    """The folder with the jars of Spark 4.1 that read and write Iceberg and Delta tables."""
    return fetch_jars(BUILD / "spark-tables", "spark-tables.xml")


def generator_jars(version: str) -> Path:
    """The folder with the jars of Kafka's message generator, which from 4.0.0 on holds its checker of definitions."""
    return fetch_jars(BUILD / f"generator-{version}", "generator.xml", f"-Dkafka.version={version}")


def mirror_maker_jars(version: str = VERSION) -> Path:
    """The folder with the jars of one release of MirrorMaker 2."""
    return fetch_jars(BUILD / f"mirror-maker-{version}", "mirror-maker.xml", f"-Dkafka.version={version}")


def streams_jars(version: str) -> Path:
    """The folder with the jars of one release of Kafka Streams."""
    return fetch_jars(BUILD / f"streams-{version}", "streams.xml", f"-Dkafka.version={version}")


def connect_jars(version: str) -> Path:
    """The folder with the jars of one release of Kafka Connect and its own connectors."""
    return fetch_jars(BUILD / f"connect-{version}", "connect.xml", f"-Dkafka.version={version}")


def spring_jars(version: str) -> Path:
    """The folder with the jars of one release of Spring for Apache Kafka."""
    return fetch_jars(BUILD / f"spring-{version}", "spring.xml", f"-Dspring.version={version}")


def debezium_jars() -> Path:
    """The folder with the jars of Debezium's connector for PostgreSQL."""
    return fetch_jars(BUILD / "debezium", "debezium.xml")


def fetch_jars(target: Path, pom: str, *properties: str) -> Path:
    """The jars that a pom of tools/java names, in the folder `target`; fetched on the first call."""
    if target.is_dir():
        return target
    staging = target.with_name(f".{target.name}.{os.getpid()}.part")
    done = subprocess.run(
        [
            need("mvn", "maven"),
            "--quiet",
            "--batch-mode",
            "--file",
            str(ROOT / "tools" / "java" / pom),
            "dependency:copy-dependencies",
            *properties,
            f"-DoutputDirectory={staging}",
        ],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if done.returncode != 0:
        lines = [line.removeprefix("[ERROR]").strip() for line in (done.stdout + done.stderr).splitlines()]
        reason = max(lines, key=len, default="")[:400]  # the other lines are links and hints
        where = "from Maven Central (with a proxy, configure ~/.m2/settings.xml)"
        raise Unavailable(f"mvn could not fetch the jars of {target.name} {where}: {reason}")
    try:
        staging.rename(target)
    except OSError:  # another process was first
        shutil.rmtree(staging, ignore_errors=True)
    return target


def java(
    *arguments: str,
    version: str = VERSION,
    folder: Path | None = None,
    classes: Path | None = None,
    heap: str = "1g",
    timeout: float = 600,
    text: str | None = None,
) -> str:
    """Run a Java main class with a release's jars, or those in `folder`. Returns its output. text: its input."""
    path = f"{classes}:" if classes else ""
    java = need("java", "openjdk-17-jdk-headless")
    done = subprocess.run(
        [java, *JVM_OPTIONS, f"-Xmx{heap}", "-cp", f"{path}{folder or jars(version)}/*", *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"java {' '.join(arguments)} failed: {done.stderr[-2000:]}")
    return done.stdout


def compile_java(*sources: Path, version: str = VERSION, folder: Path | None = None, into: Path | None = None) -> Path:
    """Compile Java sources with a release's jars, or those in `folder`. Returns the folder of the classes."""
    folder = folder or jars(version)
    classes = into or BUILD / f"classes-{folder.name}"
    classes.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [
            need("javac", "openjdk-17-jdk-headless"),
            "-nowarn",
            "-cp",
            f"{folder}/*",
            "-d",
            str(classes),
            *map(str, sources),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"javac failed: {done.stderr[-2000:]}")
    return classes


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


COMMON_SETTINGS: dict[str, str | int] = {
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 3,
    "group.initial.rebalance.delay.ms": 0,
    "log.retention.ms": -1,  # the records' times are fixed, so retention would delete them one day
}


class KafkaBroker:
    """One node of real Kafka on loopback, as a context manager: broker and controller, or with ZooKeeper before 3.0.

    directory: receives server.properties, server.log and the log directory `data` (ZooKeeper's is `zookeeper`); a
    directory that is already formatted is used unchanged. release: whose features a new cluster has, by default those
    of the version. classes: a folder of plugins. settings: broker configs by Kafka's names.
    """

    def __init__(
        self,
        directory: Path,
        *,
        version: str = VERSION,
        release: str = "",
        heap: str = "1g",
        classes: Path | None = None,
        **settings: str | int,
    ) -> None:
        self.release, self.classes = release, classes
        self.directory, self.version, self.heap = directory, version, heap
        self.port, other = free_port(), free_port()
        self.log_dir = directory / "data"
        self.with_zookeeper = int(version.split(".")[0]) < 3
        self.settings: dict[str, str | int] = {
            **(self._zookeeper_settings(other) if self.with_zookeeper else self._kraft_settings(other)),
            "log.dirs": str(self.log_dir),
            **COMMON_SETTINGS,
            **settings,
        }
        self.zookeeper_port = other
        self.process: subprocess.Popen[bytes] | None = None
        self._zookeeper: subprocess.Popen[bytes] | None = None

    def _zookeeper_settings(self, zookeeper: int) -> dict[str, str | int]:
        return {
            "broker.id": 1,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "zookeeper.connect": f"127.0.0.1:{zookeeper}",
        }

    def _kraft_settings(self, controller: int) -> dict[str, str | int]:
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }

    @property
    def bootstrap_servers(self) -> str:
        """host:port, for clients."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> KafkaBroker:
        self.directory.mkdir(parents=True, exist_ok=True)
        properties = self.directory / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))
        if self.with_zookeeper:
            data = self.directory / "zookeeper"
            self._zookeeper = self._spawn(
                "-Dzookeeper.admin.enableServer=false",  # it would listen on port 8080, which only one can have
                "org.apache.zookeeper.server.ZooKeeperServerMain",
                str(self.zookeeper_port),
                str(data),
                heap="256m",
            )
            self._wait_for(self.zookeeper_port, self._zookeeper)
        elif not (self.log_dir / "meta.properties").exists():
            java(
                "kafka.tools.StorageTool",
                "format",
                "-t",
                "a3dpcmUtdGVzdC1jbHVzdA",
                "-c",
                str(properties),
                *(("--release-version", self.release) if self.release else ()),
                version=self.version,
            )
        self.process = self._spawn("kafka.Kafka", str(properties), heap=self.heap)
        self._wait_for(self.port, self.process)
        return self

    def _spawn(self, *command: str, heap: str) -> subprocess.Popen[bytes]:
        """Start a Java process whose output goes to server.log."""
        with (self.directory / "server.log").open("ab") as log:
            return subprocess.Popen(
                [
                    need("java", "openjdk-17-jdk-headless"),
                    *JVM_OPTIONS,
                    f"-Xmx{heap}",
                    "-cp",
                    (f"{self.classes}:" if self.classes else "") + f"{jars(self.version)}/*",
                    *command,
                ],
                stdout=log,
                stderr=log,
            )

    def _wait_for(self, port: int, process: subprocess.Popen[bytes]) -> None:
        """Wait until the port is open. Raises RuntimeError if the process ends first."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"Kafka did not start; the end of its log is\n{self.log_tail()}")

    def log_tail(self) -> str:
        """Return the last 2,000 characters of the broker's output."""
        return (self.directory / "server.log").read_text(errors="replace")[-2000:]

    def stop(self, *, kill: bool = False) -> None:
        """Stop the broker cleanly, or kill it."""
        if self.process is not None:
            self.process.kill() if kill else self.process.terminate()
            self.process.wait(timeout=START_S)
            self.process = None
        if self._zookeeper is not None:
            self._zookeeper.terminate()
            self._zookeeper.wait(timeout=START_S)
            self._zookeeper = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
