"""Generated from LeaderAndIsrRequest.json, Kafka 2.0.1 to 3.9.2, by kwire.codegen; change the generator."""

from __future__ import annotations

import builtins
import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["LeaderAndIsrLiveLeader", "LeaderAndIsrPartitionState", "LeaderAndIsrRequest", "LeaderAndIsrTopicState"]


class LeaderAndIsrPartitionState(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("isrReplicas", "isr", 0, 2),
        ("leaderKey", "leader", 0, 2),
        ("zkVersion", "partition_epoch", 0, 6),
    )

    topic_name: str = ""
    """string; versions 0-1; ignorable; topicName."""
    partition_index: int = 0
    """int32; versions 0+."""
    controller_epoch: int = 0
    """int32; versions 0+."""
    leader: int = 0
    """int32; versions 0+; brokerId."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    isr: list[int] = []
    """[]int32; versions 0+; brokerId."""
    partition_epoch: int = 0
    """int32; versions 0+."""
    replicas: list[int] = []
    """[]int32; versions 0+; brokerId."""
    adding_replicas: list[int] = []
    """[]int32; versions 3+; ignorable; brokerId."""
    removing_replicas: list[int] = []
    """[]int32; versions 3+; ignorable; brokerId."""
    is_new: bool = False
    """bool; versions 1+; ignorable."""
    leader_recovery_state: int = 0
    """int8; versions 6+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class LeaderAndIsrTopicState(base.Struct, kw_only=True):
    """Versions 2+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("name", "topic_name", 2, 2),)

    topic_name: str = ""
    """string; versions 2+; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 5+; ignorable."""
    partition_states: list[LeaderAndIsrPartitionState] = []
    """[]LeaderAndIsrPartitionState; versions 2+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class LeaderAndIsrLiveLeader(base.Struct, kw_only=True):
    """Versions 0+."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    host_name: str = ""
    """string; versions 0+."""
    port: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class LeaderAndIsrRequest(base.Message, kw_only=True):
    """Request, api key 4; versions 0-7; flexible 4+; listeners zkBroker."""

    controller_id: int = 0
    """int32; versions 0+; brokerId."""
    is_kraft_controller: bool = False
    """bool; versions 7+."""
    controller_epoch: int = 0
    """int32; versions 0+."""
    broker_epoch: int = -1
    """int64; versions 2+; default -1; ignorable."""
    type: int = 0
    """int8; versions 5+."""
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = []
    """[]LeaderAndIsrPartitionState; versions 0-1."""
    topic_states: list[LeaderAndIsrTopicState] = []
    """[]LeaderAndIsrTopicState; versions 2+."""
    live_leaders: list[LeaderAndIsrLiveLeader] = []
    """[]LeaderAndIsrLiveLeader; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    LeaderAndIsrPartitionState: ClassVar[builtins.type[LeaderAndIsrPartitionState]] = LeaderAndIsrPartitionState
    LeaderAndIsrTopicState: ClassVar[builtins.type[LeaderAndIsrTopicState]] = LeaderAndIsrTopicState
    LeaderAndIsrLiveLeader: ClassVar[builtins.type[LeaderAndIsrLiveLeader]] = LeaderAndIsrLiveLeader
    API_KEY: ClassVar[int | None] = 4
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 7)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("partitionStatesV0", "ungrouped_partition_states", 0, 1),
    )
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "LeaderAndIsrRequest", "apiKey": 4,
  "validVersions": "0-7", "flexibleVersions": "4+",
  "listeners": ["zkBroker"],
  "commonStructs": [
    {"name": "LeaderAndIsrPartitionState", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0-1", "ignorable": true, "entityType": "topicName"},
      {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
      {"name": "ControllerEpoch", "type": "int32", "versions": "0+"},
      {"name": "Leader", "type": "int32", "versions": "0+", "entityType": "brokerId"},
      {"name": "LeaderEpoch", "type": "int32", "versions": "0+"},
      {"name": "Isr", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
      {"name": "PartitionEpoch", "type": "int32", "versions": "0+"},
      {"name": "Replicas", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
      {"name": "AddingReplicas", "type": "[]int32", "versions": "3+", "ignorable": true, "entityType": "brokerId"},
      {"name": "RemovingReplicas", "type": "[]int32", "versions": "3+", "ignorable": true, "entityType": "brokerId"},
      {"name": "IsNew", "type": "bool", "versions": "1+", "ignorable": true},
      {"name": "LeaderRecoveryState", "type": "int8", "versions": "6+"}
    ]}
  ],
  "fields": [
    {"name": "ControllerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "isKRaftController", "type": "bool", "versions": "7+"},
    {"name": "ControllerEpoch", "type": "int32", "versions": "0+"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "2+", "default": "-1", "ignorable": true},
    {"name": "Type", "type": "int8", "versions": "5+"},
    {"name": "UngroupedPartitionStates", "type": "[]LeaderAndIsrPartitionState", "versions": "0-1"},
    {"name": "TopicStates", "type": "[]LeaderAndIsrTopicState", "versions": "2+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "2+", "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "5+", "ignorable": true},
      {"name": "PartitionStates", "type": "[]LeaderAndIsrPartitionState", "versions": "2+"}
    ]},
    {"name": "LiveLeaders", "type": "[]LeaderAndIsrLiveLeader", "versions": "0+", "fields": [
      {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
      {"name": "HostName", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "int32", "versions": "0+"}
    ]}
  ]
}
"""
