"""Generated from InitProducerIdRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["InitProducerIdRequest"]


class InitProducerIdRequest(base.Message, kw_only=True):
    """Request, api key 22; versions 0-6; flexible 2+; version 6 unstable; listeners broker, zkBroker."""

    transactional_id: str | None = ""
    """string; versions 0+; nullable; transactionalId."""
    transaction_timeout_ms: int = 0
    """int32; versions 0+."""
    producer_id: int = -1
    """int64; versions 3+; default -1; producerId."""
    producer_epoch: int = -1
    """int16; versions 3+; default -1."""
    enable2_pc: bool = False
    """bool; versions 6+."""
    keep_prepared_txn: bool = False
    """bool; versions 6+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 22
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 6)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "InitProducerIdRequest", "apiKey": 22,
  "validVersions": "0-6", "flexibleVersions": "2+",
  "listeners": ["broker", "zkBroker"],
  "latestVersionUnstable": true,
  "fields": [
    {"name": "TransactionalId", "type": "string", "versions": "0+", "nullableVersions": "0+", "entityType": "transactionalId"},
    {"name": "TransactionTimeoutMs", "type": "int32", "versions": "0+"},
    {"name": "ProducerId", "type": "int64", "versions": "3+", "default": "-1", "entityType": "producerId"},
    {"name": "ProducerEpoch", "type": "int16", "versions": "3+", "default": "-1"},
    {"name": "Enable2Pc", "type": "bool", "versions": "6+"},
    {"name": "KeepPreparedTxn", "type": "bool", "versions": "6+"}
  ]
}
"""
