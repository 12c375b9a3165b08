"""Generated from RemoteLogSegmentMetadataRecord.json, Kafka 3.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = [
    "RemoteLogSegmentIdEntry",
    "RemoteLogSegmentMetadataRecord",
    "SegmentLeaderEpochEntry",
    "TopicIdPartitionEntry",
]


class TopicIdPartitionEntry(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+."""
    id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partition: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class RemoteLogSegmentIdEntry(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_id_partition: TopicIdPartitionEntry = msgspec.field(default_factory=TopicIdPartitionEntry)
    """TopicIdPartitionEntry; versions 0+."""
    id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class SegmentLeaderEpochEntry(base.Struct, kw_only=True):
    """Versions 0+."""

    leader_epoch: int = 0
    """int32; versions 0+."""
    offset: int = 0
    """int64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class RemoteLogSegmentMetadataRecord(base.Message, kw_only=True):
    """Metadata, record type 0; versions 0; flexible 0+."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = msgspec.field(default_factory=RemoteLogSegmentIdEntry)
    """RemoteLogSegmentIdEntry; versions 0+."""
    start_offset: int = 0
    """int64; versions 0+."""
    end_offset: int = 0
    """int64; versions 0+."""
    broker_id: int = 0
    """int32; versions 0+."""
    max_timestamp_ms: int = 0
    """int64; versions 0+."""
    event_timestamp_ms: int = 0
    """int64; versions 0+."""
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = []
    """[]SegmentLeaderEpochEntry; versions 0+."""
    segment_size_in_bytes: int = 0
    """int32; versions 0+."""
    custom_metadata: bytes | None = None
    """bytes; versions 0+; nullable; default null."""
    remote_log_segment_state: int = 0
    """int8; versions 0+."""
    txn_index_empty: bool = False
    """bool; versions 0+; tag 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicIdPartitionEntry: ClassVar[type[TopicIdPartitionEntry]] = TopicIdPartitionEntry
    RemoteLogSegmentIdEntry: ClassVar[type[RemoteLogSegmentIdEntry]] = RemoteLogSegmentIdEntry
    SegmentLeaderEpochEntry: ClassVar[type[SegmentLeaderEpochEntry]] = SegmentLeaderEpochEntry
    API_KEY: ClassVar[int | None] = 0
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "RemoteLogSegmentMetadataRecord", "apiKey": 0,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "RemoteLogSegmentId", "type": "RemoteLogSegmentIdEntry", "versions": "0+", "fields": [
      {"name": "TopicIdPartition", "type": "TopicIdPartitionEntry", "versions": "0+", "fields": [
        {"name": "Name", "type": "string", "versions": "0+"},
        {"name": "Id", "type": "uuid", "versions": "0+"},
        {"name": "Partition", "type": "int32", "versions": "0+"}
      ]},
      {"name": "Id", "type": "uuid", "versions": "0+"}
    ]},
    {"name": "StartOffset", "type": "int64", "versions": "0+"},
    {"name": "EndOffset", "type": "int64", "versions": "0+"},
    {"name": "BrokerId", "type": "int32", "versions": "0+"},
    {"name": "MaxTimestampMs", "type": "int64", "versions": "0+"},
    {"name": "EventTimestampMs", "type": "int64", "versions": "0+"},
    {"name": "SegmentLeaderEpochs", "type": "[]SegmentLeaderEpochEntry", "versions": "0+", "fields": [
      {"name": "LeaderEpoch", "type": "int32", "versions": "0+"},
      {"name": "Offset", "type": "int64", "versions": "0+"}
    ]},
    {"name": "SegmentSizeInBytes", "type": "int32", "versions": "0+"},
    {"name": "CustomMetadata", "type": "bytes", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "RemoteLogSegmentState", "type": "int8", "versions": "0+"},
    {"name": "TxnIndexEmpty", "type": "bool", "versions": "0+", "tag": 0, "taggedVersions": "0+"}
  ]
}
"""
