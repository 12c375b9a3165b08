"""Generated from StopReplicaResponse.json, Kafka 2.0.1 to 3.9.2, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["StopReplicaPartitionError", "StopReplicaResponse"]


class StopReplicaPartitionError(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_name: str = ""
    """string; versions 0+; topicName."""
    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StopReplicaResponse(base.Message, kw_only=True):
    """Response, api key 5; versions 0-4; flexible 2+."""

    error_code: int = 0
    """int16; versions 0+."""
    partition_errors: list[StopReplicaPartitionError] = []
    """[]StopReplicaPartitionError; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    StopReplicaPartitionError: ClassVar[type[StopReplicaPartitionError]] = StopReplicaPartitionError
    API_KEY: ClassVar[int | None] = 5
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("partitions", "partition_errors", 0, 1),)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "StopReplicaResponse", "apiKey": 5,
  "validVersions": "0-4", "flexibleVersions": "2+",
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "PartitionErrors", "type": "[]StopReplicaPartitionError", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
      {"name": "ErrorCode", "type": "int16", "versions": "0+"}
    ]}
  ]
}
"""
