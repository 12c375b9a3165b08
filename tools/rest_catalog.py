"""A real Iceberg REST catalog for interop tests: the server of Iceberg's own tests, over SQLite and a warehouse.

`mvn` downloads it from Maven Central to build/kafka/rest-catalog-s3, once. It needs Java 17.
"""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.kafka import BUILD, ROOT, SHORT_LIVED, fetch_jars, need

TOKEN, SECRET = "hunter2-token", "hunter2-secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestCatalog:
    """A running catalog."""

    uri: str

    @property
    def properties(self) -> dict[str, str]:
        """Return PyIceberg's properties, with a token."""
        return {"type": "rest", "uri": self.uri, "token": TOKEN}

    @property
    def client_properties(self) -> dict[str, str]:
        """Return PyIceberg's properties, with client credentials."""
        return {
            "type": "rest",
            "uri": self.uri,
            "credential": f"kwire:{SECRET}",
            "oauth2-server-uri": f"{self.uri}/tokens",
        }

    def fail(self, fault: str) -> None:
        """Cause a fault: see RestCatalog.java."""
        with urllib.request.urlopen(urllib.request.Request(f"{self.uri}/{fault}", method="PUT", data=b"")):
            pass


@contextmanager
def running(folder: Path, **properties: str) -> Iterator[RestCatalog]:
    """Run a catalog, whose database and, without other properties, tables are in a folder."""
    jars = fetch_jars(BUILD / "rest-catalog-s3", "rest-catalog.xml")
    source = ROOT / "tools" / "java" / "RestCatalog.java"
    command = [need("java", "openjdk-17-jdk-headless"), *SHORT_LIVED, "-Xmx512m", "-cp", f"{jars}/*", str(source)]
    log = folder / "catalog.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [*command, str(folder), TOKEN, SECRET, *(f"{name}={value}" for name, value in properties.items())],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line.startswith("port "):
                raise RuntimeError(f"Iceberg's REST catalog did not start: {log.read_text()[-1000:]}")
            yield RestCatalog(uri=f"http://127.0.0.1:{line.split()[1]}")
        finally:
            process.terminate()
