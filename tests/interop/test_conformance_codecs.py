"""Codecs of several languages run the data set of `kwire conformance codec`: each has the known failures, no others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.interop.installed import ROOT
from tools.clients import program
from tools.kafka import Unavailable, jars, need

from kwire.cli.main import run

pytestmark = [pytest.mark.slow]

RUNNERS = ROOT / "examples" / "conformance"
KNOWN = RUNNERS / "known-failures"
TIMEOUT_S = 600
CARGO_S = 1800
MAX_LINES = 80
KIO = "0.6.5"


def conformance(name: str, *command: str, more: tuple[str, ...] = ()) -> int:
    known = KNOWN / f"{name}.txt"
    arguments = ["--expected-failures", str(known)] if known.exists() else []
    return run(["conformance", "codec", "--timeout", "60", *arguments, *more, "--", *command])


@pytest.mark.timeout(3600)
def test_kwire() -> None:
    assert conformance("kwire", sys.executable, str(RUNNERS / "kwire_runner.py")) == 0


@pytest.mark.timeout(3600)
@pytest.mark.jvm
def test_java(tmp_path: Path) -> None:
    javac, source = need("javac", "default-jdk-headless"), RUNNERS / "KafkaRunner.java"
    path = f"{tmp_path}:{jars('4.4.0')}/*"
    subprocess.run([javac, "-nowarn", "-cp", path, "-d", str(tmp_path), str(source)], timeout=TIMEOUT_S, check=True)
    java = need("java", "openjdk-17-jdk-headless")
    chapters = ("--only", "messages", "--only", "headers", "--only", "primitives")
    assert conformance("java", java, "-cp", path, "KafkaRunner", more=("--release", "4.4", *chapters)) == 0


@pytest.mark.timeout(3600)
def test_franz_go(tmp_path: Path) -> None:
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        raise Unavailable("go is not installed; on Debian or Ubuntu: apt-get install golang-go")
    target = tmp_path / "runner"
    environment = {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "auto"}
    command = [go, "build", "-o", str(target), "."]
    built = subprocess.run(
        command, cwd=RUNNERS / "go", env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if built.returncode != 0 and "dial tcp" in built.stderr:
        raise Unavailable(f"go could not fetch the modules of franz-go: {built.stderr[-300:]}")
    assert built.returncode == 0, built.stderr
    assert conformance("franz-go", str(target)) == 0


@pytest.mark.timeout(3600)
def test_kafka_protocol_in_rust() -> None:
    cargo = shutil.which("cargo") or shutil.which(str(Path.home() / ".cargo" / "bin" / "cargo"))
    if cargo is None:
        raise Unavailable("cargo is not installed; see https://rustup.rs")
    target = ROOT / "build" / "clients" / "rust"
    command = [cargo, "build", "--release", "--locked", "--target-dir", str(target)]
    built = subprocess.run(command, cwd=RUNNERS / "rust", capture_output=True, text=True, timeout=CARGO_S, check=False)
    if built.returncode != 0 and "failed to download" in built.stderr:
        raise Unavailable(f"cargo could not fetch its crates: {built.stderr[-300:]}")
    assert built.returncode == 0, built.stderr
    assert conformance("rust", str(target / "release" / "runner")) == 0


@pytest.mark.timeout(3600)
def test_platformatic() -> None:
    node, client = program("platformatic")
    source = shutil.copy(RUNNERS / "node" / "runner.js", Path(client).parent)
    assert conformance("platformatic", node, str(source)) == 0


@pytest.mark.timeout(3600)
def test_kafka_python() -> None:
    assert conformance("kafka-python", sys.executable, str(RUNNERS / "kafka_python_runner.py")) == 0


@pytest.mark.timeout(3600)
def test_kio(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path)], timeout=TIMEOUT_S, check=True)
    python = str(tmp_path / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"kio=={KIO}"]
    done = subprocess.run(install, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise Unavailable(f"kio cannot be installed: {done.stderr[-300:]}")
    assert conformance("kio", python, str(RUNNERS / "kio_runner.py")) == 0


def test_every_runner_is_short() -> None:
    for path in (
        *RUNNERS.glob("*.py"),
        *RUNNERS.glob("*.java"),
        *RUNNERS.glob("*/main.*"),
        *RUNNERS.glob("*/src/main.rs"),
        *RUNNERS.glob("node/*.js"),
    ):
        assert len(path.read_text().splitlines()) <= MAX_LINES, path
