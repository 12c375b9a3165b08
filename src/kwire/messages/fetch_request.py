"""Generated from FetchRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = ["FetchPartition", "FetchRequest", "FetchTopic", "ForgottenTopic", "ReplicaState"]


class ReplicaState(base.Struct, kw_only=True):
    """Versions 15+."""

    replica_id: int = -1
    """int32; versions 15+; default -1; brokerId."""
    replica_epoch: int = -1
    """int64; versions 15+; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class FetchPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("maxBytes", "partition_max_bytes", 0, 11),
        ("partitionIndex", "partition", 0, 11),
    )

    partition: int = 0
    """int32; versions 0+."""
    current_leader_epoch: int = -1
    """int32; versions 9+; default -1; ignorable."""
    fetch_offset: int = 0
    """int64; versions 0+."""
    last_fetched_epoch: int = -1
    """int32; versions 12+; default -1."""
    log_start_offset: int = -1
    """int64; versions 5+; default -1; ignorable."""
    partition_max_bytes: int = 0
    """int32; versions 0+."""
    replica_directory_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 17+; tag 0; ignorable."""
    high_watermark: int = 9223372036854775807
    """int64; versions 18+; tag 1; default 9223372036854775807; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class FetchTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("fetchPartitions", "partitions", 0, 11),
        ("name", "topic", 0, 11),
    )

    topic: str = ""
    """string; versions 0-12; ignorable; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 13+; ignorable."""
    partitions: list[FetchPartition] = []
    """[]FetchPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ForgottenTopic(base.Struct, kw_only=True):
    """Versions 7+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("forgottenPartitionIndexes", "partitions", 7, 11),
        ("name", "topic", 7, 11),
    )

    topic: str = ""
    """string; versions 7-12; ignorable; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 13+; ignorable."""
    partitions: list[int] = []
    """[]int32; versions 7+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class FetchRequest(base.Message, kw_only=True):
    """Request, api key 1; versions 0-18; flexible 12+; deprecated 0-3; listeners broker, controller, zkBroker."""

    replica_id: int = -1
    """int32; versions 0-14; default -1; brokerId."""
    max_wait_ms: int = 0
    """int32; versions 0+."""
    min_bytes: int = 0
    """int32; versions 0+."""
    max_bytes: int = 2147483647
    """int32; versions 3+; default 2147483647; ignorable."""
    isolation_level: int = 0
    """int8; versions 4+; ignorable."""
    session_id: int = 0
    """int32; versions 7+; ignorable."""
    session_epoch: int = -1
    """int32; versions 7+; default -1; ignorable."""
    topics: list[FetchTopic] = []
    """[]FetchTopic; versions 0+."""
    forgotten_topics_data: list[ForgottenTopic] = []
    """[]ForgottenTopic; versions 7+."""
    rack_id: str = ""
    """string; versions 11+; ignorable."""
    cluster_id: str | None = None
    """string; versions 12+; tag 0; nullable; default null; ignorable."""
    replica_state: ReplicaState = msgspec.field(default_factory=ReplicaState)
    """ReplicaState; versions 15+; tag 1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ReplicaState: ClassVar[type[ReplicaState]] = ReplicaState
    FetchPartition: ClassVar[type[FetchPartition]] = FetchPartition
    FetchTopic: ClassVar[type[FetchTopic]] = FetchTopic
    ForgottenTopic: ClassVar[type[ForgottenTopic]] = ForgottenTopic
    API_KEY: ClassVar[int | None] = 1
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 18)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(12, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("epoch", "session_epoch", 7, 11),
        ("forgotten", "forgotten_topics_data", 7, 11),
        ("maxWait", "max_wait_ms", 0, 11),
    )
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "FetchRequest", "apiKey": 1,
  "validVersions": "0-18", "deprecatedVersions": "0-3", "flexibleVersions": "12+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "ClusterId", "type": "string", "versions": "12+", "tag": 0, "taggedVersions": "12+", "nullableVersions": "12+", "default": "null", "ignorable": true},
    {"name": "ReplicaId", "type": "int32", "versions": "0-14", "default": "-1", "entityType": "brokerId"},
    {"name": "ReplicaState", "type": "ReplicaState", "versions": "15+", "tag": 1, "taggedVersions": "15+", "fields": [
      {"name": "ReplicaId", "type": "int32", "versions": "15+", "default": "-1", "entityType": "brokerId"},
      {"name": "ReplicaEpoch", "type": "int64", "versions": "15+", "default": "-1"}
    ]},
    {"name": "MaxWaitMs", "type": "int32", "versions": "0+"},
    {"name": "MinBytes", "type": "int32", "versions": "0+"},
    {"name": "MaxBytes", "type": "int32", "versions": "3+", "default": "2147483647", "ignorable": true},
    {"name": "IsolationLevel", "type": "int8", "versions": "4+", "ignorable": true},
    {"name": "SessionId", "type": "int32", "versions": "7+", "ignorable": true},
    {"name": "SessionEpoch", "type": "int32", "versions": "7+", "default": "-1", "ignorable": true},
    {"name": "Topics", "type": "[]FetchTopic", "versions": "0+", "fields": [
      {"name": "Topic", "type": "string", "versions": "0-12", "ignorable": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "13+", "ignorable": true},
      {"name": "Partitions", "type": "[]FetchPartition", "versions": "0+", "fields": [
        {"name": "Partition", "type": "int32", "versions": "0+"},
        {"name": "CurrentLeaderEpoch", "type": "int32", "versions": "9+", "default": "-1", "ignorable": true},
        {"name": "FetchOffset", "type": "int64", "versions": "0+"},
        {"name": "LastFetchedEpoch", "type": "int32", "versions": "12+", "default": "-1"},
        {"name": "LogStartOffset", "type": "int64", "versions": "5+", "default": "-1", "ignorable": true},
        {"name": "PartitionMaxBytes", "type": "int32", "versions": "0+"},
        {"name": "ReplicaDirectoryId", "type": "uuid", "versions": "17+", "tag": 0, "taggedVersions": "17+", "ignorable": true},
        {"name": "HighWatermark", "type": "int64", "versions": "18+", "tag": 1, "taggedVersions": "18+", "default": "9223372036854775807", "ignorable": true}
      ]}
    ]},
    {"name": "ForgottenTopicsData", "type": "[]ForgottenTopic", "versions": "7+", "fields": [
      {"name": "Topic", "type": "string", "versions": "7-12", "ignorable": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "13+", "ignorable": true},
      {"name": "Partitions", "type": "[]int32", "versions": "7+"}
    ]},
    {"name": "RackId", "type": "string", "versions": "11+", "ignorable": true}
  ]
}
"""
