"""Generated from FetchResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = [
    "AbortedTransaction",
    "EpochEndOffset",
    "FetchResponse",
    "FetchableTopicResponse",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionData",
    "SnapshotId",
]


class EpochEndOffset(base.Struct, kw_only=True):
    """Versions 12+."""

    epoch: int = -1
    """int32; versions 12+; default -1."""
    end_offset: int = -1
    """int64; versions 12+; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class LeaderIdAndEpoch(base.Struct, kw_only=True):
    """Versions 12+."""

    leader_id: int = -1
    """int32; versions 12+; default -1; brokerId."""
    leader_epoch: int = -1
    """int32; versions 12+; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class SnapshotId(base.Struct, kw_only=True):
    """Versions 12+."""

    end_offset: int = -1
    """int64; versions 0+; default -1."""
    epoch: int = -1
    """int32; versions 0+; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AbortedTransaction(base.Struct, kw_only=True):
    """Versions 4+."""

    producer_id: int = 0
    """int64; versions 4+; producerId."""
    first_offset: int = 0
    """int64; versions 4+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("aborted", "aborted_transactions", 4, 11),
        ("partition", "partition_index", 0, 12),
        ("recordSet", "records", 0, 12),
    )

    partition_index: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    high_watermark: int = 0
    """int64; versions 0+."""
    last_stable_offset: int = -1
    """int64; versions 4+; default -1; ignorable."""
    log_start_offset: int = -1
    """int64; versions 5+; default -1; ignorable."""
    aborted_transactions: list[AbortedTransaction] | None = []
    """[]AbortedTransaction; versions 4+; nullable; ignorable."""
    preferred_read_replica: int = -1
    """int32; versions 11+; default -1; brokerId."""
    records: bytes | None = None
    """records; versions 0+; nullable."""
    diverging_epoch: EpochEndOffset = msgspec.field(default_factory=EpochEndOffset)
    """EpochEndOffset; versions 12+; tag 0."""
    current_leader: LeaderIdAndEpoch = msgspec.field(default_factory=LeaderIdAndEpoch)
    """LeaderIdAndEpoch; versions 12+; tag 1."""
    snapshot_id: SnapshotId = msgspec.field(default_factory=SnapshotId)
    """SnapshotId; versions 12+; tag 2."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class FetchableTopicResponse(base.Struct, kw_only=True):
    """Versions 0+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("name", "topic", 0, 11),
        ("partitionResponses", "partitions", 0, 12),
    )

    topic: str = ""
    """string; versions 0-12; ignorable; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 13+; ignorable."""
    partitions: list[PartitionData] = []
    """[]PartitionData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class NodeEndpoint(base.Struct, kw_only=True):
    """Versions 16+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("node_id",)

    node_id: int = 0
    """int32; versions 16+; map key; brokerId."""
    host: str = ""
    """string; versions 16+."""
    port: int = 0
    """int32; versions 16+."""
    rack: str | None = None
    """string; versions 16+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("node_endpoints")
class FetchResponse(base.Message, kw_only=True):
    """Response, api key 1; versions 0-18; flexible 12+."""

    throttle_time_ms: int = 0
    """int32; versions 1+; ignorable."""
    error_code: int = 0
    """int16; versions 7+; ignorable."""
    session_id: int = 0
    """int32; versions 7+."""
    responses: list[FetchableTopicResponse] = []
    """[]FetchableTopicResponse; versions 0+."""
    node_endpoints: base.Keyed[NodeEndpoint] = base.keyed()
    """[]NodeEndpoint; versions 16+; tag 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    EpochEndOffset: ClassVar[type[EpochEndOffset]] = EpochEndOffset
    LeaderIdAndEpoch: ClassVar[type[LeaderIdAndEpoch]] = LeaderIdAndEpoch
    SnapshotId: ClassVar[type[SnapshotId]] = SnapshotId
    AbortedTransaction: ClassVar[type[AbortedTransaction]] = AbortedTransaction
    PartitionData: ClassVar[type[PartitionData]] = PartitionData
    FetchableTopicResponse: ClassVar[type[FetchableTopicResponse]] = FetchableTopicResponse
    NodeEndpoint: ClassVar[type[NodeEndpoint]] = NodeEndpoint
    API_KEY: ClassVar[int | None] = 1
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 18)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(12, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("topics", "responses", 0, 11),)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "FetchResponse", "apiKey": 1,
  "validVersions": "0-18", "flexibleVersions": "12+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+", "ignorable": true},
    {"name": "ErrorCode", "type": "int16", "versions": "7+", "ignorable": true},
    {"name": "SessionId", "type": "int32", "versions": "7+"},
    {"name": "Responses", "type": "[]FetchableTopicResponse", "versions": "0+", "fields": [
      {"name": "Topic", "type": "string", "versions": "0-12", "ignorable": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "13+", "ignorable": true},
      {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "HighWatermark", "type": "int64", "versions": "0+"},
        {"name": "LastStableOffset", "type": "int64", "versions": "4+", "default": "-1", "ignorable": true},
        {"name": "LogStartOffset", "type": "int64", "versions": "5+", "default": "-1", "ignorable": true},
        {"name": "DivergingEpoch", "type": "EpochEndOffset", "versions": "12+", "tag": 0, "taggedVersions": "12+", "fields": [
          {"name": "Epoch", "type": "int32", "versions": "12+", "default": "-1"},
          {"name": "EndOffset", "type": "int64", "versions": "12+", "default": "-1"}
        ]},
        {"name": "CurrentLeader", "type": "LeaderIdAndEpoch", "versions": "12+", "tag": 1, "taggedVersions": "12+", "fields": [
          {"name": "LeaderId", "type": "int32", "versions": "12+", "default": "-1", "entityType": "brokerId"},
          {"name": "LeaderEpoch", "type": "int32", "versions": "12+", "default": "-1"}
        ]},
        {"name": "SnapshotId", "type": "SnapshotId", "versions": "12+", "tag": 2, "taggedVersions": "12+", "fields": [
          {"name": "EndOffset", "type": "int64", "versions": "0+", "default": "-1"},
          {"name": "Epoch", "type": "int32", "versions": "0+", "default": "-1"}
        ]},
        {"name": "AbortedTransactions", "type": "[]AbortedTransaction", "versions": "4+", "nullableVersions": "4+", "ignorable": true, "fields": [
          {"name": "ProducerId", "type": "int64", "versions": "4+", "entityType": "producerId"},
          {"name": "FirstOffset", "type": "int64", "versions": "4+"}
        ]},
        {"name": "PreferredReadReplica", "type": "int32", "versions": "11+", "default": "-1", "entityType": "brokerId"},
        {"name": "Records", "type": "records", "versions": "0+", "nullableVersions": "0+"}
      ]}
    ]},
    {"name": "NodeEndpoints", "type": "[]NodeEndpoint", "versions": "16+", "tag": 0, "taggedVersions": "16+", "fields": [
      {"name": "NodeId", "type": "int32", "versions": "16+", "mapKey": true, "entityType": "brokerId"},
      {"name": "Host", "type": "string", "versions": "16+"},
      {"name": "Port", "type": "int32", "versions": "16+"},
      {"name": "Rack", "type": "string", "versions": "16+", "nullableVersions": "16+", "default": "null"}
    ]}
  ]
}
"""
