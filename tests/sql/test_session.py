"""Statements over several sources: names, snapshots, the state of a cluster, errors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import kwire
from kwire.broker import Broker
from kwire.errors import CorruptBatch, OptionError
from kwire.internal_topics.group_rows import LogEnds, group_row
from kwire.log import LogDirectory
from kwire.log.reading.readable_log import ReadableLog
from kwire.log.topics import replay_groups
from tests.cli.crafted import segment
from tests.records.building import batch, record
from tests.waiting import HANG_S

duckdb = pytest.importorskip("duckdb")

from kwire.sql.session import Attached, Session  # noqa: E402
from kwire.sql.values import ValueColumns  # noqa: E402


@pytest.fixture
def session(kafka_logs: dict[str, Path]) -> Iterator[Session]:
    with kwire.open(kafka_logs["modern44"] / "data") as logs:
        session = Session()
        session.attach(Attached(logs=logs))
        session.attach(Attached(logs=logs, schema="copy"))
        yield session


def rows(session: Session, statement: str) -> list[dict[str, object]]:
    result = session.run(statement)
    assert result is not None
    return result.read_all().to_pylist()


def test_sources_are_schemas(session: Session) -> None:
    (row,) = rows(session, "SELECT count(*) AS n FROM events44")
    assert row["n"] > 0
    missing = 'SELECT count(*) AS n FROM events44 ANTI JOIN copy.events44 USING (partition, "offset")'
    assert rows(session, missing) == [{"n": 0}]
    names = [row["name"] for row in rows(session, "SHOW ALL TABLES")]
    assert names.count("events44") == 2
    with pytest.raises(OptionError, match="attached twice"):
        session.attach(Attached(logs=session.attached[0].logs, schema="copy"))


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("SELECT max(partition) FROM events", {"events"}),
        ("FROM EVENTS", {"events"}),
        ('FROM "events.a" b', {"events", "events.a", "a"}),
        ('SELECT * FROM main."events"JOIN(a)USING(partition)', {"events", "a"}),
    ],
)
def test_only_topics_that_a_statement_names_are_opened(statement: str, named: set[str], tmp_path: Path) -> None:
    """A topic `a` with a damaged log or an invalid schema made every statement with that letter fail."""
    for topic in ("a", "event", "events", "events.a"):
        segment(tmp_path / f"{topic}-0", batch(record(0, 0, None, b"v"), count=1))
    opened = set[str]()

    def values(topic: str, logs: list[ReadableLog]) -> ValueColumns:
        opened.add(topic)
        return ValueColumns()

    with kwire.open(tmp_path) as logs:
        session = Session()
        session.attach(Attached(logs=logs, values=values))
        assert len(rows(session, statement)) == 1
    assert opened == named


def test_groups_are_those_of_the_internal_topic(session: Session, kafka_logs: dict[str, Path]) -> None:
    directory = LogDirectory(kafka_logs["modern44"] / "data")
    expected = [group_row(each, LogEnds(directory)) for _, each in sorted(replay_groups(directory).groups.items())]
    shown = rows(session, 'SELECT "group", kind, state, members, lag FROM kafka_groups ORDER BY 1')
    assert shown == [{name: row[name] for name in ("group", "kind", "state", "members", "lag")} for row in expected]
    behind = rows(session, 'SELECT "group" FROM kafka_groups WHERE lag > 200 ORDER BY lag DESC')
    assert [row["group"] for row in behind] == ["g44-admin", "g44-static"]


@pytest.mark.parametrize(
    ("table", "at_least"),
    [
        ("kafka_partitions", 10),
        ("kafka_segments", 10),
        ("kafka_offsets", 5),
        ("kafka_members", 1),
        ("kafka_transactions", 2),
        ("kafka_configs", 3),
        ("kafka_acls", 1),
    ],
)
def test_the_state_of_a_cluster_is_in_tables(session: Session, table: str, at_least: int) -> None:
    (row,) = rows(session, f"SELECT count(*) AS n FROM {table}")
    assert row["n"] >= at_least


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT * FROM evnts44", r"Table with name evnts44 does not exist \(did you mean 'events44'\?\)"),
        ("SELECT * FROM events44 wher x", 'syntax error at or near "x"'),
        ("SELECT ofset FROM events44", 'Referenced column "ofset" not found'),
        ("SELECT value.a FROM events44", "Cannot extract field 'a'"),
    ],
)
def test_wrong_statements_are_one_line(session: Session, statement: str, message: str) -> None:
    with pytest.raises(OptionError, match=message) as error:
        session.run(statement)
    assert "\n" not in str(error.value)


def test_errors_of_reading_are_those_that_reading_raised(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(kafka_logs["modern"] / "data" / "orders-0", tmp_path / "orders-0")
    segment = next((tmp_path / "orders-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    segment.write_bytes(data)
    with kwire.open(tmp_path) as logs:
        session = Session()
        session.attach(Attached(logs=logs))
        with pytest.raises(CorruptBatch):
            rows(session, "SELECT count(*) FROM orders")


def test_topics_that_differ_in_case_are_refused_where_they_are_named(
    kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    for name in ("E-0", "e-0", "other-0"):
        shutil.copytree(kafka_logs["modern"] / "data" / "orders-0", tmp_path / name)
    with kwire.open(tmp_path) as logs:
        session = Session()
        session.attach(Attached(logs=logs))
        assert rows(session, "SELECT count(*) > 0 AS some FROM other") == [{"some": True}]
        assert "other" in [row["name"] for row in rows(session, "SHOW TABLES")]
        with pytest.raises(OptionError, match="topics 'E' and 'e' differ in case only"):
            session.run("SELECT count(*) FROM e")


def test_views_of_the_user_see_the_records_of_now(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(kafka_logs["modern"] / "data" / "orders-1", tmp_path / "orders-0")
    with kwire.open(tmp_path) as logs:
        session = Session()
        session.attach(Attached(logs=logs))
        session.run("CREATE VIEW few AS SELECT * FROM orders")
        session.run("CREATE VIEW counted AS SELECT count(*) AS n FROM few")
        (before,) = rows(session, "FROM counted")
        shutil.copytree(kafka_logs["modern"] / "data" / "orders-2", tmp_path / "orders-1")
        assert before == {"n": 6897}
        assert session.rows_read == session.rows_planned == 6897
        assert list(session.own_tables) == ["counted", "few"]
        segment = max((tmp_path / "orders-0").glob("*.log"))
        segment.write_bytes(segment.read_bytes()[:-1])
        (after,) = rows(session, "FROM counted")
        assert after["n"] < 6897


def test_a_topic_hides_the_table_of_its_name(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(kafka_logs["modern"] / "data" / "orders-0", tmp_path / "kafka_groups-0")
    with kwire.open(tmp_path) as logs:
        attached = Attached(logs=logs)
        assert attached.hiding == ["kafka_groups"]
        assert attached.tables.count("kafka_groups") == 1
        session = Session()
        session.attach(attached)
        assert rows(session, "SELECT count(*) AS n FROM kafka_groups") == [{"n": 7015}]


def test_a_connection_of_ones_own(kafka_logs: dict[str, Path]) -> None:
    import kwire.duckdb

    connection = duckdb.connect()
    attached = kwire.duckdb.attach(connection, kafka_logs["modern44"] / "data", "live")
    ((count,),) = connection.sql("SELECT count(*) FROM live.events44").fetchall()
    assert count == attached.logs.topic("events44").count_rows()
    attached.refresh()
    assert connection.sql("SELECT count(*) FROM live.events44").fetchall() == [(count,)]
    attached.logs.close()


def test_the_lag_of_a_member_is_that_of_committed_offsets(tmp_path: Path) -> None:
    """Not also that of offsets in a transaction that is open."""
    with Broker(data_dir=tmp_path / "data") as broker:
        broker.create_topic("orders")
        servers = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
        producer = Producer({**servers, "transactional.id": "t"})
        producer.init_transactions()
        producer.begin_transaction()
        for _ in range(5):
            producer.produce("orders", b"v")
        producer.commit_transaction()
        consumer = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        assert consumer.poll(HANG_S) is not None
        consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
        producer.begin_transaction()
        offsets = [TopicPartition("orders", 0, 2)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
        with kwire.open(tmp_path / "data") as logs:
            session = Session()
            session.attach(Attached(logs=logs))
            assert rows(session, "SELECT in_transaction, lag FROM kafka_offsets ORDER BY 1") == [
                {"in_transaction": False, "lag": 5},
                {"in_transaction": True, "lag": 4},
            ]
            assert rows(session, "SELECT lag FROM kafka_members") == [{"lag": 5}]
        producer.abort_transaction()
        consumer.close()


def test_topics_that_differ_in_case_have_no_table_in_a_connection_of_ones_own(
    kafka_logs: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import kwire.duckdb

    for name in ("E-0", "e-0", "other-0"):
        shutil.copytree(kafka_logs["modern"] / "data" / "orders-0", tmp_path / name)
    connection = duckdb.connect()
    attached = kwire.duckdb.attach(connection, tmp_path, "live")
    assert "topics 'E' and 'e' have no table: they differ in case only" in caplog.text
    views = connection.sql("SELECT view_name FROM duckdb_views() WHERE schema_name = 'live' ORDER BY 1").fetchall()
    assert ("other",) in views
    assert not {("E",), ("e",)} & set(views)
    attached.logs.close()


def test_polars(kafka_logs: dict[str, Path]) -> None:
    pl = pytest.importorskip("polars")
    import kwire.polars

    frame = kwire.polars.scan(kafka_logs["modern"] / "data", "orders")
    assert frame.filter(pl.col("offset") < 2).select("partition", "offset").collect().height == 6
