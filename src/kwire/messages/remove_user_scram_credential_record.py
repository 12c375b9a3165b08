"""Generated from RemoveUserScramCredentialRecord.json, Kafka 3.5.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["RemoveUserScramCredentialRecord"]


class RemoveUserScramCredentialRecord(base.Message, kw_only=True):
    """Metadata, record type 22; versions 0; flexible 0+."""

    name: str = ""
    """string; versions 0+."""
    mechanism: int = 0
    """int8; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 22
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "RemoveUserScramCredentialRecord", "apiKey": 22,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Name", "type": "string", "versions": "0+"},
    {"name": "Mechanism", "type": "int8", "versions": "0+"}
  ]
}
"""
