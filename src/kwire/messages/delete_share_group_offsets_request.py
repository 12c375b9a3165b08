"""Generated from DeleteShareGroupOffsetsRequest.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DeleteShareGroupOffsetsRequest", "DeleteShareGroupOffsetsRequestTopic"]


class DeleteShareGroupOffsetsRequestTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_name: str = ""
    """string; versions 0+; topicName."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DeleteShareGroupOffsetsRequest(base.Message, kw_only=True):
    """Request, api key 92; versions 0; flexible 0+; listeners broker."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []
    """[]DeleteShareGroupOffsetsRequestTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DeleteShareGroupOffsetsRequestTopic: ClassVar[type[DeleteShareGroupOffsetsRequestTopic]] = (
        DeleteShareGroupOffsetsRequestTopic
    )
    API_KEY: ClassVar[int | None] = 92
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DeleteShareGroupOffsetsRequest", "apiKey": 92,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "Topics", "type": "[]DeleteShareGroupOffsetsRequestTopic", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"}
    ]}
  ]
}
"""
