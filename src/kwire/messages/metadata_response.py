"""Generated from MetadataResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["MetadataResponse", "MetadataResponseBroker", "MetadataResponsePartition", "MetadataResponseTopic"]


class MetadataResponseBroker(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("node_id",)

    node_id: int = 0
    """int32; versions 0+; map key; brokerId."""
    host: str = ""
    """string; versions 0+."""
    port: int = 0
    """int32; versions 0+."""
    rack: str | None = None
    """string; versions 1+; nullable; default null; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class MetadataResponsePartition(base.Struct, kw_only=True):
    """Versions 0+."""

    error_code: int = 0
    """int16; versions 0+."""
    partition_index: int = 0
    """int32; versions 0+."""
    leader_id: int = 0
    """int32; versions 0+; brokerId."""
    leader_epoch: int = -1
    """int32; versions 7+; default -1; ignorable."""
    replica_nodes: list[int] = []
    """[]int32; versions 0+; brokerId."""
    isr_nodes: list[int] = []
    """[]int32; versions 0+; brokerId."""
    offline_replicas: list[int] = []
    """[]int32; versions 5+; ignorable; brokerId."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class MetadataResponseTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    error_code: int = 0
    """int16; versions 0+."""
    name: str | None = ""
    """string; versions 0+; nullable in 12+; map key; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 10+; ignorable."""
    is_internal: bool = False
    """bool; versions 1+; ignorable."""
    partitions: list[MetadataResponsePartition] = []
    """[]MetadataResponsePartition; versions 0+."""
    topic_authorized_operations: int = -2147483648
    """int32; versions 8+; default -2147483648."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("brokers", "topics")
class MetadataResponse(base.Message, kw_only=True):
    """Response, api key 3; versions 0-13; flexible 9+."""

    throttle_time_ms: int = 0
    """int32; versions 3+; ignorable."""
    brokers: base.Keyed[MetadataResponseBroker] = base.keyed()
    """[]MetadataResponseBroker; versions 0+."""
    cluster_id: str | None = None
    """string; versions 2+; nullable; default null; ignorable."""
    controller_id: int = -1
    """int32; versions 1+; default -1; ignorable; brokerId."""
    topics: base.Keyed[MetadataResponseTopic] = base.keyed()
    """[]MetadataResponseTopic; versions 0+."""
    cluster_authorized_operations: int = -2147483648
    """int32; versions 8-10; default -2147483648."""
    error_code: int = 0
    """int16; versions 13+; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    MetadataResponseBroker: ClassVar[type[MetadataResponseBroker]] = MetadataResponseBroker
    MetadataResponsePartition: ClassVar[type[MetadataResponsePartition]] = MetadataResponsePartition
    MetadataResponseTopic: ClassVar[type[MetadataResponseTopic]] = MetadataResponseTopic
    API_KEY: ClassVar[int | None] = 3
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 13)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(9, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "MetadataResponse", "apiKey": 3,
  "validVersions": "0-13", "flexibleVersions": "9+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "3+", "ignorable": true},
    {"name": "Brokers", "type": "[]MetadataResponseBroker", "versions": "0+", "fields": [
      {"name": "NodeId", "type": "int32", "versions": "0+", "mapKey": true, "entityType": "brokerId"},
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "int32", "versions": "0+"},
      {"name": "Rack", "type": "string", "versions": "1+", "nullableVersions": "1+", "default": "null", "ignorable": true}
    ]},
    {"name": "ClusterId", "type": "string", "versions": "2+", "nullableVersions": "2+", "default": "null", "ignorable": true},
    {"name": "ControllerId", "type": "int32", "versions": "1+", "default": "-1", "ignorable": true, "entityType": "brokerId"},
    {"name": "Topics", "type": "[]MetadataResponseTopic", "versions": "0+", "fields": [
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "Name", "type": "string", "versions": "0+", "nullableVersions": "12+", "mapKey": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "10+", "ignorable": true},
      {"name": "IsInternal", "type": "bool", "versions": "1+", "ignorable": true},
      {"name": "Partitions", "type": "[]MetadataResponsePartition", "versions": "0+", "fields": [
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "LeaderId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "7+", "default": "-1", "ignorable": true},
        {"name": "ReplicaNodes", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "IsrNodes", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "OfflineReplicas", "type": "[]int32", "versions": "5+", "ignorable": true, "entityType": "brokerId"}
      ]},
      {"name": "TopicAuthorizedOperations", "type": "int32", "versions": "8+", "default": "-2147483648"}
    ]},
    {"name": "ClusterAuthorizedOperations", "type": "int32", "versions": "8-10", "default": "-2147483648"},
    {"name": "ErrorCode", "type": "int16", "versions": "13+", "ignorable": true}
  ]
}
"""
