"""Generated from StreamsGroupHeartbeatRequest.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = [
    "CopartitionGroup",
    "Endpoint",
    "KeyValue",
    "StreamsGroupHeartbeatRequest",
    "Subtopology",
    "TaskIds",
    "TaskOffset",
    "TopicInfo",
    "Topology",
]


class KeyValue(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    key: str = ""
    """string; versions 0+."""
    value: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicInfo(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: int = 0
    """int32; versions 0+."""
    replication_factor: int = 0
    """int16; versions 0+."""
    topic_configs: list[KeyValue] = []
    """[]KeyValue; versions 0+."""
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


class TaskOffset(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    subtopology_id: str = ""
    """string; versions 0+."""
    partition: int = 0
    """int32; versions 0+."""
    offset: int = 0
    """int64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class CopartitionGroup(base.Struct, kw_only=True):
    """Versions 0+."""

    source_topics: list[int] = []
    """[]int16; versions 0+."""
    source_topic_regex: list[int] = []
    """[]int16; versions 0+."""
    repartition_source_topics: list[int] = []
    """[]int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Subtopology(base.Struct, kw_only=True):
    """Versions 0+."""

    subtopology_id: str = ""
    """string; versions 0+."""
    source_topics: list[str] = []
    """[]string; versions 0+; topicName."""
    source_topic_regex: list[str] = []
    """[]string; versions 0+."""
    state_changelog_topics: list[TopicInfo] = []
    """[]TopicInfo; versions 0+."""
    repartition_sink_topics: list[str] = []
    """[]string; versions 0+; topicName."""
    repartition_source_topics: list[TopicInfo] = []
    """[]TopicInfo; versions 0+."""
    copartition_groups: list[CopartitionGroup] = []
    """[]CopartitionGroup; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Topology(base.Struct, kw_only=True):
    """Versions 0+."""

    epoch: int = 0
    """int32; versions 0+."""
    subtopologies: list[Subtopology] = []
    """[]Subtopology; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StreamsGroupHeartbeatRequest(base.Message, kw_only=True):
    """Request, api key 88; versions 0-1; flexible 0+; listeners broker."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    member_id: str = ""
    """string; versions 0+."""
    member_epoch: int = 0
    """int32; versions 0+."""
    endpoint_information_epoch: int = 0
    """int32; versions 0+."""
    instance_id: str | None = None
    """string; versions 0+; nullable; default null."""
    rack_id: str | None = None
    """string; versions 0+; nullable; default null."""
    rebalance_timeout_ms: int = -1
    """int32; versions 0+; default -1."""
    topology: Topology | None = None
    """Topology; versions 0+; nullable; default null."""
    active_tasks: list[TaskIds] | None = None
    """[]TaskIds; versions 0+; nullable; default null."""
    standby_tasks: list[TaskIds] | None = None
    """[]TaskIds; versions 0+; nullable; default null."""
    warmup_tasks: list[TaskIds] | None = None
    """[]TaskIds; versions 0+; nullable; default null."""
    process_id: str | None = None
    """string; versions 0+; nullable; default null."""
    user_endpoint: Endpoint | None = None
    """Endpoint; versions 0+; nullable; default null."""
    client_tags: list[KeyValue] | None = None
    """[]KeyValue; versions 0+; nullable; default null."""
    task_offsets: list[TaskOffset] | None = None
    """[]TaskOffset; versions 0+; nullable; default null."""
    task_end_offsets: list[TaskOffset] | None = None
    """[]TaskOffset; versions 0+; nullable; default null."""
    shutdown_application: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    KeyValue: ClassVar[type[KeyValue]] = KeyValue
    TopicInfo: ClassVar[type[TopicInfo]] = TopicInfo
    TaskIds: ClassVar[type[TaskIds]] = TaskIds
    Endpoint: ClassVar[type[Endpoint]] = Endpoint
    TaskOffset: ClassVar[type[TaskOffset]] = TaskOffset
    CopartitionGroup: ClassVar[type[CopartitionGroup]] = CopartitionGroup
    Subtopology: ClassVar[type[Subtopology]] = Subtopology
    Topology: ClassVar[type[Topology]] = Topology
    API_KEY: ClassVar[int | None] = 88
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "StreamsGroupHeartbeatRequest", "apiKey": 88,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "commonStructs": [
    {"name": "KeyValue", "versions": "0+", "fields": [
      {"name": "Key", "type": "string", "versions": "0+"},
      {"name": "Value", "type": "string", "versions": "0+"}
    ]},
    {"name": "TopicInfo", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "int32", "versions": "0+"},
      {"name": "ReplicationFactor", "type": "int16", "versions": "0+"},
      {"name": "TopicConfigs", "type": "[]KeyValue", "versions": "0+"}
    ]},
    {"name": "TaskIds", "versions": "0+", "fields": [
      {"name": "SubtopologyId", "type": "string", "versions": "0+"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]},
    {"name": "Endpoint", "versions": "0+", "fields": [
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "uint16", "versions": "0+"}
    ]},
    {"name": "TaskOffset", "versions": "0+", "fields": [
      {"name": "SubtopologyId", "type": "string", "versions": "0+"},
      {"name": "Partition", "type": "int32", "versions": "0+"},
      {"name": "Offset", "type": "int64", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "MemberId", "type": "string", "versions": "0+"},
    {"name": "MemberEpoch", "type": "int32", "versions": "0+"},
    {"name": "EndpointInformationEpoch", "type": "int32", "versions": "0+"},
    {"name": "InstanceId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "RackId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "RebalanceTimeoutMs", "type": "int32", "versions": "0+", "default": "-1"},
    {"name": "Topology", "type": "Topology", "versions": "0+", "nullableVersions": "0+", "default": "null", "fields": [
      {"name": "Epoch", "type": "int32", "versions": "0+"},
      {"name": "Subtopologies", "type": "[]Subtopology", "versions": "0+", "fields": [
        {"name": "SubtopologyId", "type": "string", "versions": "0+"},
        {"name": "SourceTopics", "type": "[]string", "versions": "0+", "entityType": "topicName"},
        {"name": "SourceTopicRegex", "type": "[]string", "versions": "0+"},
        {"name": "StateChangelogTopics", "type": "[]TopicInfo", "versions": "0+"},
        {"name": "RepartitionSinkTopics", "type": "[]string", "versions": "0+", "entityType": "topicName"},
        {"name": "RepartitionSourceTopics", "type": "[]TopicInfo", "versions": "0+"},
        {"name": "CopartitionGroups", "type": "[]CopartitionGroup", "versions": "0+", "fields": [
          {"name": "SourceTopics", "type": "[]int16", "versions": "0+"},
          {"name": "SourceTopicRegex", "type": "[]int16", "versions": "0+"},
          {"name": "RepartitionSourceTopics", "type": "[]int16", "versions": "0+"}
        ]}
      ]}
    ]},
    {"name": "ActiveTasks", "type": "[]TaskIds", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "StandbyTasks", "type": "[]TaskIds", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "WarmupTasks", "type": "[]TaskIds", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "ProcessId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "UserEndpoint", "type": "Endpoint", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "ClientTags", "type": "[]KeyValue", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "TaskOffsets", "type": "[]TaskOffset", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "TaskEndOffsets", "type": "[]TaskOffset", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "ShutdownApplication", "type": "bool", "versions": "0+"}
  ]
}
"""
