"""Generated from UpdateRaftVoterRequest.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = ["KRaftVersionFeature", "Listener", "UpdateRaftVoterRequest"]


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


class KRaftVersionFeature(base.Struct, kw_only=True):
    """Versions 0+."""

    min_supported_version: int = 0
    """int16; versions 0+."""
    max_supported_version: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("listeners")
class UpdateRaftVoterRequest(base.Message, kw_only=True):
    """Request, api key 82; versions 0; flexible 0+; listeners controller."""

    cluster_id: str | None = ""
    """string; versions 0+; nullable."""
    current_leader_epoch: int = 0
    """int32; versions 0+."""
    voter_id: int = 0
    """int32; versions 0+."""
    voter_directory_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    listeners: base.Keyed[Listener] = base.keyed()
    """[]Listener; versions 0+."""
    kraft_version_feature: KRaftVersionFeature = msgspec.field(default_factory=KRaftVersionFeature)
    """KRaftVersionFeature; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    Listener: ClassVar[type[Listener]] = Listener
    KRaftVersionFeature: ClassVar[type[KRaftVersionFeature]] = KRaftVersionFeature
    API_KEY: ClassVar[int | None] = 82
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "UpdateRaftVoterRequest", "apiKey": 82,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["controller"],
  "fields": [
    {"name": "ClusterId", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "CurrentLeaderEpoch", "type": "int32", "versions": "0+"},
    {"name": "VoterId", "type": "int32", "versions": "0+"},
    {"name": "VoterDirectoryId", "type": "uuid", "versions": "0+"},
    {"name": "Listeners", "type": "[]Listener", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "uint16", "versions": "0+"}
    ]},
    {"name": "KRaftVersionFeature", "type": "KRaftVersionFeature", "versions": "0+", "fields": [
      {"name": "MinSupportedVersion", "type": "int16", "versions": "0+"},
      {"name": "MaxSupportedVersion", "type": "int16", "versions": "0+"}
    ]}
  ]
}
"""
