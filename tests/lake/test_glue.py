"""Iceberg tables with AWS Glue as the catalog, and a warehouse in S3; moto serves both."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import TableError
from kwire.lake import open_iceberg
from tests.lake import catalog_cases
from tests.lake.tables import kafka_rows, write
from tests.object_store import KEYS, PROXIES, VARIABLES, aws_process

pytest.importorskip("pyiceberg")

SECRET = KEYS["secret_key"]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with aws_process("lake") as url:
        yield url


@pytest.fixture(autouse=True)
def _no_other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *PROXIES, "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")


def plain_settings(endpoint: str) -> dict[str, str]:
    """Return properties without secrets."""
    return {
        "type": "glue",
        "glue.endpoint": endpoint,
        "s3.endpoint": endpoint,
        "client.region": "us-east-1",
        "warehouse": "s3://lake/warehouse",
    }


@pytest.fixture
def settings(endpoint: str) -> dict[str, str]:
    keys = {"client.access-key-id": KEYS["access_key"], "client.secret-access-key": SECRET}
    return plain_settings(endpoint) | keys


@pytest.mark.slow
def test_a_table_is_made_written_and_merged(settings: dict[str, str]) -> None:
    catalog_cases.written_and_merged(settings)


@pytest.mark.slow
def test_writers_at_once_create_a_table(settings: dict[str, str]) -> None:
    catalog_cases.appended_at_once(settings)


@pytest.mark.slow
def test_the_commands_read_keys_from_the_environment(
    endpoint: str, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    words = [f"--catalog={name}={value}" for name, value in plain_settings(endpoint).items()]
    keys = {"AWS_ACCESS_KEY_ID": KEYS["access_key"], "AWS_SECRET_ACCESS_KEY": SECRET}
    catalog_cases.commands_copy_a_log(kafka_logs["modern"] / "data", tmp_path / "home", keys, *words)


@pytest.mark.slow
def test_tasks_get_no_keys_of_the_catalog(endpoint: str, tmp_path: Path, settings: dict[str, str]) -> None:
    own = {"glue.access-key-id": "hunter2-glue", "glue.secret-access-key": "hunter2-glue-secret"}
    catalog_cases.written_elsewhere({**settings, **own}, ["hunter2-glue"], tmp_path / "home")


@pytest.mark.slow
def test_a_table_that_was_removed_meanwhile(settings: dict[str, str]) -> None:
    table: Any = open_iceberg("sales.removed", settings)
    remove = lambda: table.catalog.glue.delete_table(DatabaseName="sales", Name="removed")  # noqa: E731
    catalog_cases.removed_meanwhile(table, remove)


def test_a_table_of_hive_is_not_written(settings: dict[str, str]) -> None:
    table: Any = open_iceberg("hive.orders", settings)
    table.catalog.create_namespace("hive")
    hive = {"Name": "orders", "Parameters": {"table_type": "HIVE"}, "TableType": "EXTERNAL_TABLE"}
    table.catalog.glue.create_table(DatabaseName="hive", TableInput=hive)
    with pytest.raises(TableError, match=r"hive.orders: Property table_type is HIVE, expected iceberg"):
        write(table, kafka_rows(0, 1))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"glue.endpoint": "http://127.0.0.1:9"}, r"cannot be reached: .*http://127.0.0.1:9/.*check catalog.glue.endp"),
        ({"client.region": ""}, "the catalog's region is not set; set catalog.glue.region or AWS_REGION"),
        ({"client.secret-access-key": "", "client.access-key-id": ""}, "refuses access: Unable to locate credentials;"),
        ({"type": "glu"}, "'glu' is not a valid CatalogType"),
        ({"type": ""}, "catalog.uri is missing, or catalog.type of .* as PYICEBERG_CATALOG__DEFAULT__URI or in ~/"),
        ({"type": "", "uri": "mysql://u:hunter2@h/d"}, "catalog.type is missing, which this catalog.uri requires: res"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, str], changed: dict[str, str], message: str) -> None:
    settings = {name: value for name, value in (settings | changed).items() if value}
    with pytest.raises(TableError, match=message) as error:
        open_iceberg("sales.orders", {**settings, "glue.max-retries": 0}).refresh()  # type: ignore[dict-item]
    assert "hunter2" not in str(error.value)


def test_keys_without_rights_are_refused(endpoint: str, settings: dict[str, str]) -> None:
    def authenticate_after(requests: int) -> None:
        url = f"{endpoint}/moto-api/reset-auth"
        check = urllib.request.Request(url, data=str(requests).encode(), method="POST")
        check.add_header("Content-Type", "text/plain")
        urllib.request.urlopen(check).close()

    authenticate_after(0)
    try:
        with pytest.raises(TableError, match=r"the catalog refuses access: .*; check its credentials") as error:
            open_iceberg("sales.orders", settings).refresh()
        assert "hunter2" not in str(error.value)
    finally:
        authenticate_after(1_000_000)
