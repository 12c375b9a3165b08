"""Generated from RemoveTopicRecord.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["RemoveTopicRecord"]


class RemoveTopicRecord(base.Message, kw_only=True):
    """Metadata, record type 9; versions 0; flexible 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 9
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "RemoveTopicRecord", "apiKey": 9,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "TopicId", "type": "uuid", "versions": "0+"}
  ]
}
"""
