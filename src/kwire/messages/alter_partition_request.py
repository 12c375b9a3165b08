"""Generated from AlterPartitionRequest.json, Kafka 3.2.3 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterPartitionRequest", "BrokerState", "PartitionData", "TopicData"]


class BrokerState(base.Struct, kw_only=True):
    """Versions 3+."""

    broker_id: int = 0
    """int32; versions 3+; brokerId."""
    broker_epoch: int = -1
    """int64; versions 3+; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    new_isr: list[int] = []
    """[]int32; versions 0-2; brokerId."""
    new_isr_with_epochs: list[BrokerState] = []
    """[]BrokerState; versions 3+."""
    leader_recovery_state: int = 0
    """int8; versions 1+."""
    partition_epoch: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicData(base.Struct, kw_only=True):
    """Versions 0+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("name", "topic_name", 0, 1),)

    topic_name: str = ""
    """string; versions 0-1; ignorable; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 2+; ignorable."""
    partitions: list[PartitionData] = []
    """[]PartitionData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterPartitionRequest(base.Message, kw_only=True):
    """Request, api key 56; versions 0-3; flexible 0+; listeners controller, zkBroker."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    broker_epoch: int = -1
    """int64; versions 0+; default -1."""
    topics: list[TopicData] = []
    """[]TopicData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    BrokerState: ClassVar[type[BrokerState]] = BrokerState
    PartitionData: ClassVar[type[PartitionData]] = PartitionData
    TopicData: ClassVar[type[TopicData]] = TopicData
    API_KEY: ClassVar[int | None] = 56
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "AlterPartitionRequest", "apiKey": 56,
  "validVersions": "0-3", "flexibleVersions": "0+",
  "listeners": ["controller", "zkBroker"],
  "fields": [
    {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "0+", "default": "-1"},
    {"name": "Topics", "type": "[]TopicData", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0-1", "ignorable": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "2+", "ignorable": true},
      {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "0+"},
        {"name": "NewIsr", "type": "[]int32", "versions": "0-2", "entityType": "brokerId"},
        {"name": "NewIsrWithEpochs", "type": "[]BrokerState", "versions": "3+", "fields": [
          {"name": "BrokerId", "type": "int32", "versions": "3+", "entityType": "brokerId"},
          {"name": "BrokerEpoch", "type": "int64", "versions": "3+", "default": "-1"}
        ]},
        {"name": "LeaderRecoveryState", "type": "int8", "versions": "1+"},
        {"name": "PartitionEpoch", "type": "int32", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
