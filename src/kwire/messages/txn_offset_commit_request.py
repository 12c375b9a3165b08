"""Generated from TxnOffsetCommitRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["TxnOffsetCommitRequest", "TxnOffsetCommitRequestPartition", "TxnOffsetCommitRequestTopic"]


class TxnOffsetCommitRequestPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    committed_offset: int = 0
    """int64; versions 0+."""
    committed_leader_epoch: int = -1
    """int32; versions 2+; default -1; ignorable."""
    committed_metadata: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TxnOffsetCommitRequestTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0-5; ignorable; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 6+; ignorable."""
    partitions: list[TxnOffsetCommitRequestPartition] = []
    """[]TxnOffsetCommitRequestPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class TxnOffsetCommitRequest(base.Message, kw_only=True):
    """Request, api key 28; versions 0-6; flexible 3+; listeners broker, zkBroker."""

    transactional_id: str = ""
    """string; versions 0+; transactionalId."""
    group_id: str = ""
    """string; versions 0+; groupId."""
    producer_id: int = 0
    """int64; versions 0+; producerId."""
    producer_epoch: int = 0
    """int16; versions 0+."""
    generation_id_or_member_epoch: int = -1
    """int32; versions 3+; default -1."""
    member_id: str = ""
    """string; versions 3+."""
    group_instance_id: str | None = None
    """string; versions 3+; nullable; default null."""
    topics: list[TxnOffsetCommitRequestTopic] = []
    """[]TxnOffsetCommitRequestTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TxnOffsetCommitRequestPartition: ClassVar[type[TxnOffsetCommitRequestPartition]] = TxnOffsetCommitRequestPartition
    TxnOffsetCommitRequestTopic: ClassVar[type[TxnOffsetCommitRequestTopic]] = TxnOffsetCommitRequestTopic
    API_KEY: ClassVar[int | None] = 28
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 6)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("generationId", "generation_id_or_member_epoch", 3, 5),
    )
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "TxnOffsetCommitRequest", "apiKey": 28,
  "validVersions": "0-6", "flexibleVersions": "3+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "TransactionalId", "type": "string", "versions": "0+", "entityType": "transactionalId"},
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "ProducerId", "type": "int64", "versions": "0+", "entityType": "producerId"},
    {"name": "ProducerEpoch", "type": "int16", "versions": "0+"},
    {"name": "GenerationIdOrMemberEpoch", "type": "int32", "versions": "3+", "default": "-1"},
    {"name": "MemberId", "type": "string", "versions": "3+"},
    {"name": "GroupInstanceId", "type": "string", "versions": "3+", "nullableVersions": "3+", "default": "null"},
    {"name": "Topics", "type": "[]TxnOffsetCommitRequestTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0-5", "ignorable": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "6+", "ignorable": true},
      {"name": "Partitions", "type": "[]TxnOffsetCommitRequestPartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "CommittedOffset", "type": "int64", "versions": "0+"},
        {"name": "CommittedLeaderEpoch", "type": "int32", "versions": "2+", "default": "-1", "ignorable": true},
        {"name": "CommittedMetadata", "type": "string", "versions": "0+", "nullableVersions": "0+"}
      ]}
    ]}
  ]
}
"""
