"""Generated from ConsumerGroupCurrentMemberAssignmentValue.json, Kafka 3.5.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["ConsumerGroupCurrentMemberAssignmentValue", "TopicPartitions"]


class TopicPartitions(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    assignment_epochs: list[int] | None = []
    """[]int32; versions 0+; tag 0; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ConsumerGroupCurrentMemberAssignmentValue(base.Message, kw_only=True):
    """Coordinator-value, record type 8; versions 0; flexible 0+."""

    member_epoch: int = 0
    """int32; versions 0+."""
    previous_member_epoch: int = 0
    """int32; versions 0+."""
    state: int = 0
    """int8; versions 0+."""
    assigned_partitions: list[TopicPartitions] = []
    """[]TopicPartitions; versions 0+."""
    partitions_pending_revocation: list[TopicPartitions] = []
    """[]TopicPartitions; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicPartitions: ClassVar[type[TopicPartitions]] = TopicPartitions
    API_KEY: ClassVar[int | None] = 8
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "ConsumerGroupCurrentMemberAssignmentValue", "apiKey": 8,
  "validVersions": "0", "flexibleVersions": "0+",
  "commonStructs": [
    {"name": "TopicPartitions", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"},
      {"name": "AssignmentEpochs", "type": "[]int32", "versions": "0+", "tag": 0, "taggedVersions": "0+", "nullableVersions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "MemberEpoch", "type": "int32", "versions": "0+"},
    {"name": "PreviousMemberEpoch", "type": "int32", "versions": "0+"},
    {"name": "State", "type": "int8", "versions": "0+"},
    {"name": "AssignedPartitions", "type": "[]TopicPartitions", "versions": "0+"},
    {"name": "PartitionsPendingRevocation", "type": "[]TopicPartitions", "versions": "0+"}
  ]
}
"""
