"""Kafka before 2.2 defined its protocol in Java: the catalogue of those releases equals its classes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.schema.wire_tokens import tokens
from tests.waiting import HANG_S
from tools import kafka

from kwire.messages import registry

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

SOURCE = Path(kafka.ROOT) / "tools" / "java" / "PrintSchemas.java"
TYPES = {
    **{name.upper(): (name, False) for name in ("int8", "int16", "int32", "int64", "uint32", "string", "bytes")},
    "BOOLEAN": ("bool", False),
    "NULLABLE_STRING": ("string", True),
    "NULLABLE_BYTES": ("bytes", True),
    "RECORDS": ("bytes", True),
}


@pytest.mark.parametrize(("release", "pairs"), [("2.0.1", 124), ("2.1.1", 135), ("2.2.2", 143)])
def test_every_version_equals_kafkas_java_schema(tmp_path: Path, release: str, pairs: int) -> None:
    jars = kafka.client_jars(release)
    compiler = kafka.need("javac", "openjdk-17-jdk-headless")
    subprocess.run([compiler, "-cp", f"{jars}/*", "-d", str(tmp_path), str(SOURCE)], check=True, timeout=HANG_S)
    run = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{tmp_path}:{jars}/*", "PrintSchemas"]
    printed = subprocess.run(run, check=True, timeout=HANG_S, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    assert len(lines) == pairs
    highest: dict[int, int] = {}
    for line in lines:
        key, version = line["key"], line["version"]
        highest[key] = max(version, highest.get(key, 0))
        for kind in ("request", "response"):
            spec = registry.find(kind, key, kafka=release).SPEC
            assert tokens(spec, spec.struct, version) == [as_tokens(form) for form in line[kind]], (spec.name, version)
    specs = [registry.get(name, release).SPEC for name in registry.names(release)]
    valid = {spec.api_key: spec.valid for spec in specs if spec.kind == "request"}
    assert {key: (versions.lowest, versions.highest) for key, versions in valid.items()} == {
        key: (0, version) for key, version in highest.items()
    }


def as_tokens(form: Any) -> Any:
    """Convert a type printed by PrintSchemas to the form of `tokens`; no version is flexible."""
    if isinstance(form, str):
        name, null = TYPES[form]
        return name, null, False
    _, null, inner = form
    return "array", null, False, [as_tokens(each) for each in inner]
