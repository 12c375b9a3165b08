"""kwire-iceberg and jobs.table with every kind of catalog. Secrets in files, variables or options are not shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.lake.catalog_cases import bare_environment, settings_as_variables
from tests.object_store import KEYS, aws_process
from tests.spark.conftest import need_java
from tools import postgres, rest_catalog

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("pyiceberg")
pytest.importorskip("confluent_kafka")

pytestmark = [pytest.mark.spark, pytest.mark.jvm, pytest.mark.slow, pytest.mark.timeout(900)]

SECRETS = ("hunter2-", postgres.PASSWORD, rest_catalog.TOKEN, rest_catalog.SECRET)
ROOT = Path(__file__).parents[3]


def in_s3(endpoint: str) -> dict[str, str]:
    """Return the settings of a warehouse in S3, with keys."""
    return {
        "warehouse": "s3://lake/warehouse",
        "s3.endpoint": endpoint,
        "client.region": KEYS["region"],
        "client.access-key-id": KEYS["access_key"],
        "client.secret-access-key": KEYS["secret_key"],
    }


@contextmanager
def settings_of(kind: str, folder: Path) -> Iterator[Mapping[str, str]]:
    """Start a catalog; yield its properties."""
    with ExitStack() as stack:
        if kind == "rest":
            yield stack.enter_context(rest_catalog.running(folder)).client_properties
        elif kind == "postgres":
            pytest.importorskip("psycopg2")
            server = stack.enter_context(postgres.running())
            yield {"type": "sql", "uri": server.uri(), "warehouse": f"file://{folder}"}
        else:
            endpoint = stack.enter_context(aws_process("lake"))
            storage = in_s3(endpoint)
            if kind == "glue":
                yield {"type": "glue", "glue.endpoint": endpoint, **storage}
                return
            server_io = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.path-style-access": "true"}
            keys = {"s3.access-key-id": KEYS["access_key"], "s3.secret-access-key": KEYS["secret_key"]}
            server = stack.enter_context(rest_catalog.running(folder, **storage, **server_io, **keys))
            yield {**server.properties, **storage}


def run(folder: Path, options: Mapping[str, str], variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run catalog_program. Its log is in the folder."""
    environment = bare_environment(folder / "home", variables) | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.spark.lake.catalog_program", str(folder), json.dumps(dict(options))]
    with (folder / "spark.log").open("w") as log:
        return subprocess.run(
            command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True, check=False
        )


def program(folder: Path, options: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, Sequence[int]]:
    """Run catalog_program; return what it prints."""
    done = run(folder, options, variables)
    assert done.returncode == 0, (folder / "spark.log").read_text()[-3000:]
    found: dict[str, Sequence[int]] = json.loads(done.stdout.splitlines()[-1])
    return found


def files_with(folder: Path, secrets: Sequence[str]) -> list[str]:
    """Return the files of a folder that have one of the secrets."""
    files = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return [str(path) for path in files if any(secret.encode() in path.read_bytes() for secret in secrets)]


@pytest.mark.parametrize("kind", ["rest", "rest-s3", "glue", "postgres"])
def test_rows_are_written_once_and_secrets_are_not_shown(kind: str, tmp_path: Path) -> None:
    need_java()
    served, own = tmp_path / "served", tmp_path / "own"
    served.mkdir()
    own.mkdir()
    with settings_of(kind, served) as settings:
        if kind == "rest-s3":
            found = program(own, {f"catalog.{name}": value for name, value in settings.items()}, {})
        elif kind == "rest":
            lines = [f"    {name}: {value}\n" for name, value in settings.items()]
            (own / "home").mkdir()
            (own / "home" / ".pyiceberg.yaml").write_text("catalog:\n  lake:\n" + "".join(lines))
            found = program(own, {"catalog": "lake"}, {})
            (own / "home" / ".pyiceberg.yaml").unlink()
        else:
            found = program(own, {"catalog": "lake"}, settings_as_variables(settings, "lake"))
    assert found == {"streamed": [300, 300], "job": [300, 300], "batch": [20, 20], "jobs": [300, 0]}
    assert files_with(own / "events", ["kwire-iceberg"])
    assert files_with(tmp_path, SECRETS) == []


@pytest.mark.parametrize("kind", ["rest", "postgres"])
def test_the_error_of_wrong_secrets_has_none(kind: str, tmp_path: Path) -> None:
    """Not in the traceback either, with which Spark logs the errors of its Python processes."""
    need_java()
    served, own = tmp_path / "served", tmp_path / "own"
    served.mkdir()
    own.mkdir()
    with settings_of(kind, served) as settings:
        wrong = {name: value.replace(postgres.PASSWORD, "hunter2-wrong") for name, value in settings.items()}
        wrong = {name: value.replace(rest_catalog.SECRET, "hunter2-wrong") for name, value in wrong.items()}
        done = run(own, {"catalog": "lake"}, settings_as_variables(wrong, "lake"))
    assert done.returncode != 0
    log = (own / "spark.log").read_text()
    assert "sales.streamed: the catalog refuses access: " in log
    assert files_with(tmp_path, SECRETS) == []
