"""Generated from StreamsGroupTopologyValue.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["CopartitionGroup", "StreamsGroupTopologyValue", "Subtopology", "TopicConfig", "TopicInfo"]


class TopicConfig(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    key: str = ""
    """string; versions 0+."""
    value: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicInfo(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    name: str = ""
    """string; versions 0+."""
    partitions: int = 0
    """int32; versions 0+."""
    replication_factor: int = 0
    """int16; versions 0+."""
    topic_configs: list[TopicConfig] = []
    """[]TopicConfig; versions 0+."""
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
    """[]string; versions 0+."""
    source_topic_regex: list[str] = []
    """[]string; versions 0+."""
    state_changelog_topics: list[TopicInfo] = []
    """[]TopicInfo; versions 0+."""
    repartition_sink_topics: list[str] = []
    """[]string; versions 0+."""
    repartition_source_topics: list[TopicInfo] = []
    """[]TopicInfo; versions 0+."""
    copartition_groups: list[CopartitionGroup] = []
    """[]CopartitionGroup; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StreamsGroupTopologyValue(base.Message, kw_only=True):
    """Coordinator-value, record type 23; versions 0; flexible 0+."""

    epoch: int = 0
    """int32; versions 0+."""
    subtopologies: list[Subtopology] = []
    """[]Subtopology; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicConfig: ClassVar[type[TopicConfig]] = TopicConfig
    TopicInfo: ClassVar[type[TopicInfo]] = TopicInfo
    CopartitionGroup: ClassVar[type[CopartitionGroup]] = CopartitionGroup
    Subtopology: ClassVar[type[Subtopology]] = Subtopology
    API_KEY: ClassVar[int | None] = 23
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "StreamsGroupTopologyValue", "apiKey": 23,
  "validVersions": "0", "flexibleVersions": "0+",
  "commonStructs": [
    {"name": "TopicConfig", "versions": "0+", "fields": [
      {"name": "key", "type": "string", "versions": "0+"},
      {"name": "value", "type": "string", "versions": "0+"}
    ]},
    {"name": "TopicInfo", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+"},
      {"name": "Partitions", "type": "int32", "versions": "0+"},
      {"name": "ReplicationFactor", "type": "int16", "versions": "0+"},
      {"name": "TopicConfigs", "type": "[]TopicConfig", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "Epoch", "type": "int32", "versions": "0+"},
    {"name": "Subtopologies", "type": "[]Subtopology", "versions": "0+", "fields": [
      {"name": "SubtopologyId", "type": "string", "versions": "0+"},
      {"name": "SourceTopics", "type": "[]string", "versions": "0+"},
      {"name": "SourceTopicRegex", "type": "[]string", "versions": "0+"},
      {"name": "StateChangelogTopics", "type": "[]TopicInfo", "versions": "0+"},
      {"name": "RepartitionSinkTopics", "type": "[]string", "versions": "0+"},
      {"name": "RepartitionSourceTopics", "type": "[]TopicInfo", "versions": "0+"},
      {"name": "CopartitionGroups", "type": "[]CopartitionGroup", "versions": "0+", "fields": [
        {"name": "SourceTopics", "type": "[]int16", "versions": "0+"},
        {"name": "SourceTopicRegex", "type": "[]int16", "versions": "0+"},
        {"name": "RepartitionSourceTopics", "type": "[]int16", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
