"""A real broker's batches, appended with our writer, give the broker's files byte for byte.

Logs, three kinds of indexes, producer snapshots, leader epochs, partition.metadata; five codecs, idempotent and
transactional producers with aborted and open transactions, restarts in between.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kwire.log import FileSystem, LogConfig, LogDirectory, PartitionWriter
from kwire.log.writing.recovery import PartitionCheckpoints
from kwire.records import Batch, ControlRecordType, TimestampType, parse_control_record
from tests.log.writing import differences

BROKER = LogConfig(index_interval_bytes=1024, segment_index_bytes=65536)
CLOCK = int(datetime(2026, 11, 21, 4, 29, tzinfo=UTC).timestamp() * 1000)  # the broker's; its producers lived in 2025
CASES = [
    ("orders", 0, 131072),
    ("orders", 1, 131072),
    ("orders", 2, 131072),
    ("ids", 0, 65536),
    ("ids", 1, 65536),
    ("txn", 0, 24576),
    ("txn", 1, 24576),
    ("logappend", 0, 32768),
    ("logappend", 1, 32768),
]


def send(log: PartitionWriter, batch: Batch) -> int:
    """Append a batch like the original request; return its first offset."""
    if batch.is_control:
        marker = parse_control_record(next(batch.records()))
        assert marker.coordinator_epoch is not None
        return log.append_marker(
            batch.producer_id,
            batch.producer_epoch,
            marker.type == ControlRecordType.COMMIT,
            marker.coordinator_epoch,
            now_ms=batch.max_timestamp,
            leader_epoch=batch.partition_leader_epoch,
        ).first_offset
    if batch.timestamp_type == TimestampType.LOG_APPEND_TIME:  # what the producer sent is not known any more
        return log.append_as_given(batch.buffer, now_ms=batch.max_timestamp).first_offset
    data = bytearray(batch.buffer)
    data[:8] = bytes(8)
    return log.append(data, now_ms=batch.max_timestamp, leader_epoch=batch.partition_leader_epoch).first_offset


@pytest.mark.parametrize(("topic", "partition", "segment_bytes"), CASES)
@pytest.mark.requirement(
    "F-04", "F-10", "F-11", "F-13", "F-14", "F-20", "F-21", "F-30", "F-31", "F-40", "F-41", "F-43", "F-60", "F-61"
)
@pytest.mark.requirement("A-08", "A-20", "A-22", "A-24", "A-26", "P-05", "P-06", "P-07", "P-08", "G-13")
def test_a_rewritten_log_equals_the_brokers(
    kafka_logs: dict[str, Path], tmp_path: Path, topic: str, partition: int, segment_bytes: int
) -> None:
    source = kafka_logs["modern"] / "data"
    original = LogDirectory(source)[topic, partition]
    target = tmp_path / f"{topic}-{partition}"

    def start(*, clean: bool) -> PartitionWriter:
        config = BROKER.replace(segment_bytes=segment_bytes)
        return PartitionWriter.open(
            FileSystem(),
            str(target),
            topic,
            partition,
            config,
            now_ms=CLOCK,
            checkpoints=PartitionCheckpoints(is_clean=clean),
            topic_id=original.topic_id,
        )

    log, leader_epoch = start(clean=False), None
    for _, batch in original.batches():
        if leader_epoch not in (None, batch.partition_leader_epoch):  # a restart, which shows in indexes and snapshots
            log.close()
            log = start(clean=True)
        leader_epoch = batch.partition_leader_epoch
        assert send(log, batch) == batch.base_offset
    assert leader_epoch is not None
    for entry in original.leader_epochs:  # restarts after the last batch
        if entry.leader_epoch > leader_epoch:
            log.close()
            log = start(clean=True)
            log.leader_epochs.assign(entry.leader_epoch, entry.start_offset)
    log.close()
    assert differences(target, source / f"{topic}-{partition}") == []
