"""Generated from AlterIsrResponse.json, Kafka 2.7.2 to 3.1.2, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterIsrResponse", "PartitionData", "TopicData"]


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    leader_id: int = 0
    """int32; versions 0+; brokerId."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    isr: list[int] = []
    """[]int32; versions 0+; brokerId."""
    current_isr_version: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicData(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[PartitionData] = []
    """[]PartitionData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterIsrResponse(base.Message, kw_only=True):
    """Response, api key 56; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    topics: list[TopicData] = []
    """[]TopicData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    PartitionData: ClassVar[type[PartitionData]] = PartitionData
    TopicData: ClassVar[type[TopicData]] = TopicData
    API_KEY: ClassVar[int | None] = 56
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "AlterIsrResponse", "apiKey": 56,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "Topics", "type": "[]TopicData", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "LeaderId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "0+"},
        {"name": "Isr", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "CurrentIsrVersion", "type": "int32", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
