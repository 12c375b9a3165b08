"""Generated from QuorumStateData.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["QuorumStateData", "Voter"]


class Voter(base.Struct, kw_only=True):
    """Versions 0."""

    voter_id: int = 0
    """int32; versions 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class QuorumStateData(base.Message, kw_only=True):
    """Data; versions 0-1; flexible 0+."""

    cluster_id: str = ""
    """string; versions 0."""
    leader_id: int = -1
    """int32; versions 0+; default -1."""
    leader_epoch: int = -1
    """int32; versions 0+; default -1."""
    voted_id: int = -1
    """int32; versions 0+; default -1."""
    voted_directory_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 1+."""
    applied_offset: int = 0
    """int64; versions 0."""
    current_voters: list[Voter] | None = []
    """[]Voter; versions 0; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    Voter: ClassVar[type[Voter]] = Voter
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "data", "name": "QuorumStateData",
  "validVersions": "0-1", "flexibleVersions": "0+",
  "fields": [
    {"name": "ClusterId", "type": "string", "versions": "0"},
    {"name": "LeaderId", "type": "int32", "versions": "0+", "default": "-1"},
    {"name": "LeaderEpoch", "type": "int32", "versions": "0+", "default": "-1"},
    {"name": "VotedId", "type": "int32", "versions": "0+", "default": "-1"},
    {"name": "VotedDirectoryId", "type": "uuid", "versions": "1+"},
    {"name": "AppliedOffset", "type": "int64", "versions": "0"},
    {"name": "CurrentVoters", "type": "[]Voter", "versions": "0", "nullableVersions": "0", "fields": [
      {"name": "VoterId", "type": "int32", "versions": "0"}
    ]}
  ]
}
"""
