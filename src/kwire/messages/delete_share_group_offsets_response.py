"""Generated from DeleteShareGroupOffsetsResponse.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["DeleteShareGroupOffsetsResponse", "DeleteShareGroupOffsetsResponseTopic"]


class DeleteShareGroupOffsetsResponseTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_name: str = ""
    """string; versions 0+; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DeleteShareGroupOffsetsResponse(base.Message, kw_only=True):
    """Response, api key 92; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []
    """[]DeleteShareGroupOffsetsResponseTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DeleteShareGroupOffsetsResponseTopic: ClassVar[type[DeleteShareGroupOffsetsResponseTopic]] = (
        DeleteShareGroupOffsetsResponseTopic
    )
    API_KEY: ClassVar[int | None] = 92
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DeleteShareGroupOffsetsResponse", "apiKey": 92,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "Responses", "type": "[]DeleteShareGroupOffsetsResponseTopic", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"}
    ]}
  ]
}
"""
