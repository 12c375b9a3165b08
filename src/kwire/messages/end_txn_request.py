"""Generated from EndTxnRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["EndTxnRequest"]


class EndTxnRequest(base.Message, kw_only=True):
    """Request, api key 26; versions 0-5; flexible 3+; listeners broker, zkBroker."""

    transactional_id: str = ""
    """string; versions 0+; transactionalId."""
    producer_id: int = 0
    """int64; versions 0+; producerId."""
    producer_epoch: int = 0
    """int16; versions 0+."""
    committed: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 26
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "EndTxnRequest", "apiKey": 26,
  "validVersions": "0-5", "flexibleVersions": "3+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "TransactionalId", "type": "string", "versions": "0+", "entityType": "transactionalId"},
    {"name": "ProducerId", "type": "int64", "versions": "0+", "entityType": "producerId"},
    {"name": "ProducerEpoch", "type": "int16", "versions": "0+"},
    {"name": "Committed", "type": "bool", "versions": "0+"}
  ]
}
"""
