"""Generated from DeleteRecordsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DeleteRecordsPartitionResult", "DeleteRecordsResponse", "DeleteRecordsTopicResult"]


class DeleteRecordsPartitionResult(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("partition_index",)

    partition_index: int = 0
    """int32; versions 0+; map key."""
    low_watermark: int = 0
    """int64; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("partitions")
class DeleteRecordsTopicResult(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key; topicName."""
    partitions: base.Keyed[DeleteRecordsPartitionResult] = base.keyed()
    """[]DeleteRecordsPartitionResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class DeleteRecordsResponse(base.Message, kw_only=True):
    """Response, api key 21; versions 0-2; flexible 2+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    topics: base.Keyed[DeleteRecordsTopicResult] = base.keyed()
    """[]DeleteRecordsTopicResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DeleteRecordsPartitionResult: ClassVar[type[DeleteRecordsPartitionResult]] = DeleteRecordsPartitionResult
    DeleteRecordsTopicResult: ClassVar[type[DeleteRecordsTopicResult]] = DeleteRecordsTopicResult
    API_KEY: ClassVar[int | None] = 21
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DeleteRecordsResponse", "apiKey": 21,
  "validVersions": "0-2", "flexibleVersions": "2+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Topics", "type": "[]DeleteRecordsTopicResult", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "Partitions", "type": "[]DeleteRecordsPartitionResult", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+", "mapKey": true},
        {"name": "LowWatermark", "type": "int64", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
