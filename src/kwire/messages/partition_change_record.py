"""Generated from PartitionChangeRecord.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["PartitionChangeRecord"]


class PartitionChangeRecord(base.Message, kw_only=True):
    """Metadata, record type 5; versions 0-2; flexible 0+."""

    partition_id: int = -1
    """int32; versions 0+; default -1."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    isr: list[int] | None = None
    """[]int32; versions 0+; tag 0; nullable; default null; brokerId."""
    leader: int = -2
    """int32; versions 0+; tag 1; default -2; brokerId."""
    replicas: list[int] | None = None
    """[]int32; versions 0+; tag 2; nullable; default null; brokerId."""
    removing_replicas: list[int] | None = None
    """[]int32; versions 0+; tag 3; nullable; default null; brokerId."""
    adding_replicas: list[int] | None = None
    """[]int32; versions 0+; tag 4; nullable; default null; brokerId."""
    leader_recovery_state: int = -1
    """int8; versions 0+; tag 5; default -1."""
    eligible_leader_replicas: list[int] | None = None
    """[]int32; versions 2+; tag 6; nullable; default null; brokerId."""
    last_known_elr: list[int] | None = None
    """[]int32; versions 2+; tag 7; nullable; default null; brokerId."""
    directories: list[uuid.UUID] | None = None
    """[]uuid; versions 1+; tag 8; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 5
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("lastKnownELR", "last_known_elr", 2, 2),)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "PartitionChangeRecord", "apiKey": 5,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "fields": [
    {"name": "PartitionId", "type": "int32", "versions": "0+", "default": "-1"},
    {"name": "TopicId", "type": "uuid", "versions": "0+"},
    {"name": "Isr", "type": "[]int32", "versions": "0+", "tag": 0, "taggedVersions": "0+", "nullableVersions": "0+", "default": "null", "entityType": "brokerId"},
    {"name": "Leader", "type": "int32", "versions": "0+", "tag": 1, "taggedVersions": "0+", "default": "-2", "entityType": "brokerId"},
    {"name": "Replicas", "type": "[]int32", "versions": "0+", "tag": 2, "taggedVersions": "0+", "nullableVersions": "0+", "default": "null", "entityType": "brokerId"},
    {"name": "RemovingReplicas", "type": "[]int32", "versions": "0+", "tag": 3, "taggedVersions": "0+", "nullableVersions": "0+", "default": "null", "entityType": "brokerId"},
    {"name": "AddingReplicas", "type": "[]int32", "versions": "0+", "tag": 4, "taggedVersions": "0+", "nullableVersions": "0+", "default": "null", "entityType": "brokerId"},
    {"name": "LeaderRecoveryState", "type": "int8", "versions": "0+", "tag": 5, "taggedVersions": "0+", "default": "-1"},
    {"name": "Directories", "type": "[]uuid", "versions": "1+", "tag": 8, "taggedVersions": "1+", "nullableVersions": "1+", "default": "null"},
    {"name": "EligibleLeaderReplicas", "type": "[]int32", "versions": "2+", "tag": 6, "taggedVersions": "2+", "nullableVersions": "2+", "default": "null", "entityType": "brokerId"},
    {"name": "LastKnownElr", "type": "[]int32", "versions": "2+", "tag": 7, "taggedVersions": "2+", "nullableVersions": "2+", "default": "null", "entityType": "brokerId"}
  ]
}
"""
