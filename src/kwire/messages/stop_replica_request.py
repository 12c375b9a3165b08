"""Generated from StopReplicaRequest.json, Kafka 2.0.1 to 3.9.2, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = [
    "StopReplicaPartitionState",
    "StopReplicaPartitionV0",
    "StopReplicaRequest",
    "StopReplicaTopicState",
    "StopReplicaTopicV1",
]


class StopReplicaPartitionV0(base.Struct, kw_only=True):
    """Versions 0."""

    topic_name: str = ""
    """string; versions 0; topicName."""
    partition_index: int = 0
    """int32; versions 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StopReplicaTopicV1(base.Struct, kw_only=True):
    """Versions 1-2."""

    name: str = ""
    """string; versions 1-2; topicName."""
    partition_indexes: list[int] = []
    """[]int32; versions 1-2."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StopReplicaPartitionState(base.Struct, kw_only=True):
    """Versions 3+."""

    partition_index: int = 0
    """int32; versions 3+."""
    leader_epoch: int = -1
    """int32; versions 3+; default -1."""
    delete_partition: bool = False
    """bool; versions 3+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StopReplicaTopicState(base.Struct, kw_only=True):
    """Versions 3+."""

    topic_name: str = ""
    """string; versions 3+; topicName."""
    partition_states: list[StopReplicaPartitionState] = []
    """[]StopReplicaPartitionState; versions 3+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StopReplicaRequest(base.Message, kw_only=True):
    """Request, api key 5; versions 0-4; flexible 2+; listeners zkBroker."""

    controller_id: int = 0
    """int32; versions 0+; brokerId."""
    is_kraft_controller: bool = False
    """bool; versions 4+."""
    controller_epoch: int = 0
    """int32; versions 0+."""
    broker_epoch: int = -1
    """int64; versions 1+; default -1; ignorable."""
    delete_partitions: bool = False
    """bool; versions 0-2."""
    ungrouped_partitions: list[StopReplicaPartitionV0] = []
    """[]StopReplicaPartitionV0; versions 0."""
    topics: list[StopReplicaTopicV1] = []
    """[]StopReplicaTopicV1; versions 1-2."""
    topic_states: list[StopReplicaTopicState] = []
    """[]StopReplicaTopicState; versions 3+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    StopReplicaPartitionV0: ClassVar[type[StopReplicaPartitionV0]] = StopReplicaPartitionV0
    StopReplicaTopicV1: ClassVar[type[StopReplicaTopicV1]] = StopReplicaTopicV1
    StopReplicaPartitionState: ClassVar[type[StopReplicaPartitionState]] = StopReplicaPartitionState
    StopReplicaTopicState: ClassVar[type[StopReplicaTopicState]] = StopReplicaTopicState
    API_KEY: ClassVar[int | None] = 5
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("partitionsV0", "ungrouped_partitions", 0, 0),)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "StopReplicaRequest", "apiKey": 5,
  "validVersions": "0-4", "flexibleVersions": "2+",
  "listeners": ["zkBroker"],
  "fields": [
    {"name": "ControllerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "isKRaftController", "type": "bool", "versions": "4+"},
    {"name": "ControllerEpoch", "type": "int32", "versions": "0+"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "1+", "default": "-1", "ignorable": true},
    {"name": "DeletePartitions", "type": "bool", "versions": "0-2"},
    {"name": "UngroupedPartitions", "type": "[]StopReplicaPartitionV0", "versions": "0", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0", "entityType": "topicName"},
      {"name": "PartitionIndex", "type": "int32", "versions": "0"}
    ]},
    {"name": "Topics", "type": "[]StopReplicaTopicV1", "versions": "1-2", "fields": [
      {"name": "Name", "type": "string", "versions": "1-2", "entityType": "topicName"},
      {"name": "PartitionIndexes", "type": "[]int32", "versions": "1-2"}
    ]},
    {"name": "TopicStates", "type": "[]StopReplicaTopicState", "versions": "3+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "3+", "entityType": "topicName"},
      {"name": "PartitionStates", "type": "[]StopReplicaPartitionState", "versions": "3+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "3+"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "3+", "default": "-1"},
        {"name": "DeletePartition", "type": "bool", "versions": "3+"}
      ]}
    ]}
  ]
}
"""
