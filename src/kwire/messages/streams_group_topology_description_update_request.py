"""Generated from StreamsGroupTopologyDescriptionUpdateRequest.json, Kafka 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = [
    "StreamsGroupTopologyDescriptionUpdateRequest",
    "TopologyDescription",
    "TopologyDescriptionGlobalStore",
    "TopologyDescriptionNode",
    "TopologyDescriptionSubtopology",
]


class TopologyDescriptionNode(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    name: str = ""
    """string; versions 0+."""
    node_type: int = 0
    """int8; versions 0+."""
    source_topics: list[str] = []
    """[]string; versions 0+; topicName."""
    sink_topic: str | None = None
    """string; versions 0+; nullable; default null; topicName."""
    stores: list[str] = []
    """[]string; versions 0+."""
    successors: list[str] = []
    """[]string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopologyDescriptionSubtopology(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    subtopology_id: str = ""
    """string; versions 0+."""
    nodes: list[TopologyDescriptionNode] = []
    """[]TopologyDescriptionNode; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopologyDescriptionGlobalStore(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    source: TopologyDescriptionNode = msgspec.field(default_factory=TopologyDescriptionNode)
    """TopologyDescriptionNode; versions 0+."""
    processor: TopologyDescriptionNode = msgspec.field(default_factory=TopologyDescriptionNode)
    """TopologyDescriptionNode; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopologyDescription(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    subtopologies: list[TopologyDescriptionSubtopology] = []
    """[]TopologyDescriptionSubtopology; versions 0+."""
    global_stores: list[TopologyDescriptionGlobalStore] = []
    """[]TopologyDescriptionGlobalStore; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StreamsGroupTopologyDescriptionUpdateRequest(base.Message, kw_only=True):
    """Request, api key 93; versions 0; flexible 0+; listeners broker."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    member_id: str = ""
    """string; versions 0+."""
    topology_epoch: int = 0
    """int32; versions 0+."""
    topology_description: TopologyDescription = msgspec.field(default_factory=TopologyDescription)
    """TopologyDescription; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopologyDescriptionNode: ClassVar[type[TopologyDescriptionNode]] = TopologyDescriptionNode
    TopologyDescriptionSubtopology: ClassVar[type[TopologyDescriptionSubtopology]] = TopologyDescriptionSubtopology
    TopologyDescriptionGlobalStore: ClassVar[type[TopologyDescriptionGlobalStore]] = TopologyDescriptionGlobalStore
    TopologyDescription: ClassVar[type[TopologyDescription]] = TopologyDescription
    API_KEY: ClassVar[int | None] = 93
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "StreamsGroupTopologyDescriptionUpdateRequest", "apiKey": 93,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "commonStructs": [
    {"name": "TopologyDescriptionNode", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+"},
      {"name": "NodeType", "type": "int8", "versions": "0+"},
      {"name": "SourceTopics", "type": "[]string", "versions": "0+", "entityType": "topicName"},
      {"name": "SinkTopic", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null", "entityType": "topicName"},
      {"name": "Stores", "type": "[]string", "versions": "0+"},
      {"name": "Successors", "type": "[]string", "versions": "0+"}
    ]},
    {"name": "TopologyDescriptionSubtopology", "versions": "0+", "fields": [
      {"name": "SubtopologyId", "type": "string", "versions": "0+"},
      {"name": "Nodes", "type": "[]TopologyDescriptionNode", "versions": "0+"}
    ]},
    {"name": "TopologyDescriptionGlobalStore", "versions": "0+", "fields": [
      {"name": "Source", "type": "TopologyDescriptionNode", "versions": "0+"},
      {"name": "Processor", "type": "TopologyDescriptionNode", "versions": "0+"}
    ]},
    {"name": "TopologyDescription", "versions": "0+", "fields": [
      {"name": "Subtopologies", "type": "[]TopologyDescriptionSubtopology", "versions": "0+"},
      {"name": "GlobalStores", "type": "[]TopologyDescriptionGlobalStore", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "MemberId", "type": "string", "versions": "0+"},
    {"name": "TopologyEpoch", "type": "int32", "versions": "0+"},
    {"name": "TopologyDescription", "type": "TopologyDescription", "versions": "0+"}
  ]
}
"""
