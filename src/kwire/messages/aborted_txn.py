"""Generated from AbortedTxn.json, Kafka 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AbortedTxn"]


class AbortedTxn(base.Message, kw_only=True):
    """Data; versions 0; flexible none."""

    producer_id: int = 0
    """int64; versions 0+."""
    first_offset: int = 0
    """int64; versions 0+."""
    last_offset: int = 0
    """int64; versions 0+."""
    last_stable_offset: int = 0
    """int64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "data", "name": "AbortedTxn",
  "validVersions": "0", "flexibleVersions": "none",
  "fields": [
    {"name": "ProducerId", "type": "int64", "versions": "0+"},
    {"name": "FirstOffset", "type": "int64", "versions": "0+"},
    {"name": "LastOffset", "type": "int64", "versions": "0+"},
    {"name": "LastStableOffset", "type": "int64", "versions": "0+"}
  ]
}
"""
