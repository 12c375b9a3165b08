"""Generated from RemoveDelegationTokenRecord.json, Kafka 3.6.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["RemoveDelegationTokenRecord"]


class RemoveDelegationTokenRecord(base.Message, kw_only=True):
    """Metadata, record type 26; versions 0; flexible 0+."""

    token_id: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 26
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "RemoveDelegationTokenRecord", "apiKey": 26,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "TokenId", "type": "string", "versions": "0+"}
  ]
}
"""
