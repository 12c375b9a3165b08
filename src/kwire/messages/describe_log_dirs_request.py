"""Generated from DescribeLogDirsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribableLogDirTopic", "DescribeLogDirsRequest"]


class DescribableLogDirTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic",)

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("partitionIndex", "partitions", 0, 2),)

    topic: str = ""
    """string; versions 0+; map key; topicName."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class DescribeLogDirsRequest(base.Message, kw_only=True):
    """Request, api key 35; versions 0-5; flexible 2+; deprecated 0; listeners broker, zkBroker."""

    topics: base.NullableKeyed[DescribableLogDirTopic] = base.keyed()
    """[]DescribableLogDirTopic; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DescribableLogDirTopic: ClassVar[type[DescribableLogDirTopic]] = DescribableLogDirTopic
    API_KEY: ClassVar[int | None] = 35
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DescribeLogDirsRequest", "apiKey": 35,
  "validVersions": "0-5", "deprecatedVersions": "0", "flexibleVersions": "2+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "Topics", "type": "[]DescribableLogDirTopic", "versions": "0+", "nullableVersions": "0+", "fields": [
      {"name": "Topic", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]}
  ]
}
"""
