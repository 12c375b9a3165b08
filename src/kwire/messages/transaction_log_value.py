"""Generated from TransactionLogValue.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["PartitionsSchema", "TransactionLogValue"]


class PartitionsSchema(base.Struct, kw_only=True):
    """Versions 0+."""

    topic: str = ""
    """string; versions 0+."""
    partition_ids: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TransactionLogValue(base.Message, kw_only=True):
    """Coordinator-value, record type 0; versions 0-1; flexible 1+."""

    producer_id: int = 0
    """int64; versions 0+."""
    producer_epoch: int = 0
    """int16; versions 0+."""
    transaction_timeout_ms: int = 0
    """int32; versions 0+."""
    transaction_status: int = 0
    """int8; versions 0+."""
    transaction_partitions: list[PartitionsSchema] | None = []
    """[]PartitionsSchema; versions 0+; nullable."""
    transaction_last_update_timestamp_ms: int = 0
    """int64; versions 0+."""
    transaction_start_timestamp_ms: int = 0
    """int64; versions 0+."""
    previous_producer_id: int = -1
    """int64; versions 1+; tag 0; default -1."""
    next_producer_id: int = -1
    """int64; versions 1+; tag 1; default -1."""
    client_transaction_version: int = 0
    """int16; versions 1+; tag 2."""
    next_producer_epoch: int = -1
    """int16; versions 1+; tag 3; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    PartitionsSchema: ClassVar[type[PartitionsSchema]] = PartitionsSchema
    API_KEY: ClassVar[int | None] = 0
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(1, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "TransactionLogValue", "apiKey": 0,
  "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    {"name": "ProducerId", "type": "int64", "versions": "0+"},
    {"name": "PreviousProducerId", "type": "int64", "versions": "1+", "tag": 0, "taggedVersions": "1+", "default": "-1"},
    {"name": "NextProducerId", "type": "int64", "versions": "1+", "tag": 1, "taggedVersions": "1+", "default": "-1"},
    {"name": "ProducerEpoch", "type": "int16", "versions": "0+"},
    {"name": "NextProducerEpoch", "type": "int16", "versions": "1+", "tag": 3, "taggedVersions": "1+", "default": "-1"},
    {"name": "TransactionTimeoutMs", "type": "int32", "versions": "0+"},
    {"name": "TransactionStatus", "type": "int8", "versions": "0+"},
    {"name": "TransactionPartitions", "type": "[]PartitionsSchema", "versions": "0+", "nullableVersions": "0+", "fields": [
      {"name": "Topic", "type": "string", "versions": "0+"},
      {"name": "PartitionIds", "type": "[]int32", "versions": "0+"}
    ]},
    {"name": "TransactionLastUpdateTimestampMs", "type": "int64", "versions": "0+"},
    {"name": "TransactionStartTimestampMs", "type": "int64", "versions": "0+"},
    {"name": "ClientTransactionVersion", "type": "int16", "versions": "1+", "tag": 2, "taggedVersions": "1+"}
  ]
}
"""
