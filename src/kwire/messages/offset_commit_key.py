"""Generated from OffsetCommitKey.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["OffsetCommitKey"]


class OffsetCommitKey(base.Message, kw_only=True):
    """Coordinator-key, record type 1; versions 0; flexible none."""

    group: str = ""
    """string; versions 0."""
    topic: str = ""
    """string; versions 0."""
    partition: int = 0
    """int32; versions 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 1
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-key", "name": "OffsetCommitKey", "apiKey": 1,
  "validVersions": "0", "flexibleVersions": "none",
  "fields": [
    {"name": "group", "type": "string", "versions": "0"},
    {"name": "topic", "type": "string", "versions": "0"},
    {"name": "partition", "type": "int32", "versions": "0"}
  ]
}
"""
