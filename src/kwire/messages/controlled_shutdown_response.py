"""Generated from ControlledShutdownResponse.json, Kafka 2.0.1 to 3.9.2, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ControlledShutdownResponse", "RemainingPartition"]


class RemainingPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic_name", "partition_index")

    topic_name: str = ""
    """string; versions 0+; map key; topicName."""
    partition_index: int = 0
    """int32; versions 0+; map key."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("remaining_partitions")
class ControlledShutdownResponse(base.Message, kw_only=True):
    """Response, api key 7; versions 0-3; flexible 3+."""

    error_code: int = 0
    """int16; versions 0+."""
    remaining_partitions: base.Keyed[RemainingPartition] = base.keyed()
    """[]RemainingPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    RemainingPartition: ClassVar[type[RemainingPartition]] = RemainingPartition
    API_KEY: ClassVar[int | None] = 7
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ControlledShutdownResponse", "apiKey": 7,
  "validVersions": "0-3", "flexibleVersions": "3+",
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "RemainingPartitions", "type": "[]RemainingPartition", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "PartitionIndex", "type": "int32", "versions": "0+", "mapKey": true}
    ]}
  ]
}
"""
