"""Generated from ReadShareGroupStateSummaryResponse.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["PartitionResult", "ReadShareGroupStateSummaryResponse", "ReadStateSummaryResult"]


class PartitionResult(base.Struct, kw_only=True):
    """Versions 0+."""

    partition: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    state_epoch: int = 0
    """int32; versions 0+."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    start_offset: int = 0
    """int64; versions 0+."""
    delivery_complete_count: int = -1
    """int32; versions 1+; default -1; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ReadStateSummaryResult(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partitions: list[PartitionResult] = []
    """[]PartitionResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ReadShareGroupStateSummaryResponse(base.Message, kw_only=True):
    """Response, api key 87; versions 0-1; flexible 0+."""

    results: list[ReadStateSummaryResult] = []
    """[]ReadStateSummaryResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    PartitionResult: ClassVar[type[PartitionResult]] = PartitionResult
    ReadStateSummaryResult: ClassVar[type[ReadStateSummaryResult]] = ReadStateSummaryResult
    API_KEY: ClassVar[int | None] = 87
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ReadShareGroupStateSummaryResponse", "apiKey": 87,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "fields": [
    {"name": "Results", "type": "[]ReadStateSummaryResult", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "Partitions", "type": "[]PartitionResult", "versions": "0+", "fields": [
        {"name": "Partition", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
        {"name": "StateEpoch", "type": "int32", "versions": "0+"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "0+"},
        {"name": "StartOffset", "type": "int64", "versions": "0+"},
        {"name": "DeliveryCompleteCount", "type": "int32", "versions": "1+", "default": "-1", "ignorable": true}
      ]}
    ]}
  ]
}
"""
