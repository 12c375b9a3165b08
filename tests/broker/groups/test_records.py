"""Records of __consumer_offsets: Kafka's bytes, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.broker.groups import records
from kwire.broker.groups.records import TYPES, GroupRecord, read_record
from kwire.errors import KwireError
from kwire.log import LogDirectory
from kwire.messages import OffsetCommitKey, OffsetCommitValue
from tests import golden


def written_by_kafka(folder: Path) -> list[tuple[bytes, bytes | None]]:
    """(key, value) of all records in a directory's __consumer_offsets."""
    directory = LogDirectory(folder)
    return [
        (record.key, record.value)
        for (topic, _), log in sorted(directory.partitions.items())
        if topic == "__consumer_offsets"
        for record in log.read()
        if record.key is not None
    ]


@pytest.mark.parametrize(("name", "least"), [("modern", 100), ("modern44", 40), ("legacy", 14)])
def test_every_record_that_a_broker_wrote_is_read(name: str, least: int, kafka_logs: dict[str, Path]) -> None:
    found = written_by_kafka(kafka_logs[name] / "data")
    assert len(found) >= least
    own = [(key, value) for key, value in found if int.from_bytes(key[:2], "big") in TYPES]
    assert len(own) >= least * 3 // 4  # the rest is about share groups
    for key, value in found:
        record = read_record(key, value)
        assert (record is not None) == ((key, value) in own)
        assert record is None or (record.value is None) == (value is None)


def test_what_kafka_3_9_wrote_we_write_the_same(kafka_logs: dict[str, Path]) -> None:
    for key, value in written_by_kafka(kafka_logs["modern"] / "data"):
        record = read_record(key, value)
        assert record is not None
        if value is not None:
            version = int.from_bytes(value[:2], "big")
            assert version == {1: 3, 2: 3}.get(int.from_bytes(key[:2], "big"), 0)
            record = GroupRecord(record.key, record.value, version)
        assert record.encode() == (key, value)


def test_a_commit_with_a_time_of_its_own_is_written_in_the_version_that_has_it() -> None:
    value = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=7, expire_timestamp=9)
    key, data = records.offset_commit("g", "t", 3, value).encode()
    assert data is not None
    assert data[:2] == b"\x00\x01"
    read = read_record(key, data)
    assert read is not None
    assert (read.key, read.value) == (OffsetCommitKey(group="g", topic="t", partition=3), value)


def test_offsets_of_before_0_9_are_offsets() -> None:
    key, data = records.offset_commit("g", "t", 3, OffsetCommitValue(offset=5)).encode()
    legacy = read_record(b"\x00\x00" + key[2:], data)
    assert legacy is not None
    assert legacy.key == OffsetCommitKey(group="g", topic="t", partition=3)


def test_types_that_are_none_of_ours_are_left_alone() -> None:
    assert read_record(b"\x00\x0b\x00\x01g", b"\x00\x00") is None
    assert read_record(b"", None) is None
    assert read_record(b"\xff", None) is None


def test_cut_or_changed_bytes_are_a_decode_error_or_a_value() -> None:
    golden_records = [
        records.offset_commit("group", "topic", 3, OffsetCommitValue(offset=5, metadata="m")).encode(),
        records.group_epoch("group", 7).encode(),
        records.target_epoch("group", 7).encode(),
    ]
    for key, value in golden_records:
        assert value is not None
        for cut in range(2, len(key)):
            with pytest.raises(KwireError):
                read_record(key[:cut], value)
        for cut in range(len(value)):
            with pytest.raises(KwireError):
                read_record(key, value[:cut])
        for at in range(len(value)):
            changed = bytearray(value)
            changed[at] ^= 0xFF
            try:
                read_record(key, bytes(changed))
            except KwireError:
                continue


def test_keys_that_kafkas_classes_wrote_are_read() -> None:
    names = {key.__name__ for key, _ in TYPES.values()}
    read = 0
    for line in golden.lines("messages-4.4.0.jsonl.gz"):
        if line["message"] in names:
            data = golden.unpack(line["framed_b64"])
            assert data is not None
            assert read_record(data, None) is not None
            read += 1
    assert read > 20
