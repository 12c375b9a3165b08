"""Generated from DefaultPrincipalData.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DefaultPrincipalData"]


class DefaultPrincipalData(base.Message, kw_only=True):
    """Data; versions 0; flexible 0+."""

    type: str = ""
    """string; versions 0+."""
    name: str = ""
    """string; versions 0+."""
    token_authenticated: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "data", "name": "DefaultPrincipalData",
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Type", "type": "string", "versions": "0+"},
    {"name": "Name", "type": "string", "versions": "0+"},
    {"name": "TokenAuthenticated", "type": "bool", "versions": "0+"}
  ]
}
"""
