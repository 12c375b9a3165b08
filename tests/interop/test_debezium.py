"""Debezium's connector copies a real PostgreSQL to kwire's broker; the tables of its changes are as the database.

The connector runs in Kafka Connect, is killed in the middle, and sends some events again.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.lake.tables import FORMATS, Tables
from tests.spark.conftest import spark as spark
from tests.spark.lake.test_sink import options
from tests.waiting import until
from tools import kafka, postgres
from tools.postgres import PASSWORD, Postgres

import kwire
from kwire.broker import Broker

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("pyiceberg")
duckdb = pytest.importorskip("duckdb")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.jvm, pytest.mark.spark, pytest.mark.slow]

TOPIC = "db.public.items"
ROWS = 200
ROW = "struct<id: int, part: string, name: string, amount: bigint>"
ENVELOPE = f"struct<before: {ROW}, after: {ROW}, source: struct<lsn: bigint>, op: string>"
WORKER = """bootstrap.servers={servers}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter.schemas.enable=false
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=1000
listeners=http://127.0.0.1:0
plugin.discovery=only_scan
"""
CONNECTOR = """name=items
connector.class=io.debezium.connector.postgresql.PostgresConnector
database.hostname=127.0.0.1
database.port={port}
database.user=kwire
database.password={password}
database.dbname=postgres
topic.prefix=db
plugin.name=pgoutput
table.include.list=public.items
topic.creation.default.partitions=3
topic.creation.default.replication.factor=1
poll.interval.ms=100
"""


@contextmanager
def connect(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the connector in a process of Kafka Connect."""
    path = f"{kafka.jars()}/*:{kafka.debezium_jars()}/*"
    command = ["java", "-Xmx400m", *kafka.SHORT_LIVED, "-cp", path, "org.apache.kafka.connect.cli.ConnectStandalone"]
    with (folder / "connect.log").open("ab") as log:
        files = [str(folder / "worker.properties"), str(folder / "connector.properties")]
        process = subprocess.Popen([*command, *files], stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def events(servers: str) -> list[bytes | None]:
    """Return the values of the topic."""
    with suppress(KeyError):
        logs = kwire.open(f"kafka://{servers}")
        try:
            return [record.value for key in logs.partitions if key[0] == TOPIC for record in logs[key].read()]
        finally:
            logs.close()
    return []


def change(server: Postgres, chance: random.Random) -> None:
    """Change rows, and their keys, in one transaction and in many."""
    statements = []
    for _ in range(150):
        number, part = chance.randrange(1, ROWS + 60), chance.choice("ab")
        where = f"WHERE id = {number} AND part = '{part}'"
        insert = f"INSERT INTO items VALUES ({number}, '{part}', 'x{chance.random()}', {chance.randrange(10**12)})"
        moves = (f"id = {1000 + chance.randrange(10**6)}", f"part = 'c{chance.randrange(10**9)}'")
        statements.append(
            chance.choice(
                [
                    f"{insert} ON CONFLICT (id, part) DO UPDATE SET name = EXCLUDED.name",
                    f"DELETE FROM items {where}",
                    f"UPDATE items SET amount = amount + 1, name = NULL WHERE id = {number}",
                    *(f"UPDATE items SET {each} {where}" for each in moves),
                ]
            )
        )
    server.run("; ".join(statements[:75]))
    for each in statements[75:90]:
        server.run(each)
    server.run("; ".join(statements[90:]))


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """The address of a broker with the events, and the rows of the database."""
    folder, chance = tmp_path_factory.mktemp("debezium"), random.Random(1)
    with postgres.running() as server, Broker(num_partitions=3) as broker:
        server.run("ALTER SYSTEM SET wal_level = logical")
        server.stop()
        (server.folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        server.start()
        server.run("CREATE TABLE items (id int, part text, name text, amount bigint, PRIMARY KEY (id, part))")
        server.run(f"INSERT INTO items SELECT n, 'a', 'n' || n, n FROM generate_series(1, {ROWS}) n")
        servers = broker.bootstrap_servers
        (folder / "worker.properties").write_text(WORKER.format(servers=servers, folder=folder))
        (folder / "connector.properties").write_text(CONNECTOR.format(port=server.port, password=PASSWORD))
        with connect(folder):
            until(lambda: len(events(servers)) >= ROWS, "the connector has copied no rows")
            for _ in range(3):
                change(server, chance)
            time.sleep(0.5)  # in the middle of the events
        with connect(folder):
            for _ in range(3):
                change(server, chance)
            server.run("INSERT INTO items VALUES (99999999, 'end', 'end', 0)")
            until(lambda: any(b"99999999" in (value or b"") for value in events(servers)), "the last event is missing")
        rows = server.run("SELECT id, part, coalesce(name, '-'), amount FROM items").splitlines()
        assert len(events(servers)) > len(rows)
        yield servers, sorted(rows)


@pytest.mark.parametrize("format", FORMATS)
def test_the_table_is_as_the_database(
    spark: SparkSession, changed: tuple[str, list[str]], tmp_path: Path, format: str
) -> None:
    servers, rows = changed
    tables = Tables(format, tmp_path)
    source = spark.readStream.format("kafka-live").option("kafka.bootstrap.servers", servers)
    source = source.options(subscribe=TOPIC, startingOffsets="earliest", maxOffsetsPerTrigger=400)
    value = f"from_json(CAST(value AS string), '{ENVELOPE}') AS value"
    writer = source.load().selectExpr("topic", "partition", "offset", "timestamp", value).writeStream
    query = (
        writer.format(f"kwire-{format}")
        .options(**options(tables), changes="debezium", mergeKey="id,part")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = tables.read()
    select = "SELECT concat_ws('|', id, part, coalesce(name, '-'), amount) FROM found"
    assert sorted(row for (row,) in duckdb.sql(select).fetchall()) == rows
    assert len(found) == len(rows)
