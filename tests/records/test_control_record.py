"""Control records: markers of transactions and of KRaft."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from tests import golden
from tests.records.both_paths import through_columns

from kwire.errors import Malformed
from kwire.records import ControlRecordType, Record, TimestampType, parse_control_record, read_batches

COMMIT_MARKER = bytes.fromhex(
    "000000000000000a 00000042 00000003 02 b9cd5300 0030 00000000 00000000000007d0 00000000000007d0 0000000000000009"
    "0002 ffffffff 00000001 20 00 00 00 08 00000001 0c 0000 00000007 00"
)


def control(key: bytes | None, value: bytes | None = b"") -> Record:
    return Record(offset=0, timestamp=0, timestamp_type=TimestampType.CREATE_TIME, key=key, value=value, headers=[])


@pytest.mark.requirement("R-40", "R-41", "R-42", "R-43")
def test_the_commit_marker_of_the_specification_is_read() -> None:
    (found,) = read_batches(COMMIT_MARKER)
    found.check()
    assert (found.is_control, found.is_transactional, found.producer_id, found.producer_epoch) == (True, True, 9, 2)
    (record,) = found.records()
    marker = parse_control_record(record)
    assert (marker.type, marker.version, marker.coordinator_epoch) == (ControlRecordType.COMMIT, 0, 7)


@pytest.mark.requirement("R-40", "R-41")
@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("control-commit", ControlRecordType.COMMIT),
        ("control-abort", ControlRecordType.ABORT),
        ("control-leader-change", ControlRecordType.LEADER_CHANGE),
        ("control-snapshot-header", ControlRecordType.SNAPSHOT_HEADER),
        ("control-snapshot-footer", ControlRecordType.SNAPSHOT_FOOTER),
        ("control-kraft-version", ControlRecordType.KRAFT_VERSION),
        ("control-voters", ControlRecordType.KRAFT_VOTERS),
    ],
)
def test_kafkas_control_records_have_their_types(case: str, kind: ControlRecordType) -> None:
    (line,) = (line for line in golden.record_sets() if line["case"] == case)
    (found,) = read_batches(golden.unpack(line["b64"]) or b"")
    (record,) = found.records()
    parsed = parse_control_record(record)
    assert (parsed.type, parsed.type_id, parsed.value) == (kind, int(kind), record.value)
    assert (parsed.coordinator_epoch is None) == (kind > ControlRecordType.COMMIT)


@pytest.mark.requirement("D-03")
def test_columns_omit_control_records_by_default() -> None:
    assert through_columns(COMMIT_MARKER) == ([], [])
    assert [row[0] for row in through_columns(COMMIT_MARKER, include_control=True).rows] == [10]


@pytest.mark.requirement("R-40")
@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", struct.pack(">hh", -1, 1)])
def test_an_invalid_control_key_is_malformed(key: bytes | None) -> None:
    with pytest.raises(Malformed, match="control record key"):
        parse_control_record(control(key, struct.pack(">hi", 0, 1)))


@pytest.mark.requirement("R-42")
@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0\0", struct.pack(">hi", -1, 1)])
def test_an_invalid_marker_is_malformed(value: bytes | None) -> None:
    with pytest.raises(Malformed, match="transaction marker"):
        parse_control_record(control(struct.pack(">hh", 0, 1), value))


@pytest.mark.requirement("R-40", "R-42")
def test_later_versions_are_read_as_version_0() -> None:
    parsed = parse_control_record(control(struct.pack(">hhq", 3, 0, 8), struct.pack(">hiq", 5, 42, 9)))
    assert (parsed.type, parsed.version, parsed.coordinator_epoch) == (ControlRecordType.ABORT, 5, 42)


@pytest.mark.requirement("R-41")
@pytest.mark.parametrize("type_id", [7, 32767, -1, -5])
def test_an_unknown_control_type_is_reported(type_id: int) -> None:
    parsed: Any = parse_control_record(control(struct.pack(">hh", 0, type_id), b"x"))
    assert (parsed.type, parsed.type_id, parsed.value) == (ControlRecordType.UNKNOWN, type_id, b"x")
