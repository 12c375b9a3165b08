"""A real schema registry for interop tests: Apicurio Registry, which speaks Confluent's REST API, in memory.

`mvn` downloads it from Maven Central to build/apicurio-VERSION, once. It needs Java 17.
"""

from __future__ import annotations

import shutil
import subprocess
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.kafka import ROOT, SHORT_LIVED, START_S, Unavailable, free_port, need

VERSION = "3.0.9"


def fetch() -> Path:
    """Return the folder with the registry's program; fetched on the first call."""
    target = ROOT / "build" / f"apicurio-{VERSION}"
    if target.is_dir():
        return target
    staging = target.with_name(f".{target.name}.part")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    artifact = f"io.apicurio:apicurio-registry-app:{VERSION}:zip:all"
    done = subprocess.run(
        [need("mvn", "maven"), "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={staging}"],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise Unavailable(f"mvn cannot fetch {artifact}: {done.stdout[-300:]}")
    (archive,) = staging.glob("*.zip")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(staging)
    archive.unlink()
    staging.rename(target)
    return target


@contextmanager
def running(log: Path) -> Iterator[str]:
    """Run a registry, and yield the URL of its Confluent API. log: its output."""
    folder, port = fetch(), free_port()
    url = f"http://localhost:{port}/apis/ccompat/v7"
    settings = (f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1")
    command = [need("java", "openjdk-17-jre-headless"), *SHORT_LIVED, "-Xmx512m", *settings, "-jar"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, str(next(folder.glob("*-runner.jar")))], cwd=folder, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            deadline = time.monotonic() + START_S
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"Apicurio Registry did not start: {log.read_text()[-1000:]}")
                time.sleep(0.2)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/subjects", timeout=5):
            return True
    except (OSError, urllib.error.URLError):
        return False
