"""Generated from BeginTransactionRecord.json, Kafka 3.6.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["BeginTransactionRecord"]


class BeginTransactionRecord(base.Message, kw_only=True):
    """Metadata, record type 23; versions 0; flexible 0+."""

    name: str | None = None
    """string; versions 0+; tag 0; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 23
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "BeginTransactionRecord", "apiKey": 23,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Name", "type": "string", "versions": "0+", "tag": 0, "taggedVersions": "0+", "nullableVersions": "0+", "default": "null"}
  ]
}
"""
