"""Generated from AddPartitionsToTxnRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AddPartitionsToTxnRequest", "AddPartitionsToTxnTopic", "AddPartitionsToTxnTransaction"]


class AddPartitionsToTxnTopic(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key; topicName."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class AddPartitionsToTxnTransaction(base.Struct, kw_only=True):
    """Versions 4+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("transactional_id",)

    transactional_id: str = ""
    """string; versions 4+; map key; transactionalId."""
    producer_id: int = 0
    """int64; versions 4+; producerId."""
    producer_epoch: int = 0
    """int16; versions 4+."""
    verify_only: bool = False
    """bool; versions 4+."""
    topics: base.Keyed[AddPartitionsToTxnTopic] = base.keyed()
    """[]AddPartitionsToTxnTopic; versions 4+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("transactions", "v3_and_below_topics")
class AddPartitionsToTxnRequest(base.Message, kw_only=True):
    """Request, api key 24; versions 0-5; flexible 3+; listeners broker, zkBroker."""

    transactions: base.Keyed[AddPartitionsToTxnTransaction] = base.keyed()
    """[]AddPartitionsToTxnTransaction; versions 4+."""
    v3_and_below_transactional_id: str = ""
    """string; versions 0-3; transactionalId."""
    v3_and_below_producer_id: int = 0
    """int64; versions 0-3; producerId."""
    v3_and_below_producer_epoch: int = 0
    """int16; versions 0-3."""
    v3_and_below_topics: base.Keyed[AddPartitionsToTxnTopic] = base.keyed()
    """[]AddPartitionsToTxnTopic; versions 0-3."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AddPartitionsToTxnTopic: ClassVar[type[AddPartitionsToTxnTopic]] = AddPartitionsToTxnTopic
    AddPartitionsToTxnTransaction: ClassVar[type[AddPartitionsToTxnTransaction]] = AddPartitionsToTxnTransaction
    API_KEY: ClassVar[int | None] = 24
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("producerEpoch", "v3_and_below_producer_epoch", 0, 3),
        ("producerId", "v3_and_below_producer_id", 0, 3),
        ("topics", "v3_and_below_topics", 0, 3),
        ("transactionalId", "v3_and_below_transactional_id", 0, 3),
    )
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "AddPartitionsToTxnRequest", "apiKey": 24,
  "validVersions": "0-5", "flexibleVersions": "3+",
  "listeners": ["broker", "zkBroker"],
  "commonStructs": [
    {"name": "AddPartitionsToTxnTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "Transactions", "type": "[]AddPartitionsToTxnTransaction", "versions": "4+", "fields": [
      {"name": "TransactionalId", "type": "string", "versions": "4+", "mapKey": true, "entityType": "transactionalId"},
      {"name": "ProducerId", "type": "int64", "versions": "4+", "entityType": "producerId"},
      {"name": "ProducerEpoch", "type": "int16", "versions": "4+"},
      {"name": "VerifyOnly", "type": "bool", "versions": "4+"},
      {"name": "Topics", "type": "[]AddPartitionsToTxnTopic", "versions": "4+"}
    ]},
    {"name": "V3AndBelowTransactionalId", "type": "string", "versions": "0-3", "entityType": "transactionalId"},
    {"name": "V3AndBelowProducerId", "type": "int64", "versions": "0-3", "entityType": "producerId"},
    {"name": "V3AndBelowProducerEpoch", "type": "int16", "versions": "0-3"},
    {"name": "V3AndBelowTopics", "type": "[]AddPartitionsToTxnTopic", "versions": "0-3"}
  ]
}
"""
