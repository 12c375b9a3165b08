"""The records in captures as logs, compared with what Kafka's own classes read from the same packets."""

from __future__ import annotations

import errno
import gc
import gzip
import io
import json
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire.capture.logs import CapturedLogs, write_logs
from kwire.cli.main import run
from kwire.errors import LogError, OptionError
from kwire.identifiers import TopicPartition, render_uuid
from kwire.log import LogDirectory
from kwire.messages import DeleteTopicsResponse, FetchResponse, MetadataResponse, ProduceRequest, ProduceResponse
from kwire.records import (
    ControlRecordType,
    Record,
    TimestampType,
    validate_and_assign_offsets,
    write_batch,
    write_transaction_marker,
)

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

    def fetched(
        self,
        data: bytes,
        topic: str | uuid.UUID = "orders",
        partition: int = 0,
        missing: int = 0,
        aborted: Sequence[tuple[int, int]] = (),
    ) -> None:
        transactions = [FetchResponse.AbortedTransaction(producer_id=pid, first_offset=first) for pid, first in aborted]
        part = FetchResponse.PartitionData(
            partition_index=partition, records=data, aborted_transactions=transactions or None
        )
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

    def deleted(self, name: str) -> None:
        topic = DeleteTopicsResponse.DeletableTopicResult(name=name)
        self.exchange("DeleteTopics", 4, {"topic_names": [name]}, {"responses": [topic]})

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


def opened(session: Session) -> CapturedLogs:
    logs = kwire.open(session.saved())
    assert isinstance(logs, CapturedLogs)
    return logs


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
    logs = opened(session)
    assert rows(logs) == [(1, b"b")]
    assert [*logs.captured.warnings()] == ["left out: 1 message with records, not captured completely"]


def test_each_offset_is_written_once(session: Session) -> None:
    first, second = batch(0, "a", "b"), batch(2, "c")
    session.fetched(second)
    session.fetched(first + second + batch(3, "d")[:-1])  # cut off at the end of the response
    session.produced(batch(0, "a", "b"), 0)
    session.produced(batch(0, "d"), 3)
    logs = opened(session)
    assert rows(logs) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    assert not [*logs.captured.warnings()]


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
    assert [*logs.captured.warnings()] == [
        "left out: 1 produced batch whose offsets are not in the capture",
        "left out: 1 corrupt batch",
        "left out: 1 batch overlapping another one",
        "left out: 1 batch with other records at the same offsets",
        "left out: 2 batches of topics or partitions that no broker has",
        "2 offsets not in the capture, within orders-0",
    ]


def test_produced_records_are_as_the_broker_stores_them(session: Session) -> None:
    session.produced(batch(0, "a", compression="gzip"), 7, log_append_time_ms=NOW + 5)
    session.produced(batch(0, "b", magic=1), 8)
    logs = opened(session)
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
    logs = opened(session)
    assert set(logs) == {("orders", 0), (render_uuid(other), 0)}
    assert rows(logs) == [(0, b"a"), (1, b"b")]
    assert logs["orders", 0].topic_id == ORDERS_ID


def test_the_directory_is_removed_with_the_last_log(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    session.fetched(batch(0, "a"))
    log = opened(session).topic("orders")
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


def transaction(base_offset: int, *values: str, sequence: int = 0) -> bytes:
    return batch(base_offset, *values, is_transactional=True, producer_id=5, producer_epoch=0, base_sequence=sequence)


def marker(offset: int, *, commit: bool) -> bytes:
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    return write_transaction_marker(
        kind, base_offset=offset, timestamp=NOW, producer_id=5, producer_epoch=0, coordinator_epoch=0
    )


@pytest.mark.parametrize("has_marker", [True, False])
def test_an_aborted_transaction_is_not_shown_as_committed(session: Session, has_marker: bool) -> None:
    """What a response calls aborted stays so, also if another response has the same batch without saying it."""
    session.fetched(batch(0, "u") + transaction(1, "ABORTED"))
    end = marker(2, commit=False) if has_marker else b""
    session.fetched(batch(0, "u") + transaction(1, "ABORTED") + end, aborted=[(5, 1)])
    session.fetched(transaction(3, "COMMITTED", sequence=1) + marker(4, commit=True) + batch(5, "z"))
    with opened(session) as logs:
        assert [each.value for each in logs["orders", 0].read(isolation="read_committed")] == [b"u", b"COMMITTED", b"z"]
        warnings = [*logs.captured.warnings()]
    assert warnings == (
        []
        if has_marker
        else [
            "left out: 1 batch of aborted transactions without their markers",
            "2 offsets not in the capture, within orders-0",
        ]
    )


@pytest.mark.parametrize("count", [1, 2])
def test_a_partition_of_aborted_records_is_not_written(session: Session, count: int, tmp_path: Path) -> None:
    data = b"".join(transaction(offset, "ABORTED", sequence=offset) for offset in range(count))
    session.fetched(data, aborted=[(5, 0)])
    with pytest.raises(LogError, match=rf"left out: {count} batch(es)? of aborted transactions"):
        write_logs([session.saved()], tmp_path / "none", now_ms=NOW)
    assert not (tmp_path / "none").exists()
    session.fetched(batch(0, "a"), partition=1)
    assert set(opened(session)) == {("orders", 1)}


@pytest.mark.parametrize("knows_ids", [True, False])
def test_a_topic_that_was_created_again_is_two(session: Session, knows_ids: bool) -> None:
    first, second = uuid.uuid4(), uuid.uuid4()
    if knows_ids:
        session.named("orders", first)
    session.fetched(batch(0, "a", "b", "c"))
    session.deleted("orders")
    if knows_ids:
        session.named("orders", second)
    session.fetched(batch(0, "x", "y"))
    logs = opened(session)
    earlier = f"orders.{render_uuid(first) if knows_ids else 0}"
    assert rows(logs) == [(0, b"x"), (1, b"y")]
    assert rows(logs, earlier) == [(0, b"a"), (1, b"b"), (2, b"c")]
    (warning,) = logs.captured.warnings()
    assert warning == f"topic 'orders' was deleted and created again: its earlier records are in {earlier}"
    if knows_ids:
        assert (logs["orders", 0].topic_id, logs[earlier, 0].topic_id) == (second, first)


def test_offsets_far_apart_are_in_segments_of_their_own(session: Session) -> None:
    far = (1 << 31) + 5
    session.fetched(batch(0, "a") + batch(1 << 30, "b") + batch(far, "c") + batch((1 << 63) - 3, "d"))
    logs = opened(session)
    assert rows(logs) == [(0, b"a"), (1 << 30, b"b"), (far, b"c"), ((1 << 63) - 3, b"d")]
    assert logs["orders", 0].segment_count == 3


def test_records_before_the_damage_of_a_capture_are_written(session: Session) -> None:
    session.fetched(batch(0, "a"))
    session.data += b"\xff" * 16
    logs = opened(session)
    assert rows(logs) == [(0, b"a")]
    (warning,) = logs.captured.warnings()
    assert "a.pcap" in warning
    assert "byte" in warning


def test_batches_after_a_wrong_checksum_are_kept(session: Session) -> None:
    session.fetched(batch(0, "a", "b")[:-1] + b"\1" + batch(2, "c") + batch(0, "a", "b"))
    logs = CapturedLogs(session.saved(), now_ms=NOW)
    assert rows(logs) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert logs.captured.corrupt == 1


@pytest.mark.parametrize(("inside", "differing"), [("b", 0), ("B", 1)])
def test_batches_inside_of_others_are_compared(session: Session, inside: str, differing: int) -> None:
    session.fetched(batch(0, "a", "b", "c"))
    session.fetched(batch(1, inside))
    logs = CapturedLogs(session.saved(), now_ms=NOW)
    assert rows(logs) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert logs.captured.differing == differing


def test_closed_logs_leave_nothing(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    session.fetched(batch(0, "a"))
    with opened(session) as logs:
        assert rows(logs) == [(0, b"a")]
    assert not list((tmp_path / "tmp").iterdir())


def test_a_full_disk_is_named(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    session.fetched(batch(0, "a"))
    with pytest.raises(LogError, match="logs: cannot be written: No space left on device"):
        write_logs([session.saved()], tmp_path / "logs", now_ms=NOW)


def test_many_small_partitions_cost_two_files_each(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = list[int]()
    monkeypatch.setattr("os.fsync", synced.append)
    session.named("topic-1", ORDERS_ID)
    for number in range(3):
        session.fetched(batch(10 * number, "a", "b"), f"topic-{number}")
    session.fetched(batch(50, "c"), "topic-2")
    logs = opened(session)
    assert [rows(logs, f"topic-{number}") for number in range(3)] == [
        [(0, b"a"), (1, b"b")],
        [(10, b"a"), (11, b"b")],
        [(20, b"a"), (21, b"b"), (50, b"c")],
    ]
    assert (logs["topic-2", 0].log_start_offset, logs["topic-2", 0].log_end_offset) == (20, 51)
    assert logs["topic-1", 0].topic_id == ORDERS_ID
    assert logs["topic-2", 0].offset_for_time(NOW + 1) is not None
    files = sorted(each.name for each in Path(logs.url).glob("topic-1-0/*"))
    assert files == [f"{10:020}.log", "partition.metadata"]
    assert not synced  # nobody needs the directory after a crash
