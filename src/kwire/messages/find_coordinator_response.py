"""Generated from FindCoordinatorResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["Coordinator", "FindCoordinatorResponse"]


class Coordinator(base.Struct, kw_only=True):
    """Versions 4+."""

    key: str = ""
    """string; versions 4+."""
    node_id: int = 0
    """int32; versions 4+; brokerId."""
    host: str = ""
    """string; versions 4+."""
    port: int = 0
    """int32; versions 4+."""
    error_code: int = 0
    """int16; versions 4+."""
    error_message: str | None = ""
    """string; versions 4+; nullable; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class FindCoordinatorResponse(base.Message, kw_only=True):
    """Response, api key 10; versions 0-6; flexible 3+."""

    throttle_time_ms: int = 0
    """int32; versions 1+; ignorable."""
    error_code: int = 0
    """int16; versions 0-3."""
    error_message: str | None = ""
    """string; versions 1-3; nullable; ignorable."""
    node_id: int = 0
    """int32; versions 0-3; brokerId."""
    host: str = ""
    """string; versions 0-3."""
    port: int = 0
    """int32; versions 0-3."""
    coordinators: list[Coordinator] = []
    """[]Coordinator; versions 4+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    Coordinator: ClassVar[type[Coordinator]] = Coordinator
    API_KEY: ClassVar[int | None] = 10
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 6)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "FindCoordinatorResponse", "apiKey": 10,
  "validVersions": "0-6", "flexibleVersions": "3+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+", "ignorable": true},
    {"name": "ErrorCode", "type": "int16", "versions": "0-3"},
    {"name": "ErrorMessage", "type": "string", "versions": "1-3", "nullableVersions": "1-3", "ignorable": true},
    {"name": "NodeId", "type": "int32", "versions": "0-3", "entityType": "brokerId"},
    {"name": "Host", "type": "string", "versions": "0-3"},
    {"name": "Port", "type": "int32", "versions": "0-3"},
    {"name": "Coordinators", "type": "[]Coordinator", "versions": "4+", "fields": [
      {"name": "Key", "type": "string", "versions": "4+"},
      {"name": "NodeId", "type": "int32", "versions": "4+", "entityType": "brokerId"},
      {"name": "Host", "type": "string", "versions": "4+"},
      {"name": "Port", "type": "int32", "versions": "4+"},
      {"name": "ErrorCode", "type": "int16", "versions": "4+"},
      {"name": "ErrorMessage", "type": "string", "versions": "4+", "nullableVersions": "4+", "ignorable": true}
    ]}
  ]
}
"""
