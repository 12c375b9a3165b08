"""Generated from LeaderChangeMessage.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["LeaderChangeMessage", "Voter"]


class Voter(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    voter_id: int = 0
    """int32; versions 0+."""
    voter_directory_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class LeaderChangeMessage(base.Message, kw_only=True):
    """Data; versions 0-1; flexible 0+."""

    version: int = 0
    """int16; versions 0+."""
    leader_id: int = 0
    """int32; versions 0+; brokerId."""
    voters: list[Voter] = []
    """[]Voter; versions 0+."""
    granting_voters: list[Voter] = []
    """[]Voter; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    Voter: ClassVar[type[Voter]] = Voter
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "data", "name": "LeaderChangeMessage",
  "validVersions": "0-1", "flexibleVersions": "0+",
  "commonStructs": [
    {"name": "Voter", "versions": "0+", "fields": [
      {"name": "VoterId", "type": "int32", "versions": "0+"},
      {"name": "VoterDirectoryId", "type": "uuid", "versions": "1+"}
    ]}
  ],
  "fields": [
    {"name": "Version", "type": "int16", "versions": "0+"},
    {"name": "LeaderId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "Voters", "type": "[]Voter", "versions": "0+"},
    {"name": "GrantingVoters", "type": "[]Voter", "versions": "0+"}
  ]
}
"""
