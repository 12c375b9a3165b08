"""Tables of a real Iceberg REST catalog: made, written, merged and cleaned; concurrent writers, faults and secrets.

The warehouse is a folder, or in S3. Clients have a token, or credentials to get one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.lake import catalog_cases
from tests.lake.tables import kafka_rows, write
from tests.object_store import KEYS, aws_process
from tools.rest_catalog import SECRET, TOKEN, RestCatalog, running

from kwire.errors import TableError
from kwire.lake import Change, LakeTable, Layout, Mark, open_iceberg, write_files

pytest.importorskip("pyiceberg")
pytestmark = [pytest.mark.jvm, pytest.mark.slow]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCatalog]:
    with running(tmp_path_factory.mktemp("rest")) as found:
        yield found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RestCatalog]:
    """A catalog that a test may break."""
    with running(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def in_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Properties of a catalog whose warehouse is in S3."""
    with aws_process("lake") as endpoint:
        server = {
            "warehouse": "s3://lake/warehouse",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "client.region": KEYS["region"],
            "s3.endpoint": endpoint,
            "s3.path-style-access": "true",
            "s3.access-key-id": KEYS["access_key"],
            "s3.secret-access-key": KEYS["secret_key"],
        }
        with running(tmp_path_factory.mktemp("rest"), **server) as found:
            yield {
                **found.properties,
                "s3.endpoint": endpoint,
                "s3.region": KEYS["region"],
                "s3.access-key-id": KEYS["access_key"],
                "s3.secret-access-key": KEYS["secret_key"],
            }


def opened(catalog: RestCatalog, name: str, **properties: str) -> LakeTable:
    return open_iceberg(f"sales.{name}", {**catalog.properties, **properties})


def rows_of(table: Any) -> pa.Table:
    table.refresh()
    return table.table.scan().to_arrow()


def offsets_of(table: Any) -> list[int]:
    return sorted(rows_of(table).column("offset").to_pylist())


def test_a_table_is_made_written_evolved_and_merged(catalog: RestCatalog) -> None:
    table = opened(catalog, "whole")
    layout = Layout(partition_by=("days(timestamp)",), sort_by=("key",), properties={"owner": "sales"})
    key = ("key",)
    assert write(table, kafka_rows(0, 50), mark=Mark(query="q", batch=0), layout=layout, key=key)
    assert not write(opened(catalog, "whole"), kafka_rows(0, 50), mark=Mark(query="q", batch=0), key=key)
    wider = kafka_rows(50, 60).set_column(1, "value", pa.array(range(10), pa.int64()))
    write(table, wider.append_column("note", pa.array(["new"] * 10)), key=key)
    write(table, kafka_rows(60, 70, key=4), key=key)
    found = rows_of(opened(catalog, "whole"))
    assert (len(found), found.column("note").null_count) == (60, 50)  # four keys were there
    fresh: Any = opened(catalog, "whole")
    fresh.refresh()
    assert fresh.state().spans == {("orders", 0): ((0, 70),)}
    assert fresh.table.properties["owner"] == "sales"
    assert TOKEN not in fresh.table.metadata.model_dump_json()
    assert TOKEN not in repr(fresh.prepare(kafka_rows(0, 1).schema, Layout()))
    assert fresh.find_orphans(0) == []


def test_a_warehouse_in_s3(in_s3: dict[str, str], tmp_path: Path) -> None:
    catalog_cases.written_and_merged(in_s3)
    catalog_cases.appended_at_once(in_s3)
    catalog_cases.written_elsewhere(in_s3, [TOKEN], tmp_path / "home")


def test_a_table_that_was_removed_meanwhile(catalog: RestCatalog) -> None:
    table: Any = opened(catalog, "removed")
    catalog_cases.removed_meanwhile(table, lambda: table.catalog.drop_table("sales.removed"))


def test_tasks_get_no_token_and_no_credentials(catalog: RestCatalog, tmp_path: Path) -> None:
    catalog_cases.written_elsewhere(catalog.client_properties, [TOKEN, SECRET], tmp_path / "home")


def test_the_commands_read_a_token_from_the_environment(
    in_s3: dict[str, str], kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    secrets = {name: in_s3[name] for name in ("token", "s3.access-key-id", "s3.secret-access-key")}
    variables = catalog_cases.settings_as_variables(secrets)
    words = [f"--catalog={name}={value}" for name, value in in_s3.items() if name not in secrets]
    catalog_cases.commands_copy_a_log(kafka_logs["modern"] / "data", tmp_path / "home", variables, *words)


def test_the_commands_read_client_credentials_from_a_file(
    own: RestCatalog, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    lines = [f"    {name}: {value}\n" for name, value in own.client_properties.items()]
    (home / ".pyiceberg.yaml").write_text("catalog:\n  lake:\n" + "".join(lines))
    catalog_cases.commands_copy_a_log(kafka_logs["modern"] / "data", home, {}, "--catalog=name=lake")
    (home / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n    credential: [{SECRET}]\n")
    done = catalog_cases.command(["offsets", "sales.copied", "--catalog=name=lake"], home, {})
    assert done.returncode == 1
    assert done.stderr == "kwire: table sales.copied: the file .pyiceberg.yaml is not valid, line 3: while scanning\n"


def test_client_credentials_get_a_new_token_when_it_expires(own: RestCatalog) -> None:
    table = open_iceberg("sales.orders", own.client_properties)
    write(table, kafka_rows(0, 10))
    own.fail("expire")
    write(table, kafka_rows(10, 20))
    assert offsets_of(table) == list(range(20))


def test_concurrent_writers_all_commit(catalog: RestCatalog) -> None:
    write(opened(catalog, "busy"), kafka_rows(0, 1))
    errors = []

    def append(partition: int) -> None:
        try:
            for start in range(0, 30, 10):
                write(opened(catalog, "busy"), kafka_rows(start, start + 10, partition=partition))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=append, args=(partition,)) for partition in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    table = opened(catalog, "busy")
    assert len(rows_of(table)) == 1 + 4 * 30
    assert table.state().spans == {("orders", 0): ((0, 1),)} | {("orders", each): ((0, 30),) for each in range(1, 5)}
    assert table.find_orphans(0) == [] or {each.path.rsplit("/", 2)[1] for each in table.find_orphans(0)} == {
        "metadata"
    }


def test_a_commit_whose_response_is_lost_is_found(catalog: RestCatalog) -> None:
    table = opened(catalog, "lost")
    write(table, kafka_rows(0, 10), mark=Mark(query="q", batch=0))
    catalog.fail("lose")
    assert write(table, kafka_rows(10, 20), mark=Mark(query="q", batch=1))
    assert not write(opened(catalog, "lost"), kafka_rows(10, 20), mark=Mark(query="q", batch=1))
    assert offsets_of(table) == list(range(20))
    assert table.find_orphans(0) == []


def test_a_token_that_expires_loses_nothing_and_leaves_no_file(own: RestCatalog) -> None:
    table: Any = opened(own, "orders")
    write(table, kafka_rows(0, 10))
    plan = table.prepare(kafka_rows(0, 1).schema, Layout())
    written = write_files(kafka_rows(10, 20).to_batches(), plan)
    folder = Path(written.files[0].path.removeprefix("file://")).parent
    own.fail("expire")
    with pytest.raises(
        TableError, match=r"sales.orders: the catalog refuses access: .*expired.*; check its cred"
    ) as error:
        table.commit(written.files, Change(id="a", spans=written.spans), plan)
    assert TOKEN not in str(error.value)
    assert len(list(folder.glob("*.parquet"))) == 1


def test_files_stay_if_the_catalog_is_down_after_a_commit(own: RestCatalog) -> None:
    """It may have succeeded, as it did here: the table has the files."""
    table: Any = opened(own, "orders")
    write(table, kafka_rows(0, 10))
    plan = table.prepare(kafka_rows(0, 1).schema, Layout())
    written = write_files(kafka_rows(10, 20).to_batches(), plan)
    own.fail("die")
    with pytest.raises(TableError, match="no response of the catalog in time"):
        table.commit(written.files, Change(id="a", spans=written.spans), plan)
    assert all(Path(each.path.removeprefix("file://")).exists() for each in written.files)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"token": "wrong-hunter2"}, "the catalog refuses access: the access token is expired or invalid; check"),
        ({"uri": "http://127.0.0.1:9"}, "the catalog cannot be reached: 127.0.0.1:9: .*refused; check catalog.uri"),
        ({"credential": "kwire:wrong-hunter2"}, "the catalog refuses access: invalid_client: unknown client or wrong"),
        (
            {"credential": "kwire:hunter2", "oauth2-server-uri": "http://127.0.0.1:9/tokens"},
            "the catalog cannot be reached: 127.0.0.1:9: .*refused; check",
        ),
    ],
)
def test_wrong_settings_are_named(catalog: RestCatalog, properties: dict[str, str], message: str) -> None:
    server = {"oauth2-server-uri": catalog.client_properties["oauth2-server-uri"]}
    with pytest.raises(TableError, match=message) as error:
        opened(catalog, "whole", **{**server, **properties}).refresh()
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("page", [None, "<html>hunter2</html>"])
def test_a_server_that_is_not_a_catalog_is_named(tmp_path: Path, page: str | None) -> None:
    if page is not None:
        (tmp_path / "v1").mkdir()
        (tmp_path / "v1" / "config").write_text(page)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        table = open_iceberg("sales.orders", {"type": "rest", "uri": f"http://127.0.0.1:{server.server_port}"})
        with pytest.raises(TableError, match=r"response is not that of an Iceberg REST catalog.*; check catalog.uri"):
            table.refresh()
        server.shutdown()
