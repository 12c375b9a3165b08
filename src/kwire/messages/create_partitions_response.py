"""Generated from CreatePartitionsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["CreatePartitionsResponse", "CreatePartitionsTopicResult"]


class CreatePartitionsTopicResult(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class CreatePartitionsResponse(base.Message, kw_only=True):
    """Response, api key 37; versions 0-3; flexible 2+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    results: list[CreatePartitionsTopicResult] = []
    """[]CreatePartitionsTopicResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    CreatePartitionsTopicResult: ClassVar[type[CreatePartitionsTopicResult]] = CreatePartitionsTopicResult
    API_KEY: ClassVar[int | None] = 37
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "CreatePartitionsResponse", "apiKey": 37,
  "validVersions": "0-3", "flexibleVersions": "2+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Results", "type": "[]CreatePartitionsTopicResult", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"}
    ]}
  ]
}
"""
