"""Generated from DescribeProducersResponse.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeProducersResponse", "PartitionResponse", "ProducerState", "TopicResponse"]


class ProducerState(base.Struct, kw_only=True):
    """Versions 0+."""

    producer_id: int = 0
    """int64; versions 0+; producerId."""
    producer_epoch: int = 0
    """int32; versions 0+."""
    last_sequence: int = -1
    """int32; versions 0+; default -1."""
    last_timestamp: int = -1
    """int64; versions 0+; default -1."""
    coordinator_epoch: int = 0
    """int32; versions 0+."""
    current_txn_start_offset: int = -1
    """int64; versions 0+; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class PartitionResponse(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    active_producers: list[ProducerState] = []
    """[]ProducerState; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicResponse(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[PartitionResponse] = []
    """[]PartitionResponse; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeProducersResponse(base.Message, kw_only=True):
    """Response, api key 61; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    topics: list[TopicResponse] = []
    """[]TopicResponse; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ProducerState: ClassVar[type[ProducerState]] = ProducerState
    PartitionResponse: ClassVar[type[PartitionResponse]] = PartitionResponse
    TopicResponse: ClassVar[type[TopicResponse]] = TopicResponse
    API_KEY: ClassVar[int | None] = 61
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeProducersResponse", "apiKey": 61,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Topics", "type": "[]TopicResponse", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]PartitionResponse", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
        {"name": "ActiveProducers", "type": "[]ProducerState", "versions": "0+", "fields": [
          {"name": "ProducerId", "type": "int64", "versions": "0+", "entityType": "producerId"},
          {"name": "ProducerEpoch", "type": "int32", "versions": "0+"},
          {"name": "LastSequence", "type": "int32", "versions": "0+", "default": "-1"},
          {"name": "LastTimestamp", "type": "int64", "versions": "0+", "default": "-1"},
          {"name": "CoordinatorEpoch", "type": "int32", "versions": "0+"},
          {"name": "CurrentTxnStartOffset", "type": "int64", "versions": "0+", "default": "-1"}
        ]}
      ]}
    ]}
  ]
}
"""
