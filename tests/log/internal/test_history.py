"""Typed records of the internal topics, compared with Kafka's tool, and for random bytes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log.internal.dumps import NOW, batch, dumped, keyed, log_of, marker

from kwire.errors import LogError
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.internal_topics.record_rows import record_row
from kwire.internal_topics.typed_record import TypedRecord
from kwire.log import LogDirectory
from kwire.log.topics import (
    read_cluster_records,
    read_group_records,
    read_share_records,
    read_snapshot_records,
    read_transaction_records,
    replay_cluster,
    replay_groups,
    replay_share_state,
    replay_transactions,
)
from kwire.log.topics.cluster_metadata import list_snapshots
from kwire.messages import registry

READERS = {
    "__consumer_offsets": read_group_records,
    "__transaction_state": read_transaction_records,
    "__share_group_state": read_share_records,
}


@pytest.mark.requirement("S482-02")
@pytest.mark.parametrize(
    ("archive", "topic"),
    [
        ("modern", "__consumer_offsets"),
        ("modern44", "__consumer_offsets"),
        ("modern44", "__transaction_state"),
        ("modern44", "__share_group_state"),
    ],
)
def test_every_group_record_equals_kafkas_decoded_dump(archive: str, topic: str, kafka_logs: dict[str, Path]) -> None:
    records = list(READERS[topic](LogDirectory(kafka_logs[archive] / "data")))
    compared = 0
    for partition in range(3):
        mine = [record for record in records if record.partition == partition]
        theirs = list(dumped(kafka_logs[archive], f"{topic}-{partition}"))
        assert [(each.offset, each.timestamp) for each in mine] == [(each.offset, each.timestamp) for each in theirs]
        for record, reported in zip(mine, theirs, strict=True):
            row = record_row(record)
            assert row["error"] is None
            assert row["is_tombstone"] == reported.deleted
            assert row["key"] == (reported.key["data"] if reported.key else None)
            assert row["value"] == (reported.payload["data"] if reported.payload else None)
            assert (row["kind"] if row["is_control"] else None) == reported.marker
            assert (record.producer_id, record.is_transactional) == (reported.producer_id, reported.transactional)
            if reported.key:
                assert row["record_type"] == int(reported.key["type"])
            if reported.payload:
                assert row["version"] == int(reported.payload["version"])
            compared += 1
    assert compared > 10


@pytest.mark.requirement("R-40", "R-41")
@pytest.mark.parametrize("archive", ["modern", "modern44"])
def test_every_metadata_record_equals_kafkas_decoded_dump(archive: str, kafka_logs: dict[str, Path]) -> None:
    directory = LogDirectory(kafka_logs[archive] / "data")
    files = {"00000000000000000000.log": list(read_cluster_records(directory))}
    for snapshot in list_snapshots(directory):
        files[snapshot.name] = list(read_snapshot_records(directory, snapshot))
    reported = list(dumped(kafka_logs[archive], "__cluster_metadata-0"))
    assert {each.file for each in reported} == set(files)
    for name, records in files.items():
        theirs = [each for each in reported if each.file == name]
        assert [each.offset for each in records] == [each.offset for each in theirs]
        for record, line in zip(records, theirs, strict=True):
            assert record.error is None
            if line.payload:
                row = record_row(record, redact=False)
                assert (row["value"], row["version"]) == (line.payload["data"], line.payload["version"])
            else:
                assert record.is_control


def test_a_read_stops_at_an_offset_or_a_time(kafka_logs: dict[str, Path]) -> None:
    directory = LogDirectory(kafka_logs["modern"] / "data")
    log = directory[GROUPS_TOPIC, 1]
    everything = list(read_group_records(log))
    for at in (0, 1, 34, 35, 60, 119, 120, 1000):
        assert list(read_group_records(log, at_offset=at)) == [each for each in everything if each.offset < at]
    for time in (everything[0].timestamp - 1, everything[50].timestamp, everything[-1].timestamp):
        early = list(read_group_records(log, at_time=time))
        assert early == everything[: len(early)]
        assert all(each.timestamp <= time for each in early)
        assert len(early) == len(everything) or everything[len(early)].timestamp > time


def test_a_directory_without_the_topic_lists_its_topics(kafka_logs: dict[str, Path]) -> None:
    directory = LogDirectory(kafka_logs["legacy"] / "data")
    with pytest.raises(LogError, match=r"no partition of '__transaction_state'; available topics: .*v0"):
        next(read_transaction_records(directory))


# ---- what cannot be read

COMMIT = keyed(
    registry.get("OffsetCommitKey")(group="g", topic="t", partition=0),  # type: ignore[call-arg]
    registry.get("OffsetCommitValue")(offset=5),  # type: ignore[call-arg]
    4,
)


def only(data: Path, *batches: bytes) -> list[TypedRecord]:
    return list(read_group_records(LogDirectory(log_of(data, "__consumer_offsets-0", *batches))))


def test_records_of_unknown_types_and_versions_keep_their_bytes(tmp_path: Path) -> None:
    key, value = COMMIT
    assert value is not None
    records = only(
        tmp_path,
        batch([(b"\0\x63new", b"\0\0abc"), (key, b"\0\x7f" + value[2:]), (None, value), (b"\0", value), COMMIT], 0),
    )
    unknown, version, keyless, short, fine = records
    assert (unknown.kind, unknown.record_type, unknown.error) == ("unknown", 99, None)
    assert (unknown.raw_key, unknown.raw_value) == (b"\0\x63new", b"\0\0abc")
    assert (version.kind, version.version, version.error_field) == ("OffsetCommit", 127, "value")
    assert version.key is not None
    assert "127" in (version.error or "")
    assert record_row(version)["raw_value"]
    assert (keyless.kind, keyless.error_field, keyless.error_position) == ("unknown", "key", 0)
    assert (short.kind, short.error_field) == ("unknown", "key")
    assert fine.is_usable
    state = replay_groups(LogDirectory(tmp_path))
    assert state.groups["g"].offsets["t", 0].offset == 5
    assert [each.offset for each in state.problems.records] == [1, 2, 3]


def test_bytes_after_a_message_are_reported_with_their_position(tmp_path: Path) -> None:
    key, value = COMMIT
    assert value is not None
    (record,) = only(tmp_path, batch([(key, value + b"xyz")], 0))
    assert record.value is not None
    assert (record.error, record.error_field) == (f"3 bytes after the message, at byte {len(value)}", "value")
    assert record.error_position == len(value)


def test_every_truncated_value_reports_a_position_inside_it(tmp_path: Path) -> None:
    key, value = COMMIT
    assert value is not None
    records = only(tmp_path, batch([(key, value[:cut]) for cut in range(len(value))], 0))
    for cut, record in enumerate(records):
        assert record.error_field == "value", cut
        assert record.error_position is not None
        assert record.error_position <= cut
        assert record.key is not None


def test_a_damaged_batch_is_one_row_and_reading_continues_after_it(tmp_path: Path) -> None:
    first, second, third = (bytearray(batch([COMMIT, COMMIT], offset)) for offset in (0, 2, 4))
    second[-1] ^= 1
    records = only(tmp_path, bytes(first), bytes(second), bytes(third))
    assert [(each.offset, each.kind) for each in records] == [
        (0, "OffsetCommit"),
        (1, "OffsetCommit"),
        (2, "damage"),
        (4, "OffsetCommit"),
        (5, "OffsetCommit"),
    ]
    damage = records[2]
    assert (damage.error_field, damage.error_position) == ("batch", len(first))
    assert not damage.is_tombstone
    assert "__consumer_offsets-0" in (damage.error or "")


def test_bytes_that_are_not_a_batch_end_the_segment_not_the_log(tmp_path: Path) -> None:
    data = log_of(tmp_path, "__consumer_offsets-0", batch([COMMIT], 0), b"\xff" * 80)
    (data / "__consumer_offsets-0" / f"{7:020}.log").write_bytes(batch([COMMIT], 7))
    records = list(read_group_records(LogDirectory(data)))
    assert [(each.offset, each.kind) for each in records] == [(0, "OffsetCommit"), (1, "damage"), (7, "OffsetCommit")]


def test_invalid_control_records_are_rows(tmp_path: Path) -> None:
    odd = batch([(b"\0\0\0\x09", b"later"), (b"\0", b""), (b"\0\0\0\1", b"\0")], 0, is_control=True)
    later, short, cut = only(tmp_path, odd, marker(3, 7, commit=True))[:3]
    assert (later.kind, later.record_type, later.error) == ("unknown", 9, None)
    assert (short.kind, short.error_field) == ("unknown", "key")
    assert cut.error is not None
    assert not short.is_tombstone


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_random_bytes_are_read_as_rows(name: str, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Kafka's keys and values with bytes flipped, removed and inserted, with a valid checksum; then damaged files."""
    chance = random.Random(seed)
    data = tmp_path_factory.mktemp("damaged")
    records = [_damaged(chance, *chance.choice(GOLDEN[name])) for _ in range(20)]
    blob = bytearray(batch(records, 0) + marker(20, 1, commit=chance.random() < 0.5) + batch(records, 21))
    if chance.random() < 0.5:
        blob[chance.randrange(len(blob))] ^= 1 << chance.randrange(8)
    source = LogDirectory(log_of(data, f"{name}-0", bytes(blob)))
    rows = [record_row(each) for each in READERS[name](source)]
    assert all(row["key"] is not None or row["error"] or row["kind"] == "unknown" or row["is_control"] for row in rows)
    {
        "__consumer_offsets": replay_groups,
        "__transaction_state": replay_transactions,
        "__share_group_state": replay_share_state,
    }[name](source)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_random_metadata_records_are_read_as_rows(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    chance = random.Random(seed)
    data = tmp_path_factory.mktemp("damaged")
    records = [_damaged(chance, None, chance.choice(METADATA)) for _ in range(20)]
    source = LogDirectory(log_of(data, "__cluster_metadata-0", batch(records, 0)))
    rows = [record_row(each) for each in read_cluster_records(source)]
    assert len(rows) == 20
    assert replay_cluster(source).end_timestamp <= NOW + 20_000


def _damaged(chance: random.Random, key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
    return (key if chance.random() < 0.7 else _hurt(chance, key)), (
        value if chance.random() < 0.3 else _hurt(chance, value)
    )


def _hurt(chance: random.Random, data: bytes | None) -> bytes | None:
    if not data or chance.random() < 0.05:
        return chance.choice([None, b"", b"\0", b"\xff\xff", b"\0\1", chance.randbytes(9)])
    at = chance.randrange(len(data))
    return chance.choice(
        [
            data[:at],
            data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :],
            data[:at] + chance.randbytes(3) + data[at:],
            data + b"\0",
        ]
    )


def _coordinator_samples(name: str) -> list[tuple[bytes, bytes | None]]:
    """Return keys and values of all record types, generated with Kafka's classes (the golden messages)."""
    from tests import golden

    module = {
        "__consumer_offsets": "group-coordinator",
        "__transaction_state": "transaction-coordinator",
        "__share_group_state": "share-coordinator",
    }[name]
    values: dict[int, list[bytes]] = {}
    keys: dict[int, list[bytes]] = {}
    for line in golden.lines("messages-4.4.0.jsonl.gz"):
        if line["kind"] in ("coordinator-key", "coordinator-value"):
            cls = registry.find(line["kind"], line["apiKey"], module=module) if _has(line, module) else None
            if cls is not None and cls.__name__ == line["message"]:
                framed = golden.unpack(line["framed_b64"])
                assert framed is not None
                (keys if line["kind"] == "coordinator-key" else values).setdefault(line["apiKey"], []).append(framed)
    return [(key, value) for number in keys for key in keys[number] for value in values.get(number, [])[:8]]


def _has(line: dict, module: str) -> bool:
    from kwire.messages.index import MESSAGES

    return MESSAGES[line["message"]][0] == module


def _metadata_samples() -> list[bytes]:
    from tests import golden

    framed = (
        golden.unpack(line["framed_b64"])
        for line in golden.lines("messages-4.4.0.jsonl.gz")
        if line["kind"] == "metadata" and _has(line, "metadata")
    )
    return [each for each in framed if each is not None]


GOLDEN = {name: _coordinator_samples(name) for name in READERS}
METADATA = _metadata_samples()
