"""The catalogs that docs/table-catalogs.md describes, and its command, run as they are there, in an empty home."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from tools import postgres, rest_catalog

from tests.docs.examples import blocks
from tests.lake.catalog_cases import command
from tests.object_store import KEYS, aws_process

pytest.importorskip("pyiceberg")


def append(name: str, source: Path, folder: Path, values: Mapping[str, str], **variables: str) -> None:
    """Run the page's command twice with one of its catalogs. values: of the placeholders."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (folder / "lake").mkdir(exist_ok=True)
    (text,) = blocks("table-catalogs.md", "yaml")
    for placeholder, value in {":////lake": f":///{folder}/lake", ":///lake": f"://{folder}/lake", **values}.items():
        assert placeholder in text
        text = text.replace(placeholder, value)
    (home / ".pyiceberg.yaml").write_text(text)
    (line,) = (
        line for block in blocks("table-catalogs.md", "sh") for line in block.splitlines() if "name=rest" in line
    )
    words = shlex.split(line.replace("kafka://broker:9092", str(source)).replace("name=rest", f"name={name}"))[2:]
    for rows in (7015, 0):
        done = command([*words, "--partition", "0", "--format", "json"], home, variables)
        assert done.returncode == 0, done.stderr
        assert [each["rows"] for each in json.loads(done.stdout)] == [rows]
        assert done.stderr == ""


@pytest.fixture
def source(kafka_logs: dict[str, Path]) -> Path:
    return kafka_logs["modern"] / "data"


@pytest.mark.slow
def test_sqlite(source: Path, tmp_path: Path) -> None:
    append("local", source, tmp_path, {})


@pytest.mark.slow
def test_postgres(source: Path, tmp_path: Path) -> None:
    pytest.importorskip("psycopg2")
    with postgres.running() as server:
        server.run("CREATE DATABASE lake")
        values = {"PASSWORD": postgres.PASSWORD, "db.example.com:5432": f"127.0.0.1:{server.port}"}
        append("postgres", source, tmp_path, values)


@pytest.mark.slow
@pytest.mark.jvm
@pytest.mark.parametrize("name", ["rest", "oauth"])
def test_rest(source: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "served").mkdir()
    with rest_catalog.running(tmp_path / "served") as server:
        values = {
            "https://catalog.example.com": server.uri,
            "https://login.example.com/token": f"{server.uri}/tokens",
            "TOKEN": rest_catalog.TOKEN,
            "CLIENT_ID:CLIENT_SECRET": f"kwire:{rest_catalog.SECRET}",
        }
        append(name, source, tmp_path, values)


@pytest.mark.slow
def test_glue(source: Path, tmp_path: Path) -> None:
    with aws_process("lake") as endpoint:
        variables = {
            "PYICEBERG_CATALOG__GLUE__GLUE__ENDPOINT": endpoint,
            "PYICEBERG_CATALOG__GLUE__S3__ENDPOINT": endpoint,
            "AWS_ACCESS_KEY_ID": KEYS["access_key"],
            "AWS_SECRET_ACCESS_KEY": KEYS["secret_key"],
        }
        append("glue", source, tmp_path, {}, **variables)
