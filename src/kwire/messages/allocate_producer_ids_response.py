"""Generated from AllocateProducerIdsResponse.json, Kafka 3.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AllocateProducerIdsResponse"]


class AllocateProducerIdsResponse(base.Message, kw_only=True):
    """Response, api key 67; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    producer_id_start: int = 0
    """int64; versions 0+; producerId."""
    producer_id_len: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 67
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "AllocateProducerIdsResponse", "apiKey": 67,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ProducerIdStart", "type": "int64", "versions": "0+", "entityType": "producerId"},
    {"name": "ProducerIdLen", "type": "int32", "versions": "0+"}
  ]
}
"""
