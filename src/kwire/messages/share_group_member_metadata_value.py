"""Generated from ShareGroupMemberMetadataValue.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ShareGroupMemberMetadataValue"]


class ShareGroupMemberMetadataValue(base.Message, kw_only=True):
    """Coordinator-value, record type 10; versions 0; flexible 0+."""

    rack_id: str | None = ""
    """string; versions 0+; nullable."""
    client_id: str = ""
    """string; versions 0+."""
    client_host: str = ""
    """string; versions 0+."""
    subscribed_topic_names: list[str] = []
    """[]string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 10
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "ShareGroupMemberMetadataValue", "apiKey": 10,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "RackId", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "ClientId", "type": "string", "versions": "0+"},
    {"name": "ClientHost", "type": "string", "versions": "0+"},
    {"name": "SubscribedTopicNames", "type": "[]string", "versions": "0+"}
  ]
}
"""
