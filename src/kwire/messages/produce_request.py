"""Generated from ProduceRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["PartitionProduceData", "ProduceRequest", "TopicProduceData"]


class PartitionProduceData(base.Struct, kw_only=True):
    """Versions 0+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("partitionIndex", "index", 0, 8),)

    index: int = 0
    """int32; versions 0+."""
    records: bytes | None = None
    """records; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicProduceData(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name", "topic_id")

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("partitions", "partition_data", 0, 8),)

    name: str = ""
    """string; versions 0-12; ignorable; map key; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 13+; ignorable; map key."""
    partition_data: list[PartitionProduceData] = []
    """[]PartitionProduceData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topic_data")
class ProduceRequest(base.Message, kw_only=True):
    """Request, api key 0; versions 0-13; flexible 9+; deprecated 0-2; listeners broker, zkBroker."""

    transactional_id: str | None = None
    """string; versions 3+; nullable; default null; transactionalId."""
    acks: int = 0
    """int16; versions 0+."""
    timeout_ms: int = 0
    """int32; versions 0+."""
    topic_data: base.Keyed[TopicProduceData] = base.keyed()
    """[]TopicProduceData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    PartitionProduceData: ClassVar[type[PartitionProduceData]] = PartitionProduceData
    TopicProduceData: ClassVar[type[TopicProduceData]] = TopicProduceData
    API_KEY: ClassVar[int | None] = 0
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 13)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(9, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("topics", "topic_data", 0, 8),)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ProduceRequest", "apiKey": 0,
  "validVersions": "0-13", "deprecatedVersions": "0-2", "flexibleVersions": "9+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "TransactionalId", "type": "string", "versions": "3+", "nullableVersions": "3+", "default": "null", "entityType": "transactionalId"},
    {"name": "Acks", "type": "int16", "versions": "0+"},
    {"name": "TimeoutMs", "type": "int32", "versions": "0+"},
    {"name": "TopicData", "type": "[]TopicProduceData", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0-12", "ignorable": true, "mapKey": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "13+", "ignorable": true, "mapKey": true},
      {"name": "PartitionData", "type": "[]PartitionProduceData", "versions": "0+", "fields": [
        {"name": "Index", "type": "int32", "versions": "0+"},
        {"name": "Records", "type": "records", "versions": "0+", "nullableVersions": "0+"}
      ]}
    ]}
  ]
}
"""
