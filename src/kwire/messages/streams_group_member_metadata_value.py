"""Generated from StreamsGroupMemberMetadataValue.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["Endpoint", "KeyValue", "StreamsGroupMemberMetadataValue"]


class Endpoint(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    host: str = ""
    """string; versions 0+."""
    port: int = 0
    """uint16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class KeyValue(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    key: str = ""
    """string; versions 0+."""
    value: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StreamsGroupMemberMetadataValue(base.Message, kw_only=True):
    """Coordinator-value, record type 19; versions 0; flexible 0+."""

    instance_id: str | None = ""
    """string; versions 0+; nullable."""
    rack_id: str | None = ""
    """string; versions 0+; nullable."""
    client_id: str = ""
    """string; versions 0+."""
    client_host: str = ""
    """string; versions 0+."""
    rebalance_timeout_ms: int = -1
    """int32; versions 0+; default -1."""
    topology_epoch: int = 0
    """int32; versions 0+."""
    process_id: str = ""
    """string; versions 0+."""
    user_endpoint: Endpoint | None = None
    """Endpoint; versions 0+; nullable; default null."""
    client_tags: list[KeyValue] = []
    """[]KeyValue; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    Endpoint: ClassVar[type[Endpoint]] = Endpoint
    KeyValue: ClassVar[type[KeyValue]] = KeyValue
    API_KEY: ClassVar[int | None] = 19
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "StreamsGroupMemberMetadataValue", "apiKey": 19,
  "validVersions": "0", "flexibleVersions": "0+",
  "commonStructs": [
    {"name": "Endpoint", "versions": "0+", "fields": [
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "uint16", "versions": "0+"}
    ]},
    {"name": "KeyValue", "versions": "0+", "fields": [
      {"name": "Key", "type": "string", "versions": "0+"},
      {"name": "Value", "type": "string", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "InstanceId", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "RackId", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "ClientId", "type": "string", "versions": "0+"},
    {"name": "ClientHost", "type": "string", "versions": "0+"},
    {"name": "RebalanceTimeoutMs", "type": "int32", "versions": "0+", "default": "-1"},
    {"name": "TopologyEpoch", "type": "int32", "versions": "0+"},
    {"name": "ProcessId", "type": "string", "versions": "0+"},
    {"name": "UserEndpoint", "type": "Endpoint", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "ClientTags", "type": "[]KeyValue", "versions": "0+"}
  ]
}
"""
