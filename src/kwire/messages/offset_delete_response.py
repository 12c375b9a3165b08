"""Generated from OffsetDeleteResponse.json, Kafka 2.4.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["OffsetDeleteResponse", "OffsetDeleteResponsePartition", "OffsetDeleteResponseTopic"]


class OffsetDeleteResponsePartition(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("partition_index",)

    partition_index: int = 0
    """int32; versions 0+; map key."""
    error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("partitions")
class OffsetDeleteResponseTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key; topicName."""
    partitions: base.Keyed[OffsetDeleteResponsePartition] = base.keyed()
    """[]OffsetDeleteResponsePartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class OffsetDeleteResponse(base.Message, kw_only=True):
    """Response, api key 47; versions 0; flexible none."""

    error_code: int = 0
    """int16; versions 0+."""
    throttle_time_ms: int = 0
    """int32; versions 0+; ignorable."""
    topics: base.Keyed[OffsetDeleteResponseTopic] = base.keyed()
    """[]OffsetDeleteResponseTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    OffsetDeleteResponsePartition: ClassVar[type[OffsetDeleteResponsePartition]] = OffsetDeleteResponsePartition
    OffsetDeleteResponseTopic: ClassVar[type[OffsetDeleteResponseTopic]] = OffsetDeleteResponseTopic
    API_KEY: ClassVar[int | None] = 47
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "OffsetDeleteResponse", "apiKey": 47,
  "validVersions": "0", "flexibleVersions": "none",
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+", "ignorable": true},
    {"name": "Topics", "type": "[]OffsetDeleteResponseTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "Partitions", "type": "[]OffsetDeleteResponsePartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+", "mapKey": true},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
