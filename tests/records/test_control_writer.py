"""Markers and control batches equal Kafka's byte for byte."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.errors import EncodeError
from kwire.records import (
    ControlRecordType,
    parse_control_record,
    read_batches,
    write_control_batch,
    write_transaction_marker,
)

MARKER: dict[str, Any] = {"producer_id": 9, "producer_epoch": 2, "coordinator_epoch": 7, "timestamp": 2000}


@pytest.mark.requirement("R-40", "R-42", "R-43")
def test_the_commit_marker_of_the_specification_is_written() -> None:
    data = write_transaction_marker(ControlRecordType.COMMIT, **MARKER, base_offset=10, partition_leader_epoch=3)
    assert data.hex(" ", -4).replace(" ", "") == (
        "000000000000000a" "00000042" "00000003" "02" "b9cd5300" "0030" "00000000" "00000000000007d0" "00000000000007d0"
        "0000000000000009" "0002" "ffffffff" "00000001" "20000000080000" "00010c000000000007" "00"
    )  # fmt: skip


@pytest.mark.requirement("R-41", "R-43")
@pytest.mark.parametrize("kind", [kind for kind in ControlRecordType if kind > 1])
def test_control_records_of_kraft_are_written(kind: ControlRecordType) -> None:
    (batch,) = read_batches(write_control_batch([(kind, b"\0\0message")], timestamp=5, partition_leader_epoch=1))
    batch.check()
    assert batch.is_control
    assert not batch.is_transactional
    assert batch.producer_id == -1
    (record,) = batch.records()
    parsed = parse_control_record(record)
    assert (parsed.type, parsed.value) == (kind, b"\0\0message")


@pytest.mark.requirement("R-40", "R-41")
def test_other_control_types_are_rejected() -> None:
    for kind in (ControlRecordType.UNKNOWN, ControlRecordType.ABORT, ControlRecordType.COMMIT):
        with pytest.raises(EncodeError, match="not a control record"):
            write_control_batch([(kind, b"")], timestamp=1)
    with pytest.raises(EncodeError, match="not a transaction marker"):
        write_transaction_marker(ControlRecordType.LEADER_CHANGE, **MARKER)
    for epoch in (-1, 2**31):
        with pytest.raises(EncodeError, match="coordinator_epoch"):
            write_transaction_marker(ControlRecordType.ABORT, **(MARKER | {"coordinator_epoch": epoch}))
