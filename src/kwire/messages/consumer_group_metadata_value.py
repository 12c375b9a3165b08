"""Generated from ConsumerGroupMetadataValue.json, Kafka 3.5.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ConsumerGroupMetadataValue"]


class ConsumerGroupMetadataValue(base.Message, kw_only=True):
    """Coordinator-value, record type 3; versions 0; flexible 0+."""

    epoch: int = 0
    """int32; versions 0+."""
    metadata_hash: int = 0
    """int64; versions 0+; tag 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 3
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "ConsumerGroupMetadataValue", "apiKey": 3,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Epoch", "type": "int32", "versions": "0+"},
    {"name": "MetadataHash", "type": "int64", "versions": "0+", "tag": 0, "taggedVersions": "0+"}
  ]
}
"""
