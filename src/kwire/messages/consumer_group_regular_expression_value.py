"""Generated from ConsumerGroupRegularExpressionValue.json, Kafka 4.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ConsumerGroupRegularExpressionValue"]


class ConsumerGroupRegularExpressionValue(base.Message, kw_only=True):
    """Coordinator-value, record type 16; versions 0; flexible 0+."""

    topics: list[str] = []
    """[]string; versions 0+."""
    version: int = 0
    """int64; versions 0+."""
    timestamp: int = 0
    """int64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 16
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "ConsumerGroupRegularExpressionValue", "apiKey": 16,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Topics", "type": "[]string", "versions": "0+"},
    {"name": "Version", "type": "int64", "versions": "0+"},
    {"name": "Timestamp", "type": "int64", "versions": "0+"}
  ]
}
"""
