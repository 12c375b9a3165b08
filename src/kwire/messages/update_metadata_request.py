"""Generated from UpdateMetadataRequest.json, Kafka 2.0.1 to 3.9.2, by kwire.codegen; change the generator."""

from __future__ import annotations

import builtins
import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = [
    "UpdateMetadataBroker",
    "UpdateMetadataEndpoint",
    "UpdateMetadataPartitionState",
    "UpdateMetadataRequest",
    "UpdateMetadataTopicState",
]


class UpdateMetadataPartitionState(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    topic_name: str = ""
    """string; versions 0-4; ignorable; topicName."""
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
    zk_version: int = 0
    """int32; versions 0+."""
    replicas: list[int] = []
    """[]int32; versions 0+; brokerId."""
    offline_replicas: list[int] = []
    """[]int32; versions 4+; ignorable; brokerId."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class UpdateMetadataTopicState(base.Struct, kw_only=True):
    """Versions 5+."""

    topic_name: str = ""
    """string; versions 5+; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 7+; ignorable."""
    partition_states: list[UpdateMetadataPartitionState] = []
    """[]UpdateMetadataPartitionState; versions 5+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class UpdateMetadataEndpoint(base.Struct, kw_only=True):
    """Versions 1+."""

    port: int = 0
    """int32; versions 1+."""
    host: str = ""
    """string; versions 1+."""
    listener: str = ""
    """string; versions 3+; ignorable."""
    security_protocol: int = 0
    """int16; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class UpdateMetadataBroker(base.Struct, kw_only=True):
    """Versions 0+."""

    id: int = 0
    """int32; versions 0+; brokerId."""
    v0_host: str = ""
    """string; versions 0; ignorable."""
    v0_port: int = 0
    """int32; versions 0; ignorable."""
    endpoints: list[UpdateMetadataEndpoint] = []
    """[]UpdateMetadataEndpoint; versions 1+; ignorable."""
    rack: str | None = ""
    """string; versions 2+; nullable; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class UpdateMetadataRequest(base.Message, kw_only=True):
    """Request, api key 6; versions 0-8; flexible 6+; listeners zkBroker."""

    controller_id: int = 0
    """int32; versions 0+; brokerId."""
    is_kraft_controller: bool = False
    """bool; versions 8+."""
    controller_epoch: int = 0
    """int32; versions 0+."""
    broker_epoch: int = -1
    """int64; versions 5+; default -1; ignorable."""
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = []
    """[]UpdateMetadataPartitionState; versions 0-4."""
    topic_states: list[UpdateMetadataTopicState] = []
    """[]UpdateMetadataTopicState; versions 5+."""
    live_brokers: list[UpdateMetadataBroker] = []
    """[]UpdateMetadataBroker; versions 0+."""
    type: int = 0
    """int8; versions 8+; tag 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    UpdateMetadataPartitionState: ClassVar[builtins.type[UpdateMetadataPartitionState]] = UpdateMetadataPartitionState
    UpdateMetadataTopicState: ClassVar[builtins.type[UpdateMetadataTopicState]] = UpdateMetadataTopicState
    UpdateMetadataEndpoint: ClassVar[builtins.type[UpdateMetadataEndpoint]] = UpdateMetadataEndpoint
    UpdateMetadataBroker: ClassVar[builtins.type[UpdateMetadataBroker]] = UpdateMetadataBroker
    API_KEY: ClassVar[int | None] = 6
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 8)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(6, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("brokers", "live_brokers", 0, 5),
        ("partitionStatesV0", "ungrouped_partition_states", 0, 4),
    )
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "UpdateMetadataRequest", "apiKey": 6,
  "validVersions": "0-8", "flexibleVersions": "6+",
  "listeners": ["zkBroker"],
  "commonStructs": [
    {"name": "UpdateMetadataPartitionState", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0-4", "ignorable": true, "entityType": "topicName"},
      {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
      {"name": "ControllerEpoch", "type": "int32", "versions": "0+"},
      {"name": "Leader", "type": "int32", "versions": "0+", "entityType": "brokerId"},
      {"name": "LeaderEpoch", "type": "int32", "versions": "0+"},
      {"name": "Isr", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
      {"name": "ZkVersion", "type": "int32", "versions": "0+"},
      {"name": "Replicas", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
      {"name": "OfflineReplicas", "type": "[]int32", "versions": "4+", "ignorable": true, "entityType": "brokerId"}
    ]}
  ],
  "fields": [
    {"name": "ControllerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "isKRaftController", "type": "bool", "versions": "8+"},
    {"name": "Type", "type": "int8", "versions": "8+", "tag": 0, "taggedVersions": "8+"},
    {"name": "ControllerEpoch", "type": "int32", "versions": "0+"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "5+", "default": "-1", "ignorable": true},
    {"name": "UngroupedPartitionStates", "type": "[]UpdateMetadataPartitionState", "versions": "0-4"},
    {"name": "TopicStates", "type": "[]UpdateMetadataTopicState", "versions": "5+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "5+", "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "7+", "ignorable": true},
      {"name": "PartitionStates", "type": "[]UpdateMetadataPartitionState", "versions": "5+"}
    ]},
    {"name": "LiveBrokers", "type": "[]UpdateMetadataBroker", "versions": "0+", "fields": [
      {"name": "Id", "type": "int32", "versions": "0+", "entityType": "brokerId"},
      {"name": "V0Host", "type": "string", "versions": "0", "ignorable": true},
      {"name": "V0Port", "type": "int32", "versions": "0", "ignorable": true},
      {"name": "Endpoints", "type": "[]UpdateMetadataEndpoint", "versions": "1+", "ignorable": true, "fields": [
        {"name": "Port", "type": "int32", "versions": "1+"},
        {"name": "Host", "type": "string", "versions": "1+"},
        {"name": "Listener", "type": "string", "versions": "3+", "ignorable": true},
        {"name": "SecurityProtocol", "type": "int16", "versions": "1+"}
      ]},
      {"name": "Rack", "type": "string", "versions": "2+", "nullableVersions": "0+", "ignorable": true}
    ]}
  ]
}
"""
