"""Records of `__remote_log_metadata` in the format of kafka-dump-log's decoder: Java's toString.

    RemoteLogSegmentMetadata{remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition=ID:TOPIC-0, id=ID}, startOffset=...
    RemoteLogSegmentMetadataUpdate{...}         RemotePartitionDeleteMetadata{...}

4.x adds `txnIdxEmpty` to the first.
Source: RemoteLogSegmentMetadata, RemoteLogSegmentMetadataUpdate, RemotePartitionDeleteMetadata of 3.9.1 and 4.x.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwire.identifiers import render_uuid

__all__ = ["remote_text"]

SEGMENT_STATES = ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED")
PARTITION_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")


def remote_text(kind: str, record: Any, *, with_index: bool) -> str | None:
    """Return the line of a record; None for an unknown kind. with_index: include txnIdxEmpty."""
    if kind == "RemoteLogSegmentMetadataRecord":
        epochs = {each.leader_epoch: each.offset for each in record.segment_leader_epochs}
        fields = {
            "remoteLogSegmentId": _segment(record.remote_log_segment_id),
            "startOffset": record.start_offset,
            "endOffset": record.end_offset,
            "brokerId": record.broker_id,
            "maxTimestampMs": record.max_timestamp_ms,
            "eventTimestampMs": record.event_timestamp_ms,
            "segmentLeaderEpochs": "{" + ", ".join(f"{epoch}={epochs[epoch]}" for epoch in sorted(epochs)) + "}",
            "segmentSizeInBytes": record.segment_size_in_bytes,
            "customMetadata": _custom(record.custom_metadata),
            "state": _state(SEGMENT_STATES, record.remote_log_segment_state),
        }
        if with_index:
            fields["txnIdxEmpty"] = "true" if record.txn_index_empty else "false"
        return _object("RemoteLogSegmentMetadata", fields)
    if kind == "RemoteLogSegmentMetadataUpdateRecord":
        return _object(
            "RemoteLogSegmentMetadataUpdate",
            {
                "remoteLogSegmentId": _segment(record.remote_log_segment_id),
                "customMetadata": _custom(record.custom_metadata),
                "state": _state(SEGMENT_STATES, record.remote_log_segment_state),
                "eventTimestampMs": record.event_timestamp_ms,
                "brokerId": record.broker_id,
            },
        )
    if kind == "RemotePartitionDeleteMetadataRecord":
        return _object(
            "RemotePartitionDeleteMetadata",
            {
                "topicPartition": _partition(record.topic_id_partition),
                "state": _state(PARTITION_STATES, record.remote_partition_delete_state),
                "eventTimestampMs": record.event_timestamp_ms,
                "brokerId": record.broker_id,
            },
        )
    return None


def _object(name: str, fields: Mapping[str, Any]) -> str:
    return name + "{" + ", ".join(f"{field}={value}" for field, value in fields.items()) + "}"


def _segment(segment: Any) -> str:
    fields = {"topicIdPartition": _partition(segment.topic_id_partition), "id": render_uuid(segment.id)}
    return _object("RemoteLogSegmentId", fields)


def _partition(partition: Any) -> str:
    return f"{render_uuid(partition.id)}:{partition.name}-{partition.partition}"


def _custom(data: bytes | None) -> str:
    return "Optional.empty" if data is None else f"Optional[CustomMetadata{{{len(data)} bytes}}]"


def _state(states: tuple[str, ...], number: int) -> str:
    return states[number] if 0 <= number < len(states) else "null"
