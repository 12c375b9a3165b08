"""Generated from WriteShareGroupStateRequest.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["PartitionData", "StateBatch", "WriteShareGroupStateRequest", "WriteStateData"]


class StateBatch(base.Struct, kw_only=True):
    """Versions 0+."""

    first_offset: int = 0
    """int64; versions 0+."""
    last_offset: int = 0
    """int64; versions 0+."""
    delivery_state: int = 0
    """int8; versions 0+."""
    delivery_count: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    partition: int = 0
    """int32; versions 0+."""
    state_epoch: int = 0
    """int32; versions 0+."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    start_offset: int = 0
    """int64; versions 0+."""
    delivery_complete_count: int = -1
    """int32; versions 1+; default -1; ignorable."""
    state_batches: list[StateBatch] = []
    """[]StateBatch; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class WriteStateData(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partitions: list[PartitionData] = []
    """[]PartitionData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class WriteShareGroupStateRequest(base.Message, kw_only=True):
    """Request, api key 85; versions 0-1; flexible 0+; listeners broker."""

    group_id: str = ""
    """string; versions 0+."""
    topics: list[WriteStateData] = []
    """[]WriteStateData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    StateBatch: ClassVar[type[StateBatch]] = StateBatch
    PartitionData: ClassVar[type[PartitionData]] = PartitionData
    WriteStateData: ClassVar[type[WriteStateData]] = WriteStateData
    API_KEY: ClassVar[int | None] = 85
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "WriteShareGroupStateRequest", "apiKey": 85,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+"},
    {"name": "Topics", "type": "[]WriteStateData", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        {"name": "Partition", "type": "int32", "versions": "0+"},
        {"name": "StateEpoch", "type": "int32", "versions": "0+"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "0+"},
        {"name": "StartOffset", "type": "int64", "versions": "0+"},
        {"name": "DeliveryCompleteCount", "type": "int32", "versions": "1+", "default": "-1", "ignorable": true},
        {"name": "StateBatches", "type": "[]StateBatch", "versions": "0+", "fields": [
          {"name": "FirstOffset", "type": "int64", "versions": "0+"},
          {"name": "LastOffset", "type": "int64", "versions": "0+"},
          {"name": "DeliveryState", "type": "int8", "versions": "0+"},
          {"name": "DeliveryCount", "type": "int16", "versions": "0+"}
        ]}
      ]}
    ]}
  ]
}
"""
