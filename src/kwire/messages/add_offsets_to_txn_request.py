"""Generated from AddOffsetsToTxnRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AddOffsetsToTxnRequest"]


class AddOffsetsToTxnRequest(base.Message, kw_only=True):
    """Request, api key 25; versions 0-4; flexible 3+; listeners broker, zkBroker."""

    transactional_id: str = ""
    """string; versions 0+; transactionalId."""
    producer_id: int = 0
    """int64; versions 0+; producerId."""
    producer_epoch: int = 0
    """int16; versions 0+."""
    group_id: str = ""
    """string; versions 0+; groupId."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 25
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "AddOffsetsToTxnRequest", "apiKey": 25,
  "validVersions": "0-4", "flexibleVersions": "3+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "TransactionalId", "type": "string", "versions": "0+", "entityType": "transactionalId"},
    {"name": "ProducerId", "type": "int64", "versions": "0+", "entityType": "producerId"},
    {"name": "ProducerEpoch", "type": "int16", "versions": "0+"},
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"}
  ]
}
"""
