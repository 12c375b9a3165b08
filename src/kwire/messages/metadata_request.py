"""Generated from MetadataRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["MetadataRequest", "MetadataRequestTopic"]


class MetadataRequestTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 10+; ignorable."""
    name: str | None = ""
    """string; versions 0+; nullable in 10+; topicName."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class MetadataRequest(base.Message, kw_only=True):
    """Request, api key 3; versions 0-13; flexible 9+; listeners broker, zkBroker, controller."""

    topics: list[MetadataRequestTopic] | None = []
    """[]MetadataRequestTopic; versions 0+; nullable in 1+."""
    allow_auto_topic_creation: bool = True
    """bool; versions 4+; default true."""
    include_cluster_authorized_operations: bool = False
    """bool; versions 8-10."""
    include_topic_authorized_operations: bool = False
    """bool; versions 8+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    MetadataRequestTopic: ClassVar[type[MetadataRequestTopic]] = MetadataRequestTopic
    API_KEY: ClassVar[int | None] = 3
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 13)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(9, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "MetadataRequest", "apiKey": 3,
  "validVersions": "0-13", "flexibleVersions": "9+",
  "listeners": ["broker", "zkBroker", "controller"],
  "fields": [
    {"name": "Topics", "type": "[]MetadataRequestTopic", "versions": "0+", "nullableVersions": "1+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "10+", "ignorable": true},
      {"name": "Name", "type": "string", "versions": "0+", "nullableVersions": "10+", "entityType": "topicName"}
    ]},
    {"name": "AllowAutoTopicCreation", "type": "bool", "versions": "4+", "default": "true"},
    {"name": "IncludeClusterAuthorizedOperations", "type": "bool", "versions": "8-10"},
    {"name": "IncludeTopicAuthorizedOperations", "type": "bool", "versions": "8+"}
  ]
}
"""
