"""Generated from InitializeShareGroupStateRequest.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["InitializeShareGroupStateRequest", "InitializeStateData", "PartitionData"]


class PartitionData(base.Struct, kw_only=True):
    """Versions 0+."""

    partition: int = 0
    """int32; versions 0+."""
    state_epoch: int = 0
    """int32; versions 0+."""
    start_offset: int = 0
    """int64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class InitializeStateData(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partitions: list[PartitionData] = []
    """[]PartitionData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class InitializeShareGroupStateRequest(base.Message, kw_only=True):
    """Request, api key 83; versions 0; flexible 0+; listeners broker."""

    group_id: str = ""
    """string; versions 0+."""
    topics: list[InitializeStateData] = []
    """[]InitializeStateData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    PartitionData: ClassVar[type[PartitionData]] = PartitionData
    InitializeStateData: ClassVar[type[InitializeStateData]] = InitializeStateData
    API_KEY: ClassVar[int | None] = 83
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "InitializeShareGroupStateRequest", "apiKey": 83,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+"},
    {"name": "Topics", "type": "[]InitializeStateData", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "Partitions", "type": "[]PartitionData", "versions": "0+", "fields": [
        {"name": "Partition", "type": "int32", "versions": "0+"},
        {"name": "StateEpoch", "type": "int32", "versions": "0+"},
        {"name": "StartOffset", "type": "int64", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
