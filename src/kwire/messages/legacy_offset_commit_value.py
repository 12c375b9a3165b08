"""Generated from LegacyOffsetCommitValue.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["LegacyOffsetCommitValue"]


class LegacyOffsetCommitValue(base.Message, kw_only=True):
    """Coordinator-value, record type 0; versions 0; flexible none."""

    offset: int = 0
    """int64; versions 0."""
    metadata: str = ""
    """string; versions 0."""
    commit_timestamp: int = 0
    """int64; versions 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 0
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "LegacyOffsetCommitValue", "apiKey": 0,
  "validVersions": "0", "flexibleVersions": "none",
  "fields": [
    {"name": "offset", "type": "int64", "versions": "0"},
    {"name": "metadata", "type": "string", "versions": "0"},
    {"name": "commitTimestamp", "type": "int64", "versions": "0"}
  ]
}
"""
