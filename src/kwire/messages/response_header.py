"""Generated from ResponseHeader.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ResponseHeader"]


class ResponseHeader(base.Message, kw_only=True):
    """Header; versions 0-1; flexible 1+."""

    correlation_id: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(1, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "header", "name": "ResponseHeader",
  "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    {"name": "CorrelationId", "type": "int32", "versions": "0+"}
  ]
}
"""
