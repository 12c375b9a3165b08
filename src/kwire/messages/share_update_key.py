"""Generated from ShareUpdateKey.json, Kafka 4.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["ShareUpdateKey"]


class ShareUpdateKey(base.Message, kw_only=True):
    """Coordinator-key, record type 1; versions 0; flexible none."""

    group_id: str = ""
    """string; versions 0."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0."""
    partition: int = 0
    """int32; versions 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 1
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-key", "name": "ShareUpdateKey", "apiKey": 1,
  "validVersions": "0", "flexibleVersions": "none",
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0"},
    {"name": "TopicId", "type": "uuid", "versions": "0"},
    {"name": "Partition", "type": "int32", "versions": "0"}
  ]
}
"""
