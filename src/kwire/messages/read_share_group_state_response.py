"""Generated from ReadShareGroupStateResponse.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["PartitionResult", "ReadShareGroupStateResponse", "ReadStateResult", "StateBatch"]


class StateBatch(base.Struct, kw_only=True):
    """Versions 0+."""

    first_offset: int = 0
    """int64; versions 0+."""
    last_offset: int = 0
    """int64; versions 0+."""
    delivery_state: int = 0
    """int8; versions 0+."""
    delivery_count: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


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
    start_offset: int = 0
    """int64; versions 0+."""
    state_batches: list[StateBatch] = []
    """[]StateBatch; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ReadStateResult(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partitions: list[PartitionResult] = []
    """[]PartitionResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ReadShareGroupStateResponse(base.Message, kw_only=True):
    """Response, api key 84; versions 0; flexible 0+."""

    results: list[ReadStateResult] = []
    """[]ReadStateResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    StateBatch: ClassVar[type[StateBatch]] = StateBatch
    PartitionResult: ClassVar[type[PartitionResult]] = PartitionResult
    ReadStateResult: ClassVar[type[ReadStateResult]] = ReadStateResult
    API_KEY: ClassVar[int | None] = 84
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ReadShareGroupStateResponse", "apiKey": 84,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Results", "type": "[]ReadStateResult", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "Partitions", "type": "[]PartitionResult", "versions": "0+", "fields": [
        {"name": "Partition", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
        {"name": "StateEpoch", "type": "int32", "versions": "0+"},
        {"name": "StartOffset", "type": "int64", "versions": "0+"},
        {"name": "StateBatches", "type": "[]StateBatch", "versions": "0+", "fields": [
          {"name": "FirstOffset", "type": "int64", "versions": "0+"},
          {"name": "LastOffset", "type": "int64", "versions": "0+"},
          {"name": "DeliveryState", "type": "int8", "versions": "0+"},
          {"name": "DeliveryCount", "type": "int16", "versions": "0+"}
        ]}
      ]}
    ]}
  ]
}
"""
