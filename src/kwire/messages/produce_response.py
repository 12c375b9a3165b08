"""Generated from ProduceResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = [
    "BatchIndexAndErrorMessage",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionProduceResponse",
    "ProduceResponse",
    "TopicProduceResponse",
]


class BatchIndexAndErrorMessage(base.Struct, kw_only=True):
    """Versions 8+."""

    batch_index: int = 0
    """int32; versions 8+."""
    batch_index_error_message: str | None = None
    """string; versions 8+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class LeaderIdAndEpoch(base.Struct, kw_only=True):
    """Versions 10+."""

    leader_id: int = -1
    """int32; versions 10+; default -1; brokerId."""
    leader_epoch: int = -1
    """int32; versions 10+; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class PartitionProduceResponse(base.Struct, kw_only=True):
    """Versions 0+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("partitionIndex", "index", 0, 8),)

    index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    base_offset: int = 0
    """int64; versions 0+."""
    log_append_time_ms: int = -1
    """int64; versions 2+; default -1; ignorable."""
    log_start_offset: int = -1
    """int64; versions 5+; default -1; ignorable."""
    record_errors: list[BatchIndexAndErrorMessage] = []
    """[]BatchIndexAndErrorMessage; versions 8+; ignorable."""
    error_message: str | None = None
    """string; versions 8+; nullable; default null; ignorable."""
    current_leader: LeaderIdAndEpoch = msgspec.field(default_factory=LeaderIdAndEpoch)
    """LeaderIdAndEpoch; versions 10+; tag 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TopicProduceResponse(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name", "topic_id")

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("partitions", "partition_responses", 0, 8),)

    name: str = ""
    """string; versions 0-12; ignorable; map key; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 13+; ignorable; map key."""
    partition_responses: list[PartitionProduceResponse] = []
    """[]PartitionProduceResponse; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class NodeEndpoint(base.Struct, kw_only=True):
    """Versions 10+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("node_id",)

    node_id: int = 0
    """int32; versions 10+; map key; brokerId."""
    host: str = ""
    """string; versions 10+."""
    port: int = 0
    """int32; versions 10+."""
    rack: str | None = None
    """string; versions 10+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("responses", "node_endpoints")
class ProduceResponse(base.Message, kw_only=True):
    """Response, api key 0; versions 0-13; flexible 9+."""

    responses: base.Keyed[TopicProduceResponse] = base.keyed()
    """[]TopicProduceResponse; versions 0+."""
    throttle_time_ms: int = 0
    """int32; versions 1+; ignorable."""
    node_endpoints: base.Keyed[NodeEndpoint] = base.keyed()
    """[]NodeEndpoint; versions 10+; tag 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    BatchIndexAndErrorMessage: ClassVar[type[BatchIndexAndErrorMessage]] = BatchIndexAndErrorMessage
    LeaderIdAndEpoch: ClassVar[type[LeaderIdAndEpoch]] = LeaderIdAndEpoch
    PartitionProduceResponse: ClassVar[type[PartitionProduceResponse]] = PartitionProduceResponse
    TopicProduceResponse: ClassVar[type[TopicProduceResponse]] = TopicProduceResponse
    NodeEndpoint: ClassVar[type[NodeEndpoint]] = NodeEndpoint
    API_KEY: ClassVar[int | None] = 0
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 13)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(9, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ProduceResponse", "apiKey": 0,
  "validVersions": "0-13", "flexibleVersions": "9+",
  "fields": [
    {"name": "Responses", "type": "[]TopicProduceResponse", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0-12", "ignorable": true, "mapKey": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "13+", "ignorable": true, "mapKey": true},
      {"name": "PartitionResponses", "type": "[]PartitionProduceResponse", "versions": "0+", "fields": [
        {"name": "Index", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "BaseOffset", "type": "int64", "versions": "0+"},
        {"name": "LogAppendTimeMs", "type": "int64", "versions": "2+", "default": "-1", "ignorable": true},
        {"name": "LogStartOffset", "type": "int64", "versions": "5+", "default": "-1", "ignorable": true},
        {"name": "RecordErrors", "type": "[]BatchIndexAndErrorMessage", "versions": "8+", "ignorable": true, "fields": [
          {"name": "BatchIndex", "type": "int32", "versions": "8+"},
          {"name": "BatchIndexErrorMessage", "type": "string", "versions": "8+", "nullableVersions": "8+", "default": "null"}
        ]},
        {"name": "ErrorMessage", "type": "string", "versions": "8+", "nullableVersions": "8+", "default": "null", "ignorable": true},
        {"name": "CurrentLeader", "type": "LeaderIdAndEpoch", "versions": "10+", "tag": 0, "taggedVersions": "10+", "fields": [
          {"name": "LeaderId", "type": "int32", "versions": "10+", "default": "-1", "entityType": "brokerId"},
          {"name": "LeaderEpoch", "type": "int32", "versions": "10+", "default": "-1"}
        ]}
      ]}
    ]},
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+", "ignorable": true},
    {"name": "NodeEndpoints", "type": "[]NodeEndpoint", "versions": "10+", "tag": 0, "taggedVersions": "10+", "fields": [
      {"name": "NodeId", "type": "int32", "versions": "10+", "mapKey": true, "entityType": "brokerId"},
      {"name": "Host", "type": "string", "versions": "10+"},
      {"name": "Port", "type": "int32", "versions": "10+"},
      {"name": "Rack", "type": "string", "versions": "10+", "nullableVersions": "10+", "default": "null"}
    ]}
  ]
}
"""
