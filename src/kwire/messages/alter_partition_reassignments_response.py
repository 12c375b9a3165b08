"""Generated from AlterPartitionReassignmentsResponse.json, Kafka 2.4.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterPartitionReassignmentsResponse", "ReassignablePartitionResponse", "ReassignableTopicResponse"]


class ReassignablePartitionResponse(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ReassignableTopicResponse(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[ReassignablePartitionResponse] = []
    """[]ReassignablePartitionResponse; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterPartitionReassignmentsResponse(base.Message, kw_only=True):
    """Response, api key 45; versions 0-1; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    allow_replication_factor_change: bool = True
    """bool; versions 1+; default true; ignorable."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    responses: list[ReassignableTopicResponse] = []
    """[]ReassignableTopicResponse; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ReassignablePartitionResponse: ClassVar[type[ReassignablePartitionResponse]] = ReassignablePartitionResponse
    ReassignableTopicResponse: ClassVar[type[ReassignableTopicResponse]] = ReassignableTopicResponse
    API_KEY: ClassVar[int | None] = 45
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "AlterPartitionReassignmentsResponse", "apiKey": 45,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "AllowReplicationFactorChange", "type": "bool", "versions": "1+", "default": "true", "ignorable": true},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "Responses", "type": "[]ReassignableTopicResponse", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]ReassignablePartitionResponse", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"}
      ]}
    ]}
  ]
}
"""
