"""Generated from VotersRecord.json, Kafka 3.8.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = ["Endpoint", "KRaftVersionFeature", "Voter", "VotersRecord"]


class Endpoint(base.Struct, kw_only=True):
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


@base.with_find("endpoints")
class Voter(base.Struct, kw_only=True):
    """Versions 0+."""

    voter_id: int = 0
    """int32; versions 0+; brokerId."""
    voter_directory_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    endpoints: base.Keyed[Endpoint] = base.keyed()
    """[]Endpoint; versions 0+."""
    kraft_version_feature: KRaftVersionFeature = msgspec.field(default_factory=KRaftVersionFeature)
    """KRaftVersionFeature; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class VotersRecord(base.Message, kw_only=True):
    """Data; versions 0; flexible 0+."""

    version: int = 0
    """int16; versions 0+."""
    voters: list[Voter] = []
    """[]Voter; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    Endpoint: ClassVar[type[Endpoint]] = Endpoint
    KRaftVersionFeature: ClassVar[type[KRaftVersionFeature]] = KRaftVersionFeature
    Voter: ClassVar[type[Voter]] = Voter
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "data", "name": "VotersRecord",
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Version", "type": "int16", "versions": "0+"},
    {"name": "Voters", "type": "[]Voter", "versions": "0+", "fields": [
      {"name": "VoterId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
      {"name": "VoterDirectoryId", "type": "uuid", "versions": "0+"},
      {"name": "Endpoints", "type": "[]Endpoint", "versions": "0+", "fields": [
        {"name": "Name", "type": "string", "versions": "0+", "mapKey": true},
        {"name": "Host", "type": "string", "versions": "0+"},
        {"name": "Port", "type": "uint16", "versions": "0+"}
      ]},
      {"name": "KRaftVersionFeature", "type": "KRaftVersionFeature", "versions": "0+", "fields": [
        {"name": "MinSupportedVersion", "type": "int16", "versions": "0+"},
        {"name": "MaxSupportedVersion", "type": "int16", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
