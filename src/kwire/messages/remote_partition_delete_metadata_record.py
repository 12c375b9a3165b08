"""Generated from RemotePartitionDeleteMetadataRecord.json, Kafka 3.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = ["RemotePartitionDeleteMetadataRecord", "TopicIdPartitionEntry"]


class TopicIdPartitionEntry(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+."""
    id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partition: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class RemotePartitionDeleteMetadataRecord(base.Message, kw_only=True):
    """Metadata, record type 2; versions 0; flexible 0+."""

    topic_id_partition: TopicIdPartitionEntry = msgspec.field(default_factory=TopicIdPartitionEntry)
    """TopicIdPartitionEntry; versions 0+."""
    broker_id: int = 0
    """int32; versions 0+."""
    event_timestamp_ms: int = 0
    """int64; versions 0+."""
    remote_partition_delete_state: int = 0
    """int8; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicIdPartitionEntry: ClassVar[type[TopicIdPartitionEntry]] = TopicIdPartitionEntry
    API_KEY: ClassVar[int | None] = 2
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "RemotePartitionDeleteMetadataRecord", "apiKey": 2,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "TopicIdPartition", "type": "TopicIdPartitionEntry", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+"},
      {"name": "Id", "type": "uuid", "versions": "0+"},
      {"name": "Partition", "type": "int32", "versions": "0+"}
    ]},
    {"name": "BrokerId", "type": "int32", "versions": "0+"},
    {"name": "EventTimestampMs", "type": "int64", "versions": "0+"},
    {"name": "RemotePartitionDeleteState", "type": "int8", "versions": "0+"}
  ]
}
"""
