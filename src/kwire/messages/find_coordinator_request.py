"""Generated from FindCoordinatorRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["FindCoordinatorRequest"]


class FindCoordinatorRequest(base.Message, kw_only=True):
    """Request, api key 10; versions 0-6; flexible 3+; listeners broker, zkBroker."""

    key: str = ""
    """string; versions 0-3."""
    key_type: int = 0
    """int8; versions 1+."""
    coordinator_keys: list[str] = []
    """[]string; versions 4+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 10
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 6)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "FindCoordinatorRequest", "apiKey": 10,
  "validVersions": "0-6", "flexibleVersions": "3+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "Key", "type": "string", "versions": "0-3"},
    {"name": "KeyType", "type": "int8", "versions": "1+"},
    {"name": "CoordinatorKeys", "type": "[]string", "versions": "4+"}
  ]
}
"""
