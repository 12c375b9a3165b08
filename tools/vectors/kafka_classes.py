"""Kafka's classes of one release as an encoder and a decoder: tools/java/Vectors.java, a JVM for each list of tasks."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Sequence
from typing import Any

from tools.kafka import BUILD, ROOT, SHORT_LIVED, compile_java, jars, java

__all__ = ["Task", "run"]

Task = dict[str, Any]

SOURCE = ROOT / "tools" / "java" / "Vectors.java"
TIMEOUT_S = 1200


def run(release: str, tasks: Sequence[Task]) -> list[Task]:
    """Run tasks in the classes of a release. Returns a result for each; one with `error` is a refusal."""
    if not tasks:
        return []
    text = _source(release)
    folder = BUILD / f"vectors-{release}"
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / SOURCE.name
    if not source.exists() or source.read_text() != text or not (folder / "done").exists():
        source.write_text(text)
        compile_java(source, folder=jars(release), into=folder)
        (folder / "done").touch()
    lines = "".join(json.dumps(task, ensure_ascii=True) + "\n" for task in tasks)
    output = java(*SHORT_LIVED, "Vectors", version=release, classes=folder, text=lines, timeout=TIMEOUT_S)
    results = [json.loads(line) for line in output.splitlines()]
    if len(results) != len(tasks):
        raise RuntimeError(f"Kafka {release}: {len(tasks)} tasks, {len(results)} results")
    return results


def _source(release: str) -> str:
    """Return the source with the packages of a release: the classes of records became internal in 4.3 and 4.4."""
    with zipfile.ZipFile(jars(release) / f"kafka-clients-{release}.jar") as jar:
        names = set(jar.namelist())

    def package(found: re.Match[str]) -> str:
        internal = f"org.apache.kafka.common.record.internal.{found[1]}"
        return internal if f"{internal.replace('.', '/')}.class" in names else found[0]

    return re.sub(r"org\.apache\.kafka\.common\.record\.(\w+)", package, SOURCE.read_text())
