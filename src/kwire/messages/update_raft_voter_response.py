"""Generated from UpdateRaftVoterResponse.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = ["CurrentLeader", "UpdateRaftVoterResponse"]


class CurrentLeader(base.Struct, kw_only=True):
    """Versions 0+."""

    leader_id: int = -1
    """int32; versions 0+; default -1; brokerId."""
    leader_epoch: int = -1
    """int32; versions 0+; default -1."""
    host: str = ""
    """string; versions 0+."""
    port: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class UpdateRaftVoterResponse(base.Message, kw_only=True):
    """Response, api key 82; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    current_leader: CurrentLeader = msgspec.field(default_factory=CurrentLeader)
    """CurrentLeader; versions 0+; tag 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    CurrentLeader: ClassVar[type[CurrentLeader]] = CurrentLeader
    API_KEY: ClassVar[int | None] = 82
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "UpdateRaftVoterResponse", "apiKey": 82,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "CurrentLeader", "type": "CurrentLeader", "versions": "0+", "tag": 0, "taggedVersions": "0+", "fields": [
      {"name": "LeaderId", "type": "int32", "versions": "0+", "default": "-1", "entityType": "brokerId"},
      {"name": "LeaderEpoch", "type": "int32", "versions": "0+", "default": "-1"},
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "int32", "versions": "0+"}
    ]}
  ]
}
"""
