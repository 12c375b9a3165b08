"""Generated from EndTxnResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["EndTxnResponse"]


class EndTxnResponse(base.Message, kw_only=True):
    """Response, api key 26; versions 0-5; flexible 3+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    producer_id: int = -1
    """int64; versions 5+; default -1; ignorable; producerId."""
    producer_epoch: int = -1
    """int16; versions 5+; default -1; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 26
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "EndTxnResponse", "apiKey": 26,
  "validVersions": "0-5", "flexibleVersions": "3+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ProducerId", "type": "int64", "versions": "5+", "default": "-1", "ignorable": true, "entityType": "producerId"},
    {"name": "ProducerEpoch", "type": "int16", "versions": "5+", "default": "-1", "ignorable": true}
  ]
}
"""
