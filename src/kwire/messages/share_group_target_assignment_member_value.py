"""Generated from ShareGroupTargetAssignmentMemberValue.json, Kafka 4.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["ShareGroupTargetAssignmentMemberValue", "TopicPartition"]


class TopicPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ShareGroupTargetAssignmentMemberValue(base.Message, kw_only=True):
    """Coordinator-value, record type 13; versions 0; flexible 0+."""

    topic_partitions: list[TopicPartition] = []
    """[]TopicPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicPartition: ClassVar[type[TopicPartition]] = TopicPartition
    API_KEY: ClassVar[int | None] = 13
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "ShareGroupTargetAssignmentMemberValue", "apiKey": 13,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "TopicPartitions", "type": "[]TopicPartition", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]}
  ]
}
"""
