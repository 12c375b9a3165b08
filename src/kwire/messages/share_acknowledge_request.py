"""Generated from ShareAcknowledgeRequest.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["AcknowledgePartition", "AcknowledgeTopic", "AcknowledgementBatch", "ShareAcknowledgeRequest"]


class AcknowledgementBatch(base.Struct, kw_only=True):
    """Versions 0+."""

    first_offset: int = 0
    """int64; versions 0+."""
    last_offset: int = 0
    """int64; versions 0+."""
    acknowledge_types: list[int] = []
    """[]int8; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AcknowledgePartition(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("partition_index",)

    partition_index: int = 0
    """int32; versions 0+; map key."""
    acknowledgement_batches: list[AcknowledgementBatch] = []
    """[]AcknowledgementBatch; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("partitions")
class AcknowledgeTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic_id",)

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+; map key."""
    partitions: base.Keyed[AcknowledgePartition] = base.keyed()
    """[]AcknowledgePartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class ShareAcknowledgeRequest(base.Message, kw_only=True):
    """Request, api key 79; versions 0-2; flexible 0+; listeners broker."""

    group_id: str | None = None
    """string; versions 0+; nullable; default null; groupId."""
    member_id: str | None = ""
    """string; versions 0+; nullable."""
    share_session_epoch: int = 0
    """int32; versions 0+."""
    is_renew_ack: bool = False
    """bool; versions 2+."""
    topics: base.Keyed[AcknowledgeTopic] = base.keyed()
    """[]AcknowledgeTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AcknowledgementBatch: ClassVar[type[AcknowledgementBatch]] = AcknowledgementBatch
    AcknowledgePartition: ClassVar[type[AcknowledgePartition]] = AcknowledgePartition
    AcknowledgeTopic: ClassVar[type[AcknowledgeTopic]] = AcknowledgeTopic
    API_KEY: ClassVar[int | None] = 79
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ShareAcknowledgeRequest", "apiKey": 79,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null", "entityType": "groupId"},
    {"name": "MemberId", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "ShareSessionEpoch", "type": "int32", "versions": "0+"},
    {"name": "IsRenewAck", "type": "bool", "versions": "2+"},
    {"name": "Topics", "type": "[]AcknowledgeTopic", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+", "mapKey": true},
      {"name": "Partitions", "type": "[]AcknowledgePartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+", "mapKey": true},
        {"name": "AcknowledgementBatches", "type": "[]AcknowledgementBatch", "versions": "0+", "fields": [
          {"name": "FirstOffset", "type": "int64", "versions": "0+"},
          {"name": "LastOffset", "type": "int64", "versions": "0+"},
          {"name": "AcknowledgeTypes", "type": "[]int8", "versions": "0+"}
        ]}
      ]}
    ]}
  ]
}
"""
