"""The records in captures as logs, compared with what Kafka's own classes read from the same packets."""

from __future__ import annotations

import gc
import gzip
import json
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire.capture.logs import CapturedLogs, write_logs
from kwire.cli.main import run
from kwire.errors import LogError, OptionError
from kwire.identifiers import TopicPartition, render_uuid
from kwire.log import LogDirectory
from kwire.messages import FetchResponse, MetadataResponse, ProduceRequest, ProduceResponse
from kwire.records import Record, TimestampType, validate_and_assign_offsets, write_batch

from .test_conversation import BROKER, CLIENT, Pcap, request, response

NOW = 1_700_000_000_000
FETCH_BY_NAME, FETCH_BY_ID, PRODUCE, METADATA = 12, 13, 9, 12
ORDERS_ID = uuid.UUID("12345678-1234-4321-8765-123456789abc")


@pytest.fixture
def wire(kafka_logs: dict[str, Path]) -> Path:
    return next(kafka_logs["wire"].rglob("k391.clean.pcap")).parent


def batch(base_offset: int, *values: str, **options: Any) -> bytes:
    records = [
        Record(
            offset=base_offset + i,
            timestamp=NOW + i,
            timestamp_type=TimestampType.CREATE_TIME,
            key=None,
            value=each.encode(),
            headers=[],
        )
        for i, each in enumerate(values)
    ]
    return validate_and_assign_offsets(write_batch(records, **options), base_offset, now_ms=NOW).data


class Session(Pcap):
    """A connection in a capture, on which records are fetched and produced."""

    correlation_id = 0

    def exchange(
        self, name: str, version: int, sent: dict[str, Any], received: dict[str, Any] | None, missing: int = 0
    ) -> None:
        self.correlation_id += 1
        self.packet(CLIENT, request(name, version, self.correlation_id, **sent))
        if received is not None:
            data = response(name, version, self.correlation_id, **received)
            self.packet(BROKER, data[: len(data) - missing])
            self.sequence[BROKER] += missing  # bytes that were sent and not captured

    def fetched(self, data: bytes, topic: str | uuid.UUID = "orders", partition: int = 0, missing: int = 0) -> None:
        part = FetchResponse.PartitionData(partition_index=partition, records=data)
        named = {"topic_id": topic} if isinstance(topic, uuid.UUID) else {"topic": topic}
        each = FetchResponse.FetchableTopicResponse(partitions=[part], **named)
        version = FETCH_BY_ID if isinstance(topic, uuid.UUID) else FETCH_BY_NAME
        self.exchange("Fetch", version, {}, {"responses": [each]}, missing)

    def produced(self, data: bytes, base_offset: int | None, **answer: Any) -> None:
        part = ProduceRequest.PartitionProduceData(index=0, records=data)
        sent = ProduceRequest.TopicProduceData(name="orders", partition_data=[part])
        acks = -1 if base_offset is not None else 0
        received = None
        if base_offset is not None:
            result = ProduceResponse.PartitionProduceResponse(index=0, base_offset=base_offset, **answer)
            received = {
                "responses": [ProduceResponse.TopicProduceResponse(name="orders", partition_responses=[result])]
            }
        self.exchange("Produce", PRODUCE, {"acks": acks, "topic_data": [sent]}, received)

    def named(self, name: str, topic_id: uuid.UUID) -> None:
        topic = MetadataResponse.MetadataResponseTopic(name=name, topic_id=topic_id)
        self.exchange("Metadata", METADATA, {}, {"topics": [topic]})

    def saved(self) -> str:
        self.path.write_bytes(self.data)
        return str(self.path)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path / "a.pcap")


def rows(
    logs: Mapping[TopicPartition, Any], topic: str = "orders", partition: int = 0
) -> list[tuple[int, bytes | None]]:
    return [(each.offset, each.value) for each in logs[topic, partition].read(isolation="read_uncommitted")]


def kafka_decoded(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        yield from map(json.loads, lines)


@pytest.mark.parametrize("release", ["k282", "k391"])
def test_logs_end_where_kafka_says(wire: Path, tmp_path: Path, release: str) -> None:
    names: dict[str | None, str] = {}
    ends: dict[tuple[str, int], int] = {}
    produced: dict[tuple[str, int], int] = {}
    for each in kafka_decoded(wire / f"{release}.decoded.jsonl.gz"):
        if each["dir"] != "s2c":
            continue
        for topic in each["body"].get("topics") or () if each["api"] in ("Metadata", "CreateTopics") else ():
            names[topic.get("topicId")] = topic["name"]
        for topic in each["body"].get("responses") or () if each["api"] == "Fetch" else ():
            for part in topic["partitions"]:
                key = topic.get("topicId", topic.get("topic")), part["partitionIndex"]
                ends[key] = max(ends.get(key, 0), part["highWatermark"])
        for topic in each["body"].get("responses") or () if each["api"] == "Produce" else ():
            for part in topic["partitionResponses"]:
                produced[topic["name"], part["index"]] = part["baseOffset"]
    written = write_logs([wire / f"{release}.clean.pcap"], tmp_path / "logs", now_ms=NOW)
    found = {(each.topic, each.partition): each.log_end_offset for each in written.partitions}
    expected = {(names.get(topic, topic), partition): end for (topic, partition), end in ends.items()}
    assert expected
    assert {key: found.get(key) for key in expected if expected[key]} == {k: v for k, v in expected.items() if v}
    assert all(found[key] > base for key, base in produced.items())
    assert not [each for each in written.warnings() if each.startswith("left out")]


@pytest.mark.sampled
@pytest.mark.parametrize("form", ["disordered", "tcpdump"])
def test_the_same_traffic_gives_the_same_logs(wire: Path, form: str) -> None:
    clean, other = (kwire.open(wire / f"k391.{each}.pcap") for each in ("clean", form))
    assert set(clean) == set(other)
    for key in clean:
        assert rows(clean, *key) == rows(other, *key)


def test_messages_that_were_cut_are_counted(wire: Path, session: Session, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no Fetch responses or acknowledged Produce requests"):
        write_logs([wire / "k391.snap120.pcap"], tmp_path / "none", now_ms=NOW)
    assert not (tmp_path / "none").exists()
    session.fetched(batch(0, "a"), missing=10)
    session.fetched(batch(1, "b"))
    logs = kwire.open(session.saved())
    assert rows(logs) == [(1, b"b")]
    assert [each.reason for each in logs.ignored] == ["left out: 1 message with records, not captured completely"]


def test_each_offset_is_written_once(session: Session) -> None:
    first, second = batch(0, "a", "b"), batch(2, "c")
    session.fetched(second)
    session.fetched(first + second + batch(3, "d")[:-1])  # cut off at the end of the response
    session.produced(batch(0, "a", "b"), 0)
    session.produced(batch(0, "d"), 3)
    logs = kwire.open(session.saved())
    assert rows(logs) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    assert not logs.ignored


def test_gaps_and_what_is_left_out_are_named(session: Session) -> None:
    session.fetched(batch(5, "a", "b"))
    session.fetched(batch(6, "b", "c"))  # overlaps
    session.fetched(batch(5, "x", "y"))  # differs
    session.fetched(batch(9, "d"))
    session.fetched(batch(11, "e")[:-1] + b"\1")
    session.produced(batch(0, "f"), None)
    session.produced(batch(0, "g"), 20, error_code=6)
    session.fetched(batch(0, "h"), "../../etc")
    session.fetched(batch(0, "h"), "orders", -1)
    logs = CapturedLogs(session.saved(), now_ms=NOW)
    assert rows(logs) == [(5, b"a"), (6, b"b"), (9, b"d")]
    assert logs["orders", 0].log_start_offset == 5
    found = logs.captured
    assert found.gaps == {("orders", 0): [(7, 9)]}
    assert (found.overlapping, found.differing, found.corrupt, found.without_offset, found.invalid) == (1, 1, 1, 1, 2)
    assert [each.reason for each in logs.ignored] == [
        "left out: 1 produced batch whose offsets are not in the capture",
        "left out: 1 corrupt batch",
        "left out: 1 batch overlapping another one",
        "left out: 1 batch with other records at the same offsets",
        "left out: 2 batches of topics with invalid names",
        "2 offsets not in the capture, within orders-0",
    ]


def test_produced_records_are_as_the_broker_stores_them(session: Session) -> None:
    session.produced(batch(0, "a", compression="gzip"), 7, log_append_time_ms=NOW + 5)
    session.produced(batch(0, "b", magic=1), 8)
    logs = kwire.open(session.saved())
    first, second = logs["orders", 0].read()
    assert (first.offset, first.timestamp, first.timestamp_type) == (7, NOW + 5, TimestampType.LOG_APPEND_TIME)
    assert (second.offset, second.timestamp, second.value) == (8, NOW, b"b")
    assert [each.magic for _, each in logs["orders", 0].batches()] == [2, 2]


def test_topics_are_named_by_metadata_whenever_it_comes(session: Session) -> None:
    other = uuid.uuid4()
    session.fetched(batch(0, "a"), ORDERS_ID)
    session.produced(batch(0, "b"), 1)
    session.fetched(batch(0, "x"), other)
    session.named("orders", ORDERS_ID)
    logs = kwire.open(session.saved())
    assert set(logs) == {("orders", 0), (render_uuid(other), 0)}
    assert rows(logs) == [(0, b"a"), (1, b"b")]
    assert logs["orders", 0].topic_id == ORDERS_ID


def test_the_directory_is_removed_with_the_last_log(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    session.fetched(batch(0, "a"))
    log = kwire.open(session.saved()).topic("orders")
    gc.collect()
    assert log.reopened().count_rows() == 1
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    del log
    gc.collect()
    assert not list((tmp_path / "tmp").iterdir())
    session.path.write_bytes(b"no capture")
    with pytest.raises(kwire.errors.KwireError, match="not a pcap"):
        kwire.open(session.path)
    assert not list((tmp_path / "tmp").iterdir())


def test_commands_read_captures(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session.fetched(batch(0, "a", "b"))
    session.fetched(batch(4, "c"))
    path = session.saved()
    assert run(["capture", path, "--logs", str(tmp_path / "logs"), "--format", "jsonl"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["records"] == 3
    assert "2 offsets not in the capture, within orders-0" in printed.err
    assert rows(LogDirectory(tmp_path / "logs")) == [(0, b"a"), (1, b"b"), (4, b"c")]
    query = 'SELECT value FROM orders WHERE "offset" >= 1'
    assert run(["sql", path, query, "--value", "text", "--format", "csv"]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == ["value", "b", "c"]
    assert "a.pcap: 2 offsets not in the capture" in printed.err
    assert run(["log", "ls", path, "--format", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["log_end_offset"] == 5
    assert run(["capture", path, "--logs", str(tmp_path / "logs")]) == 2
    assert "not an empty directory" in capsys.readouterr().err
    assert run(["capture", path, "--logs", str(tmp_path / "more"), "--summary"]) == 2
    assert "--summary selects requests to show" in capsys.readouterr().err


def test_other_readers_say_how(session: Session) -> None:
    session.fetched(batch(0, "a"))
    with pytest.raises(LogError, match=r"`kwire capture FILE --logs DIR` makes one of a packet capture"):
        LogDirectory(session.saved())
    with pytest.raises(OptionError, match="no such directory"):
        write_logs([session.saved()], "/nowhere/logs", now_ms=NOW)
