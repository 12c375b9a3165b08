"""Generated from PartitionRecord.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["PartitionRecord"]


class PartitionRecord(base.Message, kw_only=True):
    """Metadata, record type 3; versions 0-2; flexible 0+."""

    partition_id: int = -1
    """int32; versions 0+; default -1."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    replicas: list[int] = []
    """[]int32; versions 0+; brokerId."""
    isr: list[int] = []
    """[]int32; versions 0+."""
    removing_replicas: list[int] = []
    """[]int32; versions 0+; brokerId."""
    adding_replicas: list[int] = []
    """[]int32; versions 0+; brokerId."""
    leader: int = -1
    """int32; versions 0+; default -1; brokerId."""
    leader_epoch: int = -1
    """int32; versions 0+; default -1."""
    partition_epoch: int = -1
    """int32; versions 0+; default -1."""
    directories: list[uuid.UUID] = []
    """[]uuid; versions 1+."""
    leader_recovery_state: int = 0
    """int8; versions 0+; tag 0."""
    eligible_leader_replicas: list[int] | None = None
    """[]int32; versions 2+; tag 1; nullable; default null; brokerId."""
    last_known_elr: list[int] | None = None
    """[]int32; versions 2+; tag 2; nullable; default null; brokerId."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 3
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("lastKnownELR", "last_known_elr", 2, 2),)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "PartitionRecord", "apiKey": 3,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "fields": [
    {"name": "PartitionId", "type": "int32", "versions": "0+", "default": "-1"},
    {"name": "TopicId", "type": "uuid", "versions": "0+"},
    {"name": "Replicas", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "Isr", "type": "[]int32", "versions": "0+"},
    {"name": "RemovingReplicas", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "AddingReplicas", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "Leader", "type": "int32", "versions": "0+", "default": "-1", "entityType": "brokerId"},
    {"name": "LeaderRecoveryState", "type": "int8", "versions": "0+", "tag": 0, "taggedVersions": "0+"},
    {"name": "LeaderEpoch", "type": "int32", "versions": "0+", "default": "-1"},
    {"name": "PartitionEpoch", "type": "int32", "versions": "0+", "default": "-1"},
    {"name": "Directories", "type": "[]uuid", "versions": "1+"},
    {"name": "EligibleLeaderReplicas", "type": "[]int32", "versions": "2+", "tag": 1, "taggedVersions": "2+", "nullableVersions": "2+", "default": "null", "entityType": "brokerId"},
    {"name": "LastKnownElr", "type": "[]int32", "versions": "2+", "tag": 2, "taggedVersions": "2+", "nullableVersions": "2+", "default": "null", "entityType": "brokerId"}
  ]
}
"""
