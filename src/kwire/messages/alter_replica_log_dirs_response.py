"""Generated from AlterReplicaLogDirsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterReplicaLogDirPartitionResult", "AlterReplicaLogDirTopicResult", "AlterReplicaLogDirsResponse"]


class AlterReplicaLogDirPartitionResult(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterReplicaLogDirTopicResult(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[AlterReplicaLogDirPartitionResult] = []
    """[]AlterReplicaLogDirPartitionResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterReplicaLogDirsResponse(base.Message, kw_only=True):
    """Response, api key 34; versions 0-2; flexible 2+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    results: list[AlterReplicaLogDirTopicResult] = []
    """[]AlterReplicaLogDirTopicResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AlterReplicaLogDirPartitionResult: ClassVar[type[AlterReplicaLogDirPartitionResult]] = (
        AlterReplicaLogDirPartitionResult
    )
    AlterReplicaLogDirTopicResult: ClassVar[type[AlterReplicaLogDirTopicResult]] = AlterReplicaLogDirTopicResult
    API_KEY: ClassVar[int | None] = 34
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "AlterReplicaLogDirsResponse", "apiKey": 34,
  "validVersions": "0-2", "flexibleVersions": "2+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Results", "type": "[]AlterReplicaLogDirTopicResult", "versions": "0+", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]AlterReplicaLogDirPartitionResult", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
