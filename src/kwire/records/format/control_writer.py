"""Write control batches: transaction markers, and control records of KRaft. For the layout see control_record.

Source: KIP-98, KIP-595, KIP-630, KIP-853; org.apache.kafka.common.record.EndTransactionMarker, MemoryRecords.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.errors import EncodeError
from kwire.records.attributes import NO_LEADER_EPOCH
from kwire.records.format.builder import BatchBuilder
from kwire.records.format.control_record import KEY, MARKER, ControlRecordType
from kwire.records.format.default_writer import MAX_INT32

__all__ = ["write_control_batch", "write_transaction_marker"]

VERSION = 0  # of keys and of markers; readers take any later one for it
MARKER_TYPES = (ControlRecordType.ABORT, ControlRecordType.COMMIT)


def write_transaction_marker(
    kind: ControlRecordType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """Write the marker that ends a transaction in one partition. kind: COMMIT or ABORT. timestamp: milliseconds.

    Raises EncodeError for another kind or a number that does not fit.
    """
    if kind not in MARKER_TYPES:
        raise EncodeError(f"{kind!r} is not a transaction marker; use COMMIT or ABORT")
    if not 0 <= coordinator_epoch <= MAX_INT32:
        raise EncodeError(f"coordinator_epoch {coordinator_epoch} is out of range: 0 to {MAX_INT32}")
    builder = BatchBuilder(
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
        partition_leader_epoch=partition_leader_epoch,
    )
    builder.append(KEY.pack(VERSION, kind), MARKER.pack(VERSION, coordinator_epoch), timestamp=timestamp)
    return builder.build()


def write_control_batch(
    records: Sequence[tuple[ControlRecordType, bytes]],
    *,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """Write a control batch of KRaft, from pairs of type and encoded message. timestamp: milliseconds, of all records.

    Raises EncodeError for an UNKNOWN type and for transaction markers, which need a producer.
    """
    builder = BatchBuilder(base_offset=base_offset, is_control=True, partition_leader_epoch=partition_leader_epoch)
    for kind, value in records:
        if kind == ControlRecordType.UNKNOWN or kind in MARKER_TYPES:
            raise EncodeError(f"{kind!r} is not a control record of KRaft")
        builder.append(KEY.pack(VERSION, kind), value, timestamp=timestamp)
    return builder.build()
