"""Generated from DescribeProducersRequest.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeProducersRequest", "TopicRequest"]


class TopicRequest(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key; topicName."""
    partition_indexes: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class DescribeProducersRequest(base.Message, kw_only=True):
    """Request, api key 61; versions 0; flexible 0+; listeners broker, zkBroker."""

    topics: base.Keyed[TopicRequest] = base.keyed()
    """[]TopicRequest; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicRequest: ClassVar[type[TopicRequest]] = TopicRequest
    API_KEY: ClassVar[int | None] = 61
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DescribeProducersRequest", "apiKey": 61,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "Topics", "type": "[]TopicRequest", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "PartitionIndexes", "type": "[]int32", "versions": "0+"}
    ]}
  ]
}
"""
