"""Generated from DeleteTopicsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["DeleteTopicState", "DeleteTopicsRequest"]


class DeleteTopicState(base.Struct, kw_only=True):
    """Versions 6+."""

    name: str | None = None
    """string; versions 6+; nullable; default null; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 6+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DeleteTopicsRequest(base.Message, kw_only=True):
    """Request, api key 20; versions 0-6; flexible 4+; deprecated 0; listeners broker, controller, zkBroker."""

    topics: list[DeleteTopicState] = []
    """[]DeleteTopicState; versions 6+."""
    topic_names: list[str] = []
    """[]string; versions 0-5; ignorable; topicName."""
    timeout_ms: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DeleteTopicState: ClassVar[type[DeleteTopicState]] = DeleteTopicState
    API_KEY: ClassVar[int | None] = 20
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 6)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DeleteTopicsRequest", "apiKey": 20,
  "validVersions": "0-6", "deprecatedVersions": "0", "flexibleVersions": "4+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Topics", "type": "[]DeleteTopicState", "versions": "6+", "fields": [
      {"name": "Name", "type": "string", "versions": "6+", "nullableVersions": "6+", "default": "null", "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "6+"}
    ]},
    {"name": "TopicNames", "type": "[]string", "versions": "0-5", "ignorable": true, "entityType": "topicName"},
    {"name": "TimeoutMs", "type": "int32", "versions": "0+"}
  ]
}
"""
