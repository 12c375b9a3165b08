"""Generated from WriteTxnMarkersRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["WritableTxnMarker", "WritableTxnMarkerTopic", "WriteTxnMarkersRequest"]


class WritableTxnMarkerTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partition_indexes: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class WritableTxnMarker(base.Struct, kw_only=True):
    """Versions 0+."""

    producer_id: int = 0
    """int64; versions 0+; producerId."""
    producer_epoch: int = 0
    """int16; versions 0+."""
    transaction_result: bool = False
    """bool; versions 0+."""
    topics: list[WritableTxnMarkerTopic] = []
    """[]WritableTxnMarkerTopic; versions 0+."""
    coordinator_epoch: int = 0
    """int32; versions 0+."""
    transaction_version: int = 0
    """int8; versions 2+; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class WriteTxnMarkersRequest(base.Message, kw_only=True):
    """Request, api key 27; versions 0-2; flexible 1+; listeners broker, zkBroker."""

    markers: list[WritableTxnMarker] = []
    """[]WritableTxnMarker; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    WritableTxnMarkerTopic: ClassVar[type[WritableTxnMarkerTopic]] = WritableTxnMarkerTopic
    WritableTxnMarker: ClassVar[type[WritableTxnMarker]] = WritableTxnMarker
    API_KEY: ClassVar[int | None] = 27
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(1, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "WriteTxnMarkersRequest", "apiKey": 27,
  "validVersions": "0-2", "flexibleVersions": "1+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "Markers", "type": "[]WritableTxnMarker", "versions": "0+", "fields": [
      {"name": "ProducerId", "type": "int64", "versions": "0+", "entityType": "producerId"},
      {"name": "ProducerEpoch", "type": "int16", "versions": "0+"},
      {"name": "TransactionResult", "type": "bool", "versions": "0+"},
      {"name": "Topics", "type": "[]WritableTxnMarkerTopic", "versions": "0+", "fields": [
        {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
        {"name": "PartitionIndexes", "type": "[]int32", "versions": "0+"}
      ]},
      {"name": "CoordinatorEpoch", "type": "int32", "versions": "0+"},
      {"name": "TransactionVersion", "type": "int8", "versions": "2+", "ignorable": true}
    ]}
  ]
}
"""
