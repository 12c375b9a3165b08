"""Generated from ConsumerGroupMemberMetadataValue.json, Kafka 3.5.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = ["ClassicMemberMetadata", "ClassicProtocol", "ConsumerGroupMemberMetadataValue"]


class ClassicProtocol(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+."""
    metadata: bytes = b""
    """bytes; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ClassicMemberMetadata(base.Struct, kw_only=True):
    """Versions 0+."""

    session_timeout_ms: int = 0
    """int32; versions 0+."""
    supported_protocols: list[ClassicProtocol] = []
    """[]ClassicProtocol; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ConsumerGroupMemberMetadataValue(base.Message, kw_only=True):
    """Coordinator-value, record type 5; versions 0; flexible 0+."""

    instance_id: str | None = ""
    """string; versions 0+; nullable."""
    rack_id: str | None = ""
    """string; versions 0+; nullable."""
    client_id: str = ""
    """string; versions 0+."""
    client_host: str = ""
    """string; versions 0+."""
    subscribed_topic_names: list[str] = []
    """[]string; versions 0+."""
    subscribed_topic_regex: str | None = ""
    """string; versions 0+; nullable."""
    rebalance_timeout_ms: int = -1
    """int32; versions 0+; default -1."""
    server_assignor: str | None = ""
    """string; versions 0+; nullable."""
    classic_member_metadata: ClassicMemberMetadata | None = msgspec.field(default_factory=ClassicMemberMetadata)
    """ClassicMemberMetadata; versions 0+; tag 0; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ClassicProtocol: ClassVar[type[ClassicProtocol]] = ClassicProtocol
    ClassicMemberMetadata: ClassVar[type[ClassicMemberMetadata]] = ClassicMemberMetadata
    API_KEY: ClassVar[int | None] = 5
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "ConsumerGroupMemberMetadataValue", "apiKey": 5,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "InstanceId", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "RackId", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "ClientId", "type": "string", "versions": "0+"},
    {"name": "ClientHost", "type": "string", "versions": "0+"},
    {"name": "SubscribedTopicNames", "type": "[]string", "versions": "0+"},
    {"name": "SubscribedTopicRegex", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "RebalanceTimeoutMs", "type": "int32", "versions": "0+", "default": "-1"},
    {"name": "ServerAssignor", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "ClassicMemberMetadata", "type": "ClassicMemberMetadata", "versions": "0+", "tag": 0, "taggedVersions": "0+", "nullableVersions": "0+", "fields": [
      {"name": "SessionTimeoutMs", "type": "int32", "versions": "0+"},
      {"name": "SupportedProtocols", "type": "[]ClassicProtocol", "versions": "0+", "fields": [
        {"name": "Name", "type": "string", "versions": "0+"},
        {"name": "Metadata", "type": "bytes", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
