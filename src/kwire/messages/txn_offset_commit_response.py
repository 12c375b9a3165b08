"""Generated from TxnOffsetCommitResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["TxnOffsetCommitResponse", "TxnOffsetCommitResponsePartition", "TxnOffsetCommitResponseTopic"]


class TxnOffsetCommitResponsePartition(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TxnOffsetCommitResponseTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0-5; ignorable; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 6+; ignorable."""
    partitions: list[TxnOffsetCommitResponsePartition] = []
    """[]TxnOffsetCommitResponsePartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TxnOffsetCommitResponse(base.Message, kw_only=True):
    """Response, api key 28; versions 0-6; flexible 3+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    topics: list[TxnOffsetCommitResponseTopic] = []
    """[]TxnOffsetCommitResponseTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TxnOffsetCommitResponsePartition: ClassVar[type[TxnOffsetCommitResponsePartition]] = (
        TxnOffsetCommitResponsePartition
    )
    TxnOffsetCommitResponseTopic: ClassVar[type[TxnOffsetCommitResponseTopic]] = TxnOffsetCommitResponseTopic
    API_KEY: ClassVar[int | None] = 28
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 6)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "TxnOffsetCommitResponse", "apiKey": 28,
  "validVersions": "0-6", "flexibleVersions": "3+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Topics", "type": "[]TxnOffsetCommitResponseTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0-5", "ignorable": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "6+", "ignorable": true},
      {"name": "Partitions", "type": "[]TxnOffsetCommitResponsePartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
