"""Generated from RemoveRaftVoterRequest.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["RemoveRaftVoterRequest"]


class RemoveRaftVoterRequest(base.Message, kw_only=True):
    """Request, api key 81; versions 0; flexible 0+; listeners controller, broker."""

    cluster_id: str | None = ""
    """string; versions 0+; nullable."""
    voter_id: int = 0
    """int32; versions 0+."""
    voter_directory_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 81
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "RemoveRaftVoterRequest", "apiKey": 81,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["controller", "broker"],
  "fields": [
    {"name": "ClusterId", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "VoterId", "type": "int32", "versions": "0+"},
    {"name": "VoterDirectoryId", "type": "uuid", "versions": "0+"}
  ]
}
"""
