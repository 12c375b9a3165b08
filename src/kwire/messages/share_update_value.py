"""Generated from ShareUpdateValue.json, Kafka 4.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ShareUpdateValue", "StateBatch"]


class StateBatch(base.Struct, kw_only=True):
    """Versions 0+."""

    first_offset: int = 0
    """int64; versions 0+."""
    last_offset: int = 0
    """int64; versions 0+."""
    delivery_state: int = 0
    """int8; versions 0+."""
    delivery_count: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ShareUpdateValue(base.Message, kw_only=True):
    """Coordinator-value, record type 1; versions 0; flexible 0+."""

    snapshot_epoch: int = 0
    """int32; versions 0+."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    start_offset: int = 0
    """int64; versions 0+."""
    state_batches: list[StateBatch] = []
    """[]StateBatch; versions 0+."""
    delivery_complete_count: int = -1
    """int32; versions 0+; tag 0; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    StateBatch: ClassVar[type[StateBatch]] = StateBatch
    API_KEY: ClassVar[int | None] = 1
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "ShareUpdateValue", "apiKey": 1,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "SnapshotEpoch", "type": "int32", "versions": "0+"},
    {"name": "LeaderEpoch", "type": "int32", "versions": "0+"},
    {"name": "StartOffset", "type": "int64", "versions": "0+"},
    {"name": "DeliveryCompleteCount", "type": "int32", "versions": "0+", "tag": 0, "taggedVersions": "0+", "default": "-1"},
    {"name": "StateBatches", "type": "[]StateBatch", "versions": "0+", "fields": [
      {"name": "FirstOffset", "type": "int64", "versions": "0+"},
      {"name": "LastOffset", "type": "int64", "versions": "0+"},
      {"name": "DeliveryState", "type": "int8", "versions": "0+"},
      {"name": "DeliveryCount", "type": "int16", "versions": "0+"}
    ]}
  ]
}
"""
