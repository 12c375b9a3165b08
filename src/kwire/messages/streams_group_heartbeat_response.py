"""Generated from StreamsGroupHeartbeatResponse.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = ["Endpoint", "EndpointToPartitions", "Status", "StreamsGroupHeartbeatResponse", "TaskIds", "TopicPartition"]


class Status(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    status_code: int = 0
    """int8; versions 0+."""
    status_detail: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TaskIds(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    subtopology_id: str = ""
    """string; versions 0+."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Endpoint(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    host: str = ""
    """string; versions 0+."""
    port: int = 0
    """uint16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicPartition(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    topic: str = ""
    """string; versions 0+; topicName."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class EndpointToPartitions(base.Struct, kw_only=True):
    """Versions 0+."""

    user_endpoint: Endpoint = msgspec.field(default_factory=Endpoint)
    """Endpoint; versions 0+."""
    active_partitions: list[TopicPartition] = []
    """[]TopicPartition; versions 0+."""
    standby_partitions: list[TopicPartition] = []
    """[]TopicPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StreamsGroupHeartbeatResponse(base.Message, kw_only=True):
    """Response, api key 88; versions 0-1; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    member_id: str = ""
    """string; versions 0+."""
    member_epoch: int = 0
    """int32; versions 0+."""
    heartbeat_interval_ms: int = 0
    """int32; versions 0+."""
    acceptable_recovery_lag_legacy: int = 0
    """int32; versions 0."""
    task_offset_interval_ms: int = 0
    """int32; versions 0+."""
    acceptable_recovery_lag: int = -1
    """int64; versions 1+; default -1; ignorable."""
    status: list[Status] | None = []
    """[]Status; versions 0+; nullable."""
    active_tasks: list[TaskIds] | None = None
    """[]TaskIds; versions 0+; nullable; default null."""
    standby_tasks: list[TaskIds] | None = None
    """[]TaskIds; versions 0+; nullable; default null."""
    warmup_tasks: list[TaskIds] | None = None
    """[]TaskIds; versions 0+; nullable; default null."""
    topology_description_required: bool = False
    """bool; versions 1+."""
    endpoint_information_epoch: int = 0
    """int32; versions 0+."""
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
    """[]EndpointToPartitions; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    Status: ClassVar[type[Status]] = Status
    TaskIds: ClassVar[type[TaskIds]] = TaskIds
    Endpoint: ClassVar[type[Endpoint]] = Endpoint
    TopicPartition: ClassVar[type[TopicPartition]] = TopicPartition
    EndpointToPartitions: ClassVar[type[EndpointToPartitions]] = EndpointToPartitions
    API_KEY: ClassVar[int | None] = 88
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("acceptableRecoveryLag", "acceptable_recovery_lag_legacy", 0, 0),
    )
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "StreamsGroupHeartbeatResponse", "apiKey": 88,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "commonStructs": [
    {"name": "Status", "versions": "0+", "fields": [
      {"name": "StatusCode", "type": "int8", "versions": "0+"},
      {"name": "StatusDetail", "type": "string", "versions": "0+"}
    ]},
    {"name": "TaskIds", "versions": "0+", "fields": [
      {"name": "SubtopologyId", "type": "string", "versions": "0+"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]},
    {"name": "Endpoint", "versions": "0+", "fields": [
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "uint16", "versions": "0+"}
    ]},
    {"name": "TopicPartition", "versions": "0+", "fields": [
      {"name": "Topic", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "MemberId", "type": "string", "versions": "0+"},
    {"name": "MemberEpoch", "type": "int32", "versions": "0+"},
    {"name": "HeartbeatIntervalMs", "type": "int32", "versions": "0+"},
    {"name": "AcceptableRecoveryLagLegacy", "type": "int32", "versions": "0"},
    {"name": "TaskOffsetIntervalMs", "type": "int32", "versions": "0+"},
    {"name": "AcceptableRecoveryLag", "type": "int64", "versions": "1+", "default": "-1", "ignorable": true},
    {"name": "Status", "type": "[]Status", "versions": "0+", "nullableVersions": "0+"},
    {"name": "ActiveTasks", "type": "[]TaskIds", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "StandbyTasks", "type": "[]TaskIds", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "WarmupTasks", "type": "[]TaskIds", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "TopologyDescriptionRequired", "type": "bool", "versions": "1+"},
    {"name": "EndpointInformationEpoch", "type": "int32", "versions": "0+"},
    {"name": "PartitionsByUserEndpoint", "type": "[]EndpointToPartitions", "versions": "0+", "nullableVersions": "0+", "default": "null", "fields": [
      {"name": "UserEndpoint", "type": "Endpoint", "versions": "0+"},
      {"name": "ActivePartitions", "type": "[]TopicPartition", "versions": "0+"},
      {"name": "StandbyPartitions", "type": "[]TopicPartition", "versions": "0+"}
    ]}
  ]
}
"""
