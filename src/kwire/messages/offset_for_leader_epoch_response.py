"""Generated from OffsetForLeaderEpochResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["EpochEndOffset", "OffsetForLeaderEpochResponse", "OffsetForLeaderTopicResult"]


class EpochEndOffset(base.Struct, kw_only=True):
    """Versions 0+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("partitionIndex", "partition", 0, 3),)

    error_code: int = 0
    """int16; versions 0+."""
    partition: int = 0
    """int32; versions 0+."""
    leader_epoch: int = -1
    """int32; versions 1+; default -1; ignorable."""
    end_offset: int = -1
    """int64; versions 0+; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetForLeaderTopicResult(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic",)

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("name", "topic", 0, 3),)

    topic: str = ""
    """string; versions 0+; map key; topicName."""
    partitions: list[EpochEndOffset] = []
    """[]EpochEndOffset; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class OffsetForLeaderEpochResponse(base.Message, kw_only=True):
    """Response, api key 23; versions 0-4; flexible 4+."""

    throttle_time_ms: int = 0
    """int32; versions 2+; ignorable."""
    topics: base.Keyed[OffsetForLeaderTopicResult] = base.keyed()
    """[]OffsetForLeaderTopicResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    EpochEndOffset: ClassVar[type[EpochEndOffset]] = EpochEndOffset
    OffsetForLeaderTopicResult: ClassVar[type[OffsetForLeaderTopicResult]] = OffsetForLeaderTopicResult
    API_KEY: ClassVar[int | None] = 23
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "OffsetForLeaderEpochResponse", "apiKey": 23,
  "validVersions": "0-4", "flexibleVersions": "4+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "2+", "ignorable": true},
    {"name": "Topics", "type": "[]OffsetForLeaderTopicResult", "versions": "0+", "fields": [
      {"name": "Topic", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "Partitions", "type": "[]EpochEndOffset", "versions": "0+", "fields": [
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "Partition", "type": "int32", "versions": "0+"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "1+", "default": "-1", "ignorable": true},
        {"name": "EndOffset", "type": "int64", "versions": "0+", "default": "-1"}
      ]}
    ]}
  ]
}
"""
