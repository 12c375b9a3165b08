"""Results of Kafka's reader, compared with both paths (tests/data/README.md)."""

from __future__ import annotations

from typing import Any

import pytest
from tests import golden
from tests.records.both_paths import through_both, through_columns

from kwire.errors import CorruptBatch
from kwire.records import Batch, TimestampType, read_batches


def batch_fields(batch: Batch) -> dict[str, Any]:
    """Return a batch in the form of the golden files."""
    fields = {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "nextOffset": batch.next_offset,
        "magic": batch.magic,
        "codec": batch.compression.text,
        "timestampType": batch.timestamp_type.text,
        "maxTimestamp": batch.max_timestamp,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "crc": batch.crc,
        "sizeInBytes": batch.size_bytes,
        "count": batch.count,
    }
    if batch.magic == 2:
        fields["baseTimestamp"] = batch.base_timestamp
    if batch.delete_horizon_ms is not None:
        fields["deleteHorizonMs"] = batch.delete_horizon_ms
    return fields


@pytest.mark.sampled(35)
@pytest.mark.parametrize("line", golden.record_sets(), ids=golden.case_name)
@pytest.mark.requirement(
    "R-01", "R-02", "R-05", "R-10", "R-11", "R-20", "R-21", "R-22", "R-23", "R-24", "R-27", "R-28", "R-30", "R-31",
    "R-35", "R-38", "C-01", "C-02", "C-03", "C-04", "C-05", "C-06", "S31-01", "S31-02", "S31-07", "S31-11", "S31-12",
    "S31-23", "S31-37", "D-06",
)  # fmt: skip
def test_record_sets_read_as_in_kafka(line: golden.Line) -> None:
    buf = golden.unpack(line["b64"])
    assert buf is not None
    check_against(line, buf)


@pytest.mark.sampled(44)
@pytest.mark.parametrize("line", golden.reads_of_invalid_bytes(), ids=golden.case_name)
@pytest.mark.requirement(
    "R-02", "R-03", "R-23", "R-25", "R-26", "R-32", "C-01", "C-02", "C-04", "C-05", "C-06", "S31-33"
)
def test_invalid_bytes_are_accepted_or_rejected_as_in_kafka(line: golden.Line) -> None:
    buf = golden.unpack(line["b64"])
    assert buf is not None
    if line["exception"] is None:
        if "records" in line:
            check_against(line, buf)
        else:  # the bombs, whose one value is too long to be listed
            rows, errors = through_both(buf)
            assert not errors
            assert [len(row[4]) for row in rows] == [line["value_bytes"]]
        return
    with pytest.raises(CorruptBatch):
        read_all(buf)
    assert through_both(buf).errors


def read_all(buf: bytes) -> None:
    """Check and decode everything, like a consumer."""
    for batch in read_batches(buf):
        batch.check()
        for _ in batch.records():
            pass


def check_against(line: golden.Line, buf: bytes) -> None:
    """Check batches and records of the object path, and records of the columnar path, against a line."""
    batches = list(read_batches(buf))
    for batch in batches:
        batch.check()
    assert [batch_fields(batch) for batch in batches] == line["batches"]
    found = [
        (i, (r.offset, r.timestamp, r.timestamp_type.text, r.key, r.value, r.headers, r.sequence))
        for i, batch in enumerate(batches)
        for r in batch.records()
    ]
    assert found == [(record["batch"], golden.record_fields(record)) for record in line["records"]]
    rows, errors = through_columns(buf, include_control=True)
    assert not errors
    types = {kind.text: int(kind) for kind in TimestampType}
    assert rows == [(o, ts, types[kind], k, v, headers) for _, (o, ts, kind, k, v, headers, _) in found]
    assert through_both(buf).errors == []


@pytest.mark.parametrize("line", golden.record_sets(), ids=golden.case_name)
def test_the_leader_epoch_is_that_of_the_batch_or_none(line: golden.Line) -> None:
    buf = golden.unpack(line["b64"])
    assert buf is not None
    for batch, expected in zip(read_batches(buf), line["batches"], strict=True):
        epoch = expected["partitionLeaderEpoch"]
        assert {r.leader_epoch for r in batch.records()} <= {None if epoch == -1 else epoch}
