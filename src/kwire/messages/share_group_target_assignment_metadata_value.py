"""Generated from ShareGroupTargetAssignmentMetadataValue.json, Kafka 4.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ShareGroupTargetAssignmentMetadataValue"]


class ShareGroupTargetAssignmentMetadataValue(base.Message, kw_only=True):
    """Coordinator-value, record type 12; versions 0; flexible 0+."""

    assignment_epoch: int = 0
    """int32; versions 0+."""
    assignment_timestamp: int = 0
    """int64; versions 0+; tag 0; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 12
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "ShareGroupTargetAssignmentMetadataValue", "apiKey": 12,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "AssignmentEpoch", "type": "int32", "versions": "0+"},
    {"name": "AssignmentTimestamp", "type": "int64", "versions": "0+", "tag": 0, "taggedVersions": "0+", "ignorable": true}
  ]
}
"""
