"""Generated from EndTxnMarker.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["EndTxnMarker"]


class EndTxnMarker(base.Message, kw_only=True):
    """Data; versions 0; flexible none."""

    coordinator_epoch: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "data", "name": "EndTxnMarker",
  "validVersions": "0", "flexibleVersions": "none",
  "fields": [
    {"name": "CoordinatorEpoch", "type": "int32", "versions": "0+"}
  ]
}
"""
