"""Generated from DeleteTopicsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["DeletableTopicResult", "DeleteTopicsResponse"]


class DeletableTopicResult(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str | None = ""
    """string; versions 0+; nullable in 6+; map key; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 6+; ignorable."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 5+; nullable; default null; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("responses")
class DeleteTopicsResponse(base.Message, kw_only=True):
    """Response, api key 20; versions 0-6; flexible 4+."""

    throttle_time_ms: int = 0
    """int32; versions 1+; ignorable."""
    responses: base.Keyed[DeletableTopicResult] = base.keyed()
    """[]DeletableTopicResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DeletableTopicResult: ClassVar[type[DeletableTopicResult]] = DeletableTopicResult
    API_KEY: ClassVar[int | None] = 20
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 6)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DeleteTopicsResponse", "apiKey": 20,
  "validVersions": "0-6", "flexibleVersions": "4+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+", "ignorable": true},
    {"name": "Responses", "type": "[]DeletableTopicResult", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "nullableVersions": "6+", "mapKey": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "6+", "ignorable": true},
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "5+", "nullableVersions": "5+", "default": "null", "ignorable": true}
    ]}
  ]
}
"""
