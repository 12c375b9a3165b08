"""Generated from ShareFetchRequest.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["AcknowledgementBatch", "FetchPartition", "FetchTopic", "ForgottenTopic", "ShareFetchRequest"]


class AcknowledgementBatch(base.Struct, kw_only=True):
    """Versions 0+."""

    first_offset: int = 0
    """int64; versions 0+."""
    last_offset: int = 0
    """int64; versions 0+."""
    acknowledge_types: list[int] = []
    """[]int8; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class FetchPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("partition_index",)

    partition_index: int = 0
    """int32; versions 0+; map key."""
    partition_max_bytes: int = 0
    """int32; versions 0."""
    acknowledgement_batches: list[AcknowledgementBatch] = []
    """[]AcknowledgementBatch; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("partitions")
class FetchTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic_id",)

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+; ignorable; map key."""
    partitions: base.Keyed[FetchPartition] = base.keyed()
    """[]FetchPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ForgottenTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+; ignorable."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class ShareFetchRequest(base.Message, kw_only=True):
    """Request, api key 78; versions 0-2; flexible 0+; listeners broker."""

    group_id: str | None = None
    """string; versions 0+; nullable; default null; groupId."""
    member_id: str | None = ""
    """string; versions 0+; nullable."""
    share_session_epoch: int = 0
    """int32; versions 0+."""
    max_wait_ms: int = 0
    """int32; versions 0+."""
    min_bytes: int = 0
    """int32; versions 0+."""
    max_bytes: int = 2147483647
    """int32; versions 0+; default 2147483647; ignorable."""
    max_records: int = 0
    """int32; versions 1+."""
    batch_size: int = 0
    """int32; versions 1+."""
    share_acquire_mode: int = 0
    """int8; versions 2+; ignorable."""
    is_renew_ack: bool = False
    """bool; versions 2+."""
    topics: base.Keyed[FetchTopic] = base.keyed()
    """[]FetchTopic; versions 0+."""
    forgotten_topics_data: list[ForgottenTopic] = []
    """[]ForgottenTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AcknowledgementBatch: ClassVar[type[AcknowledgementBatch]] = AcknowledgementBatch
    FetchPartition: ClassVar[type[FetchPartition]] = FetchPartition
    FetchTopic: ClassVar[type[FetchTopic]] = FetchTopic
    ForgottenTopic: ClassVar[type[ForgottenTopic]] = ForgottenTopic
    API_KEY: ClassVar[int | None] = 78
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ShareFetchRequest", "apiKey": 78,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null", "entityType": "groupId"},
    {"name": "MemberId", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "ShareSessionEpoch", "type": "int32", "versions": "0+"},
    {"name": "MaxWaitMs", "type": "int32", "versions": "0+"},
    {"name": "MinBytes", "type": "int32", "versions": "0+"},
    {"name": "MaxBytes", "type": "int32", "versions": "0+", "default": "2147483647", "ignorable": true},
    {"name": "MaxRecords", "type": "int32", "versions": "1+"},
    {"name": "BatchSize", "type": "int32", "versions": "1+"},
    {"name": "ShareAcquireMode", "type": "int8", "versions": "2+", "ignorable": true},
    {"name": "IsRenewAck", "type": "bool", "versions": "2+"},
    {"name": "Topics", "type": "[]FetchTopic", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+", "ignorable": true, "mapKey": true},
      {"name": "Partitions", "type": "[]FetchPartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+", "mapKey": true},
        {"name": "PartitionMaxBytes", "type": "int32", "versions": "0"},
        {"name": "AcknowledgementBatches", "type": "[]AcknowledgementBatch", "versions": "0+", "fields": [
          {"name": "FirstOffset", "type": "int64", "versions": "0+"},
          {"name": "LastOffset", "type": "int64", "versions": "0+"},
          {"name": "AcknowledgeTypes", "type": "[]int8", "versions": "0+"}
        ]}
      ]}
    ]},
    {"name": "ForgottenTopicsData", "type": "[]ForgottenTopic", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+", "ignorable": true},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]}
  ]
}
"""
