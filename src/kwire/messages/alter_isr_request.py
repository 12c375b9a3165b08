"""Generated from AlterIsrRequest.json, Kafka 2.7.2 to 3.1.2, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterIsrRequest", "PartitionData", "TopicData"]


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    new_isr: list[int] = []
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


class AlterIsrRequest(base.Message, kw_only=True):
    """Request, api key 56; versions 0; flexible 0+; listeners zkBroker, controller."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    broker_epoch: int = -1
    """int64; versions 0+; default -1."""
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
  "type": "request", "name": "AlterIsrRequest", "apiKey": 56,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["zkBroker", "controller"],
  "fields": [
    {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "0+", "default": "-1"},
    {"name": "Topics", "type": "[]TopicData", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "0+"},
        {"name": "NewIsr", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "CurrentIsrVersion", "type": "int32", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
