"""Generated from ShareAcknowledgeResponse.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = [
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionData",
    "ShareAcknowledgeResponse",
    "ShareAcknowledgeTopicResponse",
]


class LeaderIdAndEpoch(base.Struct, kw_only=True):
    """Versions 0+."""

    leader_id: int = 0
    """int32; versions 0+."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    current_leader: LeaderIdAndEpoch = msgspec.field(default_factory=LeaderIdAndEpoch)
    """LeaderIdAndEpoch; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ShareAcknowledgeTopicResponse(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic_id",)

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+; ignorable; map key."""
    partitions: list[PartitionData] = []
    """[]PartitionData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class NodeEndpoint(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("node_id",)

    node_id: int = 0
    """int32; versions 0+; map key; brokerId."""
    host: str = ""
    """string; versions 0+."""
    port: int = 0
    """int32; versions 0+."""
    rack: str | None = None
    """string; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("responses", "node_endpoints")
class ShareAcknowledgeResponse(base.Message, kw_only=True):
    """Response, api key 79; versions 0-2; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+; ignorable."""
    error_code: int = 0
    """int16; versions 0+; ignorable."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    acquisition_lock_timeout_ms: int = 0
    """int32; versions 2+; ignorable."""
    responses: base.Keyed[ShareAcknowledgeTopicResponse] = base.keyed()
    """[]ShareAcknowledgeTopicResponse; versions 0+."""
    node_endpoints: base.Keyed[NodeEndpoint] = base.keyed()
    """[]NodeEndpoint; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    LeaderIdAndEpoch: ClassVar[type[LeaderIdAndEpoch]] = LeaderIdAndEpoch
    PartitionData: ClassVar[type[PartitionData]] = PartitionData
    ShareAcknowledgeTopicResponse: ClassVar[type[ShareAcknowledgeTopicResponse]] = ShareAcknowledgeTopicResponse
    NodeEndpoint: ClassVar[type[NodeEndpoint]] = NodeEndpoint
    API_KEY: ClassVar[int | None] = 79
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ShareAcknowledgeResponse", "apiKey": 79,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+", "ignorable": true},
    {"name": "ErrorCode", "type": "int16", "versions": "0+", "ignorable": true},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "AcquisitionLockTimeoutMs", "type": "int32", "versions": "2+", "ignorable": true},
    {"name": "Responses", "type": "[]ShareAcknowledgeTopicResponse", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+", "ignorable": true, "mapKey": true},
      {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
        {"name": "CurrentLeader", "type": "LeaderIdAndEpoch", "versions": "0+", "fields": [
          {"name": "LeaderId", "type": "int32", "versions": "0+"},
          {"name": "LeaderEpoch", "type": "int32", "versions": "0+"}
        ]}
      ]}
    ]},
    {"name": "NodeEndpoints", "type": "[]NodeEndpoint", "versions": "0+", "fields": [
      {"name": "NodeId", "type": "int32", "versions": "0+", "mapKey": true, "entityType": "brokerId"},
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "int32", "versions": "0+"},
      {"name": "Rack", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"}
    ]}
  ]
}
"""
