"""Generated from ProducerSnapshot.json, Kafka 4.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ProducerEntry", "ProducerSnapshot"]


class ProducerEntry(base.Struct, kw_only=True):
    """Versions 1."""

    producer_id: int = 0
    """int64; versions 1."""
    epoch: int = 0
    """int16; versions 1."""
    last_sequence: int = 0
    """int32; versions 1."""
    last_offset: int = 0
    """int64; versions 1."""
    offset_delta: int = 0
    """int32; versions 1."""
    timestamp: int = 0
    """int64; versions 1."""
    coordinator_epoch: int = 0
    """int32; versions 1."""
    current_txn_first_offset: int = 0
    """int64; versions 1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ProducerSnapshot(base.Message, kw_only=True):
    """Data; versions 1; flexible none."""

    crc: int = 0
    """uint32; versions 1."""
    producer_entries: list[ProducerEntry] = []
    """[]ProducerEntry; versions 1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ProducerEntry: ClassVar[type[ProducerEntry]] = ProducerEntry
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(1, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "data", "name": "ProducerSnapshot",
  "validVersions": "1", "flexibleVersions": "none",
  "fields": [
    {"name": "Crc", "type": "uint32", "versions": "1"},
    {"name": "ProducerEntries", "type": "[]ProducerEntry", "versions": "1", "fields": [
      {"name": "ProducerId", "type": "int64", "versions": "1"},
      {"name": "Epoch", "type": "int16", "versions": "1"},
      {"name": "LastSequence", "type": "int32", "versions": "1"},
      {"name": "LastOffset", "type": "int64", "versions": "1"},
      {"name": "OffsetDelta", "type": "int32", "versions": "1"},
      {"name": "Timestamp", "type": "int64", "versions": "1"},
      {"name": "CoordinatorEpoch", "type": "int32", "versions": "1"},
      {"name": "CurrentTxnFirstOffset", "type": "int64", "versions": "1"}
    ]}
  ]
}
"""
