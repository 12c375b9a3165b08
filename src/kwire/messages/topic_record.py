"""Generated from TopicRecord.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["TopicRecord"]


class TopicRecord(base.Message, kw_only=True):
    """Metadata, record type 2; versions 0; flexible 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 2
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "TopicRecord", "apiKey": 2,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
    {"name": "TopicId", "type": "uuid", "versions": "0+"}
  ]
}
"""
