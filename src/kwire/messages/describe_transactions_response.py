"""Generated from DescribeTransactionsResponse.json, Kafka 3.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeTransactionsResponse", "TopicData", "TransactionState"]


class TopicData(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic",)

    topic: str = ""
    """string; versions 0+; map key; topicName."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class TransactionState(base.Struct, kw_only=True):
    """Versions 0+."""

    error_code: int = 0
    """int16; versions 0+."""
    transactional_id: str = ""
    """string; versions 0+; transactionalId."""
    transaction_state: str = ""
    """string; versions 0+."""
    transaction_timeout_ms: int = 0
    """int32; versions 0+."""
    transaction_start_time_ms: int = 0
    """int64; versions 0+."""
    producer_id: int = 0
    """int64; versions 0+; producerId."""
    producer_epoch: int = 0
    """int16; versions 0+."""
    topics: base.Keyed[TopicData] = base.keyed()
    """[]TopicData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeTransactionsResponse(base.Message, kw_only=True):
    """Response, api key 65; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    transaction_states: list[TransactionState] = []
    """[]TransactionState; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicData: ClassVar[type[TopicData]] = TopicData
    TransactionState: ClassVar[type[TransactionState]] = TransactionState
    API_KEY: ClassVar[int | None] = 65
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeTransactionsResponse", "apiKey": 65,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "TransactionStates", "type": "[]TransactionState", "versions": "0+", "fields": [
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "TransactionalId", "type": "string", "versions": "0+", "entityType": "transactionalId"},
      {"name": "TransactionState", "type": "string", "versions": "0+"},
      {"name": "TransactionTimeoutMs", "type": "int32", "versions": "0+"},
      {"name": "TransactionStartTimeMs", "type": "int64", "versions": "0+"},
      {"name": "ProducerId", "type": "int64", "versions": "0+", "entityType": "producerId"},
      {"name": "ProducerEpoch", "type": "int16", "versions": "0+"},
      {"name": "Topics", "type": "[]TopicData", "versions": "0+", "fields": [
        {"name": "Topic", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
        {"name": "Partitions", "type": "[]int32", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
