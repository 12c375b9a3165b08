"""Iceberg tables with a catalog in PostgreSQL: writers at once, crashes of the server, and passwords."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools import postgres
from tools.postgres import PASSWORD, Postgres

from kwire.errors import TableError
from kwire.lake import Change, Layout, Mark, open_iceberg, write_files
from tests.lake import catalog_cases
from tests.lake.tables import KAFKA, kafka_rows, write
from tests.tcp_proxy import TcpProxy
from tests.waiting import until

pytest.importorskip("pyiceberg")
pytest.importorskip("psycopg2", reason="needs psycopg2-binary")


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres.running() as found:
        yield found


@pytest.fixture
def settings(server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A catalog in a new database."""
    name = f"lake_{os.urandom(4).hex()}"
    server.run(f"CREATE DATABASE {name}")
    return {"type": "sql", "uri": server.uri(database=name), "warehouse": f"file://{tmp_path}"}


def offsets_of(settings: dict[str, str]) -> list[int]:
    return sorted(catalog_cases.rows_of(open_iceberg("sales.orders", settings)).column("offset").to_pylist())


@pytest.mark.slow
def test_a_table_is_made_written_and_merged(settings: dict[str, str]) -> None:
    catalog_cases.written_and_merged(settings)


@pytest.mark.slow
def test_writers_at_once_create_the_catalog_and_a_table(settings: dict[str, str]) -> None:
    catalog_cases.appended_at_once(settings)


@pytest.mark.slow
def test_the_commands_read_the_password_from_the_environment(
    settings: dict[str, str], kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    variables = catalog_cases.settings_as_variables({"uri": settings["uri"]}, "lake")
    words = ("--catalog=name=lake", f"--catalog=warehouse={settings['warehouse']}", "--catalog=type=sql")
    catalog_cases.commands_copy_a_log(kafka_logs["modern"] / "data", tmp_path / "home", variables, *words)


@pytest.mark.slow
def test_tasks_get_no_password(settings: dict[str, str], tmp_path: Path) -> None:
    catalog_cases.written_elsewhere(settings, [PASSWORD], tmp_path / "home")


def test_a_server_killed_during_a_commit(server: Postgres, settings: dict[str, str]) -> None:
    """The commit waits for a lock as the server dies. The error is clear, and the rows are there once after a retry."""
    table: Any = open_iceberg("sales.orders", settings)
    write(table, kafka_rows(0, 10), mark=Mark(query="q", batch=0))
    plan = table.prepare(KAFKA, Layout())
    written = write_files(kafka_rows(10, 20).to_batches(), plan)
    change = Change(id="a", mark=Mark(query="q", batch=1), spans=written.spans)
    errors: list[TableError] = []

    def commit() -> None:
        try:
            table.commit(written.files, change, plan)
        except TableError as error:
            errors.append(error)

    import psycopg2  # type: ignore[import-untyped]

    holder = psycopg2.connect(settings["uri"].replace("+psycopg2", ""))
    holder.cursor().execute("SELECT * FROM iceberg_tables FOR UPDATE")
    committing = threading.Thread(target=commit)
    committing.start()
    until(lambda: server.run("SELECT count(*) FROM pg_locks WHERE NOT granted").strip() != "0")
    server.stop()
    committing.join()
    holder.close()
    server.start()
    (error,) = errors
    assert "sales.orders: the catalog's database does not respond: " in str(error)
    assert str(error).endswith("; check catalog.uri")
    assert PASSWORD not in str(error)
    again = open_iceberg("sales.orders", settings)
    write(again, kafka_rows(10, 20), mark=change.mark)
    assert offsets_of(settings) == list(range(20))


def test_a_commit_whose_response_is_lost_is_found(server: Postgres, settings: dict[str, str]) -> None:
    with LosesCommits(("127.0.0.1", server.port)) as proxy:
        table: Any = open_iceberg(
            "sales.orders", {**settings, "uri": settings["uri"].replace(f":{server.port}/", f":{proxy.port}/")}
        )
        write(table, kafka_rows(0, 10), mark=Mark(query="q", batch=0))
        plan = table.prepare(KAFKA, Layout())
        written = write_files(kafka_rows(10, 20).to_batches(), plan)
        proxy.is_armed = True
        assert table.commit(written.files, Change(id="a", mark=Mark(query="q", batch=1), spans=written.spans), plan)
        assert not proxy.is_armed
    assert not write(open_iceberg("sales.orders", settings), kafka_rows(10, 20), mark=Mark(query="q", batch=1))
    assert offsets_of(settings) == list(range(20))


def test_a_table_that_was_removed_meanwhile(server: Postgres, settings: dict[str, str]) -> None:
    table: Any = open_iceberg("sales.orders", settings)
    catalog_cases.removed_meanwhile(table, lambda: table.catalog.drop_table("sales.orders"))


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ({"password": "hunter2-wrong"}, r"the catalog refuses access: .*password authentication failed.*; check its"),
        ({"port": 9}, r"the catalog's database does not respond: .*port 9 failed: Connection refused; check cat"),
        ({"database": "nope"}, r"the catalog's database does not respond: .*database \"nope\" does not exist; check"),
    ],
)
def test_wrong_settings_are_named(server: Postgres, uri: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=message) as error:
        open_iceberg("sales.orders", {"type": "sql", "uri": server.uri(**uri)}).refresh()
    assert "hunter2" not in str(error.value)


class LosesCommits(TcpProxy):
    """A proxy of a server. is_armed: the next commit is executed, and its connection is closed before the response."""

    is_armed = False

    def _forward_connection(self, client: socket.socket, server: socket.socket) -> None:
        committed = threading.Event()
        for source, target in ((client, server), (server, client)):
            threading.Thread(target=self._copy, args=(source, target, committed), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, committed: threading.Event) -> None:
        with source:
            while data := source.recv(65536):
                if committed.is_set():  # the response
                    target.shutdown(socket.SHUT_RDWR)
                    return
                if self.is_armed and b"COMMIT" in data:
                    self.is_armed = False
                    committed.set()
                try:
                    target.sendall(data)
                except OSError:
                    return
