"""Generated from DelegationTokenRecord.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DelegationTokenRecord"]


class DelegationTokenRecord(base.Message, kw_only=True):
    """Metadata, record type 10; versions 0; flexible 0+."""

    owner: str = ""
    """string; versions 0+."""
    requester: str = ""
    """string; versions 0+."""
    renewers: list[str] = []
    """[]string; versions 0+."""
    issue_timestamp: int = 0
    """int64; versions 0+."""
    max_timestamp: int = 0
    """int64; versions 0+."""
    expiration_timestamp: int = 0
    """int64; versions 0+."""
    token_id: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 10
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "DelegationTokenRecord", "apiKey": 10,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Owner", "type": "string", "versions": "0+"},
    {"name": "Requester", "type": "string", "versions": "0+"},
    {"name": "Renewers", "type": "[]string", "versions": "0+"},
    {"name": "IssueTimestamp", "type": "int64", "versions": "0+"},
    {"name": "MaxTimestamp", "type": "int64", "versions": "0+"},
    {"name": "ExpirationTimestamp", "type": "int64", "versions": "0+"},
    {"name": "TokenId", "type": "string", "versions": "0+"}
  ]
}
"""
