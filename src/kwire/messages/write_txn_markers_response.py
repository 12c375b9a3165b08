"""Generated from WriteTxnMarkersResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = [
    "WritableTxnMarkerPartitionResult",
    "WritableTxnMarkerResult",
    "WritableTxnMarkerTopicResult",
    "WriteTxnMarkersResponse",
]


class WritableTxnMarkerPartitionResult(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class WritableTxnMarkerTopicResult(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[WritableTxnMarkerPartitionResult] = []
    """[]WritableTxnMarkerPartitionResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class WritableTxnMarkerResult(base.Struct, kw_only=True):
    """Versions 0+."""

    producer_id: int = 0
    """int64; versions 0+; producerId."""
    topics: list[WritableTxnMarkerTopicResult] = []
    """[]WritableTxnMarkerTopicResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class WriteTxnMarkersResponse(base.Message, kw_only=True):
    """Response, api key 27; versions 0-2; flexible 1+."""

    markers: list[WritableTxnMarkerResult] = []
    """[]WritableTxnMarkerResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    WritableTxnMarkerPartitionResult: ClassVar[type[WritableTxnMarkerPartitionResult]] = (
        WritableTxnMarkerPartitionResult
    )
    WritableTxnMarkerTopicResult: ClassVar[type[WritableTxnMarkerTopicResult]] = WritableTxnMarkerTopicResult
    WritableTxnMarkerResult: ClassVar[type[WritableTxnMarkerResult]] = WritableTxnMarkerResult
    API_KEY: ClassVar[int | None] = 27
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(1, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "WriteTxnMarkersResponse", "apiKey": 27,
  "validVersions": "0-2", "flexibleVersions": "1+",
  "fields": [
    {"name": "Markers", "type": "[]WritableTxnMarkerResult", "versions": "0+", "fields": [
      {"name": "ProducerId", "type": "int64", "versions": "0+", "entityType": "producerId"},
      {"name": "Topics", "type": "[]WritableTxnMarkerTopicResult", "versions": "0+", "fields": [
        {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
        {"name": "Partitions", "type": "[]WritableTxnMarkerPartitionResult", "versions": "0+", "fields": [
          {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
          {"name": "ErrorCode", "type": "int16", "versions": "0+"}
        ]}
      ]}
    ]}
  ]
}
"""
