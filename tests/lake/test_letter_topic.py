"""Dead letters in a topic of a broker, read by confluent-kafka."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.broker import Broker
from kwire.cli.main import run
from kwire.client import Client
from kwire.errors import BrokerError, OptionError
from kwire.lake import Change, Layout, RowWriter, commit_dead_letters, prepare_dead_letters, unwrapped_schema
from kwire.lake.data_files import write_all
from kwire.lake.dead_letters import open_dead_letters
from kwire.lake.letter_topic import DeadLetterTopic, _record
from kwire.records import Compression, read_batches
from kwire.schemas import Registry, encode
from tests.lake.avro_values import registry as registry
from tests.lake.avro_values import write_values
from tests.lake.tables import Tables

confluent_kafka = pytest.importorskip("confluent_kafka")


def letters(servers: str, topic: str, count: int) -> list[Any]:
    """Return the messages of a topic, and see that there are no more."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found, deadline = list[Any](), time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        found += [each for each in consumer.consume(100, 0.2) if each.error() is None]
    found += [each for each in consumer.consume(1, 0.5) if each.error() is None]
    consumer.close()
    assert len(found) == count
    return found


def headers_of(message: Any) -> dict[str, str]:
    return {name: value.decode() for name, value in message.headers()}


def test_the_command_writes_dead_letters_to_a_topic(
    tables: Tables, registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = encode({"id": 1}, registry, topic="avro")
    logs = write_values(tmp_path / "logs", [good, b"plain", good, b"\0bad"], keys=[b"a", b"b", b"c", b"d"])
    catalog = [f"--catalog={name}={value}" for name, value in tables.catalog(f"file://{tmp_path}").items()]
    target = [str(tmp_path / "orders")] if tables.format == "delta" else ["sales.orders", *catalog]
    with Broker() as broker:
        servers = broker.bootstrap_servers
        broker.create_topic("dead", partitions=3)
        words = ["lake", "append", str(logs), *target, "--registry", str(tmp_path / "schemas")]
        words += ["--dead-letters", f"kafka://{servers}/dead", "--format", "json"]
        assert run(words) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["rows"], row["dead_letters"]) == (2, 2)
        assert run(words) == 0  # nothing is new, so nothing is written again
        by_key = {each.key(): each for each in letters(servers, "dead", 2)}
        assert {key: each.value() for key, each in by_key.items()} == {b"b": b"plain", b"d": b"\0bad"}
        assert by_key[b"b"].timestamp()[1] == 1
        found = headers_of(by_key[b"d"])
        assert found["__connect.errors.topic"] == "avro"
        assert (found["__connect.errors.partition"], found["__connect.errors.offset"]) == ("0", "3")
        assert found["__connect.errors.exception.message"]
        assert "orders" in found["kwire.table"]
    assert tables.read().sort_by("offset").column("key").to_pylist() == [b"a", b"c"]


def rows_with_errors(count: int, size: int) -> pa.RecordBatch:
    kind = pa.struct([("value", pa.string()), ("error", pa.string()), ("bytes", pa.binary())])
    place = {"topic": ["t"] * count, "partition": pa.array([0] * count, pa.int32()), "offset": range(count)}
    values = [{"value": None, "error": "bad", "bytes": bytes(size)} for _ in range(count)]
    return pa.RecordBatch.from_pydict({**place, "value": pa.array(values, kind)})


def test_many_large_letters_are_written_at_least_once(delta: Tables) -> None:
    """They are in the topic before the commit; a task that is run again writes them again, which the page says."""
    batch = rows_with_errors(40, 100_000)
    with Broker() as broker:
        servers = broker.bootstrap_servers
        broker.create_topic("dead", partitions=2)
        target = open_dead_letters(f"kafka://{servers}/dead", delta.open)
        assert isinstance(target, DeadLetterTopic)
        table = delta.open()
        plan = table.prepare(unwrapped_schema(batch.schema), Layout())
        dead = prepare_dead_letters(target, table, plan)
        for _ in range(2):
            written = write_all(RowWriter(plan, dead), [batch])
            assert (written.dead, written.dead_rows) == ((), {("t", 0): 40})
        change = Change(id=uuid.uuid4().hex, spans=written.spans)
        commit_dead_letters(target, written.dead, change, table.state(), dead)
        table.commit(written.files, change, plan)
        found = letters(servers, "dead", 80)
        assert sorted(int(headers_of(each)["__connect.errors.offset"]) for each in found) == sorted([*range(40)] * 2)
        table.refresh()
        assert table.state().spans == {("t", 0): ((0, 40),)}


def test_letters_are_compressed_as_the_settings_say(delta: Tables) -> None:
    """compression.type was accepted and had no effect."""
    batch = rows_with_errors(4, 1000)
    with Broker() as broker:
        broker.create_topic("dead", partitions=1)
        settings = {"compression.type": "zstd", "compression.zstd.level": "19"}
        target = open_dead_letters(f"kafka://{broker.bootstrap_servers}/dead", delta.open, settings)
        table = delta.open()
        plan = table.prepare(unwrapped_schema(batch.schema), Layout())
        write_all(RowWriter(plan, prepare_dead_letters(target, table, plan)), [batch])
        with Client(broker.bootstrap_servers) as client:
            (fetched,) = client.read("dead", 0, 0, 4)
            assert [each.compression for each in read_batches(fetched.records)] == [Compression.ZSTD]


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({}, [0, 0, 1, 0]),  # Kafka 4's limit: an hour ahead
        ({"message_timestamp_after_max_ms": 2**63 - 1}, [400_000_000_000_000, 0, 1, 0]),
        ({"message_timestamp_before_max_ms": 1000}, [0, 0, 0, 0]),
    ],
)
def test_timestamps_that_python_or_kafka_does_not_have(
    configs: dict[str, int], expected: list[int], delta: Tables
) -> None:
    """A datetime has no year after 9999; Kafka has no timestamp before 1970, and topics may refuse some."""
    micros = [400_000_000_000_000_000, -1, 1999, None]
    batch = rows_with_errors(4, 1).append_column("timestamp", pa.array(micros, pa.timestamp("us", "UTC")))
    with Broker() as broker:
        broker.create_topic("dead", 1, **configs)
        target = open_dead_letters(f"kafka://{broker.bootstrap_servers}/dead", delta.open)
        table = delta.open()
        plan = table.prepare(unwrapped_schema(batch.schema), Layout())
        write_all(RowWriter(plan, prepare_dead_letters(target, table, plan)), [batch])
        found = [each.timestamp()[1] for each in letters(broker.bootstrap_servers, "dead", 4)]
    assert [max(each, 0) for each in found] == expected  # librdkafka has another form of none


def test_topics_that_are_refused(delta: Tables) -> None:
    table = delta.open()
    plan = table.prepare(pa.schema([("topic", pa.string())]), Layout())
    with pytest.raises(OptionError, match="expected a topic for dead letters"):
        open_dead_letters("kafka://localhost:9092", delta.open)
    with Broker() as broker:
        target = open_dead_letters(f"kafka://{broker.bootstrap_servers}/dead", delta.open, {"client.id": "secret"})
        with pytest.raises(BrokerError, match="topic 'dead' for dead letters does not exist; create it first"):
            prepare_dead_letters(target, table, plan)
        assert "secret" not in repr(target)
        careless = {"acks": "1", "enable.idempotence": "false"}
        target = open_dead_letters(f"kafka://{broker.bootstrap_servers}/dead", delta.open, careless)
        with pytest.raises(OptionError, match="config 'acks': topic 'dead' for dead letters requires all"):
            prepare_dead_letters(target, table, plan)
        target = open_dead_letters(f"kafka://{broker.bootstrap_servers}/dead", delta.open, {"transactional.id": "t"})
        with pytest.raises(OptionError, match=r"'transactional\.id': topic 'dead' for dead letters is written without"):
            prepare_dead_letters(target, table, plan)


@pytest.mark.parametrize(("micros", "expected"), [(None, -1), (-1, -1), (0, 0), (999, 0), (1000, 1)])
def test_a_letter_of_1970_has_a_timestamp(micros: int | None, expected: int) -> None:
    row = dict.fromkeys(("key", "value", "topic", "partition", "offset", "reason", "table")) | {"timestamp": micros}
    assert _record(row).timestamp == expected
