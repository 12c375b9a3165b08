"""OldPeer with Java clients of several releases, in the foreground or background."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.waiting import HANG_S
from tools import kafka

__all__ = ["RELEASES", "following", "run"]

SOURCE = Path(__file__).parent / "java" / "OldPeer.java"
RELEASES = ("0.9.0.1", "0.10.2.2", "3.9.1", "4.4.0")


@cache
def class_path(version: str) -> str:
    """Return the class path of OldPeer for a release."""
    jars = kafka.jars(version) if version == kafka.VERSION else kafka.client_jars(version)
    classes = kafka.BUILD / f"classes-old-peer-{version}"
    classes.mkdir(parents=True, exist_ok=True)
    compiler = kafka.need("javac", "openjdk-17-jdk-headless")
    subprocess.run(
        [compiler, "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), str(SOURCE)], check=True, timeout=HANG_S
    )
    return f"{classes}:{jars}/*"


def command(version: str, words: tuple[object, ...]) -> list[str]:
    java = kafka.need("java", "openjdk-17-jdk-headless")
    return [
        java,
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        class_path(version),
        "OldPeer",
        *map(str, words),
    ]


def run(version: str, *words: object) -> list[str]:
    """Run it and return its output; an error fails the test."""
    done = subprocess.run(command(version, words), capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@contextmanager
def following(version: str, *words: object) -> Iterator[subprocess.Popen[str]]:
    """Start a consumer process; `communicate` returns its lines. It is killed at the end of the block."""
    with subprocess.Popen(
        command(version, words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()
