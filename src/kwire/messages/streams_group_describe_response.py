"""Generated from StreamsGroupDescribeResponse.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = [
    "Assignment",
    "DescribedGroup",
    "Endpoint",
    "KeyValue",
    "Member",
    "StreamsGroupDescribeResponse",
    "Subtopology",
    "TaskIds",
    "TaskOffset",
    "TopicInfo",
    "Topology",
    "TopologyDescription",
    "TopologyDescriptionGlobalStore",
    "TopologyDescriptionNode",
    "TopologyDescriptionSubtopology",
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


class TaskIds(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    subtopology_id: str = ""
    """string; versions 0+."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Assignment(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    active_tasks: list[TaskIds] = []
    """[]TaskIds; versions 0+."""
    standby_tasks: list[TaskIds] = []
    """[]TaskIds; versions 0+."""
    warmup_tasks: list[TaskIds] = []
    """[]TaskIds; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopologyDescriptionNode(base.Struct, kw_only=True):
    """Common struct; versions 1+."""

    name: str = ""
    """string; versions 1+."""
    node_type: int = 0
    """int8; versions 1+."""
    source_topics: list[str] = []
    """[]string; versions 1+; topicName."""
    sink_topic: str | None = None
    """string; versions 1+; nullable; default null; topicName."""
    stores: list[str] = []
    """[]string; versions 1+."""
    successors: list[str] = []
    """[]string; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopologyDescriptionSubtopology(base.Struct, kw_only=True):
    """Common struct; versions 1+."""

    subtopology_id: str = ""
    """string; versions 1+."""
    nodes: list[TopologyDescriptionNode] = []
    """[]TopologyDescriptionNode; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopologyDescriptionGlobalStore(base.Struct, kw_only=True):
    """Common struct; versions 1+."""

    source: TopologyDescriptionNode = msgspec.field(default_factory=TopologyDescriptionNode)
    """TopologyDescriptionNode; versions 1+."""
    processor: TopologyDescriptionNode = msgspec.field(default_factory=TopologyDescriptionNode)
    """TopologyDescriptionNode; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopologyDescription(base.Struct, kw_only=True):
    """Common struct; versions 1+."""

    subtopologies: list[TopologyDescriptionSubtopology] = []
    """[]TopologyDescriptionSubtopology; versions 1+."""
    global_stores: list[TopologyDescriptionGlobalStore] = []
    """[]TopologyDescriptionGlobalStore; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Subtopology(base.Struct, kw_only=True):
    """Versions 0+."""

    subtopology_id: str = ""
    """string; versions 0+."""
    source_topics: list[str] = []
    """[]string; versions 0+; topicName."""
    repartition_sink_topics: list[str] = []
    """[]string; versions 0+; topicName."""
    state_changelog_topics: list[TopicInfo] = []
    """[]TopicInfo; versions 0+."""
    repartition_source_topics: list[TopicInfo] = []
    """[]TopicInfo; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Topology(base.Struct, kw_only=True):
    """Versions 0+."""

    epoch: int = 0
    """int32; versions 0+."""
    subtopologies: list[Subtopology] | None = None
    """[]Subtopology; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Member(base.Struct, kw_only=True):
    """Versions 0+."""

    member_id: str = ""
    """string; versions 0+."""
    member_epoch: int = 0
    """int32; versions 0+."""
    instance_id: str | None = None
    """string; versions 0+; nullable; default null."""
    rack_id: str | None = None
    """string; versions 0+; nullable; default null."""
    client_id: str = ""
    """string; versions 0+."""
    client_host: str = ""
    """string; versions 0+."""
    topology_epoch: int = 0
    """int32; versions 0+."""
    process_id: str = ""
    """string; versions 0+."""
    user_endpoint: Endpoint | None = None
    """Endpoint; versions 0+; nullable; default null."""
    client_tags: list[KeyValue] = []
    """[]KeyValue; versions 0+."""
    task_offsets: list[TaskOffset] = []
    """[]TaskOffset; versions 0+."""
    task_end_offsets: list[TaskOffset] = []
    """[]TaskOffset; versions 0+."""
    assignment: Assignment = msgspec.field(default_factory=Assignment)
    """Assignment; versions 0+."""
    target_assignment: Assignment = msgspec.field(default_factory=Assignment)
    """Assignment; versions 0+."""
    is_classic: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribedGroup(base.Struct, kw_only=True):
    """Versions 0+."""

    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    group_id: str = ""
    """string; versions 0+; groupId."""
    group_state: str = ""
    """string; versions 0+."""
    group_epoch: int = 0
    """int32; versions 0+."""
    assignment_epoch: int = 0
    """int32; versions 0+."""
    topology: Topology | None = None
    """Topology; versions 0+; nullable; default null."""
    members: list[Member] = []
    """[]Member; versions 0+."""
    authorized_operations: int = -2147483648
    """int32; versions 0+; default -2147483648."""
    topology_description: TopologyDescription | None = None
    """TopologyDescription; versions 1+; nullable; default null."""
    topology_description_status: int = 0
    """int8; versions 1+."""
    assignor_name: str | None = None
    """string; versions 1+; nullable; default null; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StreamsGroupDescribeResponse(base.Message, kw_only=True):
    """Response, api key 89; versions 0-1; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    groups: list[DescribedGroup] = []
    """[]DescribedGroup; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    KeyValue: ClassVar[type[KeyValue]] = KeyValue
    TopicInfo: ClassVar[type[TopicInfo]] = TopicInfo
    Endpoint: ClassVar[type[Endpoint]] = Endpoint
    TaskOffset: ClassVar[type[TaskOffset]] = TaskOffset
    TaskIds: ClassVar[type[TaskIds]] = TaskIds
    Assignment: ClassVar[type[Assignment]] = Assignment
    TopologyDescriptionNode: ClassVar[type[TopologyDescriptionNode]] = TopologyDescriptionNode
    TopologyDescriptionSubtopology: ClassVar[type[TopologyDescriptionSubtopology]] = TopologyDescriptionSubtopology
    TopologyDescriptionGlobalStore: ClassVar[type[TopologyDescriptionGlobalStore]] = TopologyDescriptionGlobalStore
    TopologyDescription: ClassVar[type[TopologyDescription]] = TopologyDescription
    Subtopology: ClassVar[type[Subtopology]] = Subtopology
    Topology: ClassVar[type[Topology]] = Topology
    Member: ClassVar[type[Member]] = Member
    DescribedGroup: ClassVar[type[DescribedGroup]] = DescribedGroup
    API_KEY: ClassVar[int | None] = 89
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "StreamsGroupDescribeResponse", "apiKey": 89,
  "validVersions": "0-1", "flexibleVersions": "0+",
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
    {"name": "Endpoint", "versions": "0+", "fields": [
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "uint16", "versions": "0+"}
    ]},
    {"name": "TaskOffset", "versions": "0+", "fields": [
      {"name": "SubtopologyId", "type": "string", "versions": "0+"},
      {"name": "Partition", "type": "int32", "versions": "0+"},
      {"name": "Offset", "type": "int64", "versions": "0+"}
    ]},
    {"name": "TaskIds", "versions": "0+", "fields": [
      {"name": "SubtopologyId", "type": "string", "versions": "0+"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]},
    {"name": "Assignment", "versions": "0+", "fields": [
      {"name": "ActiveTasks", "type": "[]TaskIds", "versions": "0+"},
      {"name": "StandbyTasks", "type": "[]TaskIds", "versions": "0+"},
      {"name": "WarmupTasks", "type": "[]TaskIds", "versions": "0+"}
    ]},
    {"name": "TopologyDescriptionNode", "versions": "1+", "fields": [
      {"name": "Name", "type": "string", "versions": "1+"},
      {"name": "NodeType", "type": "int8", "versions": "1+"},
      {"name": "SourceTopics", "type": "[]string", "versions": "1+", "entityType": "topicName"},
      {"name": "SinkTopic", "type": "string", "versions": "1+", "nullableVersions": "1+", "default": "null", "entityType": "topicName"},
      {"name": "Stores", "type": "[]string", "versions": "1+"},
      {"name": "Successors", "type": "[]string", "versions": "1+"}
    ]},
    {"name": "TopologyDescriptionSubtopology", "versions": "1+", "fields": [
      {"name": "SubtopologyId", "type": "string", "versions": "1+"},
      {"name": "Nodes", "type": "[]TopologyDescriptionNode", "versions": "1+"}
    ]},
    {"name": "TopologyDescriptionGlobalStore", "versions": "1+", "fields": [
      {"name": "Source", "type": "TopologyDescriptionNode", "versions": "1+"},
      {"name": "Processor", "type": "TopologyDescriptionNode", "versions": "1+"}
    ]},
    {"name": "TopologyDescription", "versions": "1+", "fields": [
      {"name": "Subtopologies", "type": "[]TopologyDescriptionSubtopology", "versions": "1+"},
      {"name": "GlobalStores", "type": "[]TopologyDescriptionGlobalStore", "versions": "1+"}
    ]}
  ],
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Groups", "type": "[]DescribedGroup", "versions": "0+", "fields": [
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
      {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
      {"name": "GroupState", "type": "string", "versions": "0+"},
      {"name": "GroupEpoch", "type": "int32", "versions": "0+"},
      {"name": "AssignmentEpoch", "type": "int32", "versions": "0+"},
      {"name": "Topology", "type": "Topology", "versions": "0+", "nullableVersions": "0+", "default": "null", "fields": [
        {"name": "Epoch", "type": "int32", "versions": "0+"},
        {"name": "Subtopologies", "type": "[]Subtopology", "versions": "0+", "nullableVersions": "0+", "default": "null", "fields": [
          {"name": "SubtopologyId", "type": "string", "versions": "0+"},
          {"name": "SourceTopics", "type": "[]string", "versions": "0+", "entityType": "topicName"},
          {"name": "RepartitionSinkTopics", "type": "[]string", "versions": "0+", "entityType": "topicName"},
          {"name": "StateChangelogTopics", "type": "[]TopicInfo", "versions": "0+"},
          {"name": "RepartitionSourceTopics", "type": "[]TopicInfo", "versions": "0+"}
        ]}
      ]},
      {"name": "Members", "type": "[]Member", "versions": "0+", "fields": [
        {"name": "MemberId", "type": "string", "versions": "0+"},
        {"name": "MemberEpoch", "type": "int32", "versions": "0+"},
        {"name": "InstanceId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
        {"name": "RackId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
        {"name": "ClientId", "type": "string", "versions": "0+"},
        {"name": "ClientHost", "type": "string", "versions": "0+"},
        {"name": "TopologyEpoch", "type": "int32", "versions": "0+"},
        {"name": "ProcessId", "type": "string", "versions": "0+"},
        {"name": "UserEndpoint", "type": "Endpoint", "versions": "0+", "nullableVersions": "0+", "default": "null"},
        {"name": "ClientTags", "type": "[]KeyValue", "versions": "0+"},
        {"name": "TaskOffsets", "type": "[]TaskOffset", "versions": "0+"},
        {"name": "TaskEndOffsets", "type": "[]TaskOffset", "versions": "0+"},
        {"name": "Assignment", "type": "Assignment", "versions": "0+"},
        {"name": "TargetAssignment", "type": "Assignment", "versions": "0+"},
        {"name": "IsClassic", "type": "bool", "versions": "0+"}
      ]},
      {"name": "AuthorizedOperations", "type": "int32", "versions": "0+", "default": "-2147483648"},
      {"name": "TopologyDescription", "type": "TopologyDescription", "versions": "1+", "nullableVersions": "1+", "default": "null"},
      {"name": "TopologyDescriptionStatus", "type": "int8", "versions": "1+"},
      {"name": "AssignorName", "type": "string", "versions": "1+", "nullableVersions": "1+", "default": "null", "ignorable": true}
    ]}
  ]
}
"""
