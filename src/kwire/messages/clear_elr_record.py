"""Generated from ClearElrRecord.json, Kafka 4.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ClearElrRecord"]


class ClearElrRecord(base.Message, kw_only=True):
    """Metadata, record type 28; versions 0; flexible 0+."""

    topic_name: str = ""
    """string; versions 0+; topicName."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 28
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "ClearElrRecord", "apiKey": 28,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"}
  ]
}
"""
