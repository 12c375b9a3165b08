"""Generated from AddRaftVoterRequest.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["AddRaftVoterRequest", "Listener"]


class Listener(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key."""
    host: str = ""
    """string; versions 0+."""
    port: int = 0
    """uint16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("listeners")
class AddRaftVoterRequest(base.Message, kw_only=True):
    """Request, api key 80; versions 0-1; flexible 0+; listeners controller, broker."""

    cluster_id: str | None = ""
    """string; versions 0+; nullable."""
    timeout_ms: int = 0
    """int32; versions 0+."""
    voter_id: int = 0
    """int32; versions 0+."""
    voter_directory_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    listeners: base.Keyed[Listener] = base.keyed()
    """[]Listener; versions 0+."""
    ack_when_committed: bool = True
    """bool; versions 1+; default true."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    Listener: ClassVar[type[Listener]] = Listener
    API_KEY: ClassVar[int | None] = 80
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "AddRaftVoterRequest", "apiKey": 80,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "listeners": ["controller", "broker"],
  "fields": [
    {"name": "ClusterId", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "TimeoutMs", "type": "int32", "versions": "0+"},
    {"name": "VoterId", "type": "int32", "versions": "0+"},
    {"name": "VoterDirectoryId", "type": "uuid", "versions": "0+"},
    {"name": "Listeners", "type": "[]Listener", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "uint16", "versions": "0+"}
    ]},
    {"name": "AckWhenCommitted", "type": "bool", "versions": "1+", "default": "true"}
  ]
}
"""
