"""Generated from DeleteRecordsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DeleteRecordsPartition", "DeleteRecordsRequest", "DeleteRecordsTopic"]


class DeleteRecordsPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    offset: int = 0
    """int64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DeleteRecordsTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[DeleteRecordsPartition] = []
    """[]DeleteRecordsPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DeleteRecordsRequest(base.Message, kw_only=True):
    """Request, api key 21; versions 0-2; flexible 2+; listeners broker, zkBroker."""

    topics: list[DeleteRecordsTopic] = []
    """[]DeleteRecordsTopic; versions 0+."""
    timeout_ms: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DeleteRecordsPartition: ClassVar[type[DeleteRecordsPartition]] = DeleteRecordsPartition
    DeleteRecordsTopic: ClassVar[type[DeleteRecordsTopic]] = DeleteRecordsTopic
    API_KEY: ClassVar[int | None] = 21
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DeleteRecordsRequest", "apiKey": 21,
  "validVersions": "0-2", "flexibleVersions": "2+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "Topics", "type": "[]DeleteRecordsTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]DeleteRecordsPartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "Offset", "type": "int64", "versions": "0+"}
      ]}
    ]},
    {"name": "TimeoutMs", "type": "int32", "versions": "0+"}
  ]
}
"""
