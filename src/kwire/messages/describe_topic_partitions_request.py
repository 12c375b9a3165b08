"""Generated from DescribeTopicPartitionsRequest.json, Kafka 3.8.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["Cursor", "DescribeTopicPartitionsRequest", "TopicRequest"]


class TopicRequest(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Cursor(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_name: str = ""
    """string; versions 0+; topicName."""
    partition_index: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeTopicPartitionsRequest(base.Message, kw_only=True):
    """Request, api key 75; versions 0; flexible 0+; listeners broker."""

    topics: list[TopicRequest] = []
    """[]TopicRequest; versions 0+."""
    response_partition_limit: int = 2000
    """int32; versions 0+; default 2000."""
    cursor: Cursor | None = None
    """Cursor; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicRequest: ClassVar[type[TopicRequest]] = TopicRequest
    Cursor: ClassVar[type[Cursor]] = Cursor
    API_KEY: ClassVar[int | None] = 75
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DescribeTopicPartitionsRequest", "apiKey": 75,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "Topics", "type": "[]TopicRequest", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"}
    ]},
    {"name": "ResponsePartitionLimit", "type": "int32", "versions": "0+", "default": "2000"},
    {"name": "Cursor", "type": "Cursor", "versions": "0+", "nullableVersions": "0+", "default": "null", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "PartitionIndex", "type": "int32", "versions": "0+"}
    ]}
  ]
}
"""
