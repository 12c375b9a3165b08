"""Generated from InitProducerIdResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["InitProducerIdResponse"]


class InitProducerIdResponse(base.Message, kw_only=True):
    """Response, api key 22; versions 0-6; flexible 2+."""

    throttle_time_ms: int = 0
    """int32; versions 0+; ignorable."""
    error_code: int = 0
    """int16; versions 0+."""
    producer_id: int = -1
    """int64; versions 0+; default -1; producerId."""
    producer_epoch: int = 0
    """int16; versions 0+."""
    ongoing_txn_producer_id: int = -1
    """int64; versions 6+; default -1; producerId."""
    ongoing_txn_producer_epoch: int = -1
    """int16; versions 6+; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 22
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 6)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "InitProducerIdResponse", "apiKey": 22,
  "validVersions": "0-6", "flexibleVersions": "2+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+", "ignorable": true},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ProducerId", "type": "int64", "versions": "0+", "default": "-1", "entityType": "producerId"},
    {"name": "ProducerEpoch", "type": "int16", "versions": "0+"},
    {"name": "OngoingTxnProducerId", "type": "int64", "versions": "6+", "default": "-1", "entityType": "producerId"},
    {"name": "OngoingTxnProducerEpoch", "type": "int16", "versions": "6+", "default": "-1"}
  ]
}
"""
