"""Generated from StreamsGroupMetadataValue.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["LastAssignmentConfig", "StreamsGroupMetadataValue"]


class LastAssignmentConfig(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    key: str = ""
    """string; versions 0+."""
    value: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StreamsGroupMetadataValue(base.Message, kw_only=True):
    """Coordinator-value, record type 17; versions 0; flexible 0+."""

    epoch: int = 0
    """int32; versions 0+."""
    metadata_hash: int = 0
    """int64; versions 0+."""
    validated_topology_epoch: int = -1
    """int32; versions 0+; tag 0; default -1."""
    last_assignment_configs: list[LastAssignmentConfig] | None = []
    """[]LastAssignmentConfig; versions 0+; tag 1; nullable."""
    stored_description_topology_epoch: int = -1
    """int32; versions 0+; tag 2; default -1."""
    failed_description_topology_epoch: int = -1
    """int32; versions 0+; tag 3; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    LastAssignmentConfig: ClassVar[type[LastAssignmentConfig]] = LastAssignmentConfig
    API_KEY: ClassVar[int | None] = 17
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "StreamsGroupMetadataValue", "apiKey": 17,
  "validVersions": "0", "flexibleVersions": "0+",
  "commonStructs": [
    {"name": "LastAssignmentConfig", "versions": "0+", "fields": [
      {"name": "Key", "type": "string", "versions": "0+"},
      {"name": "Value", "type": "string", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "Epoch", "type": "int32", "versions": "0+"},
    {"name": "MetadataHash", "type": "int64", "versions": "0+"},
    {"name": "ValidatedTopologyEpoch", "type": "int32", "versions": "0+", "tag": 0, "taggedVersions": "0+", "default": "-1"},
    {"name": "LastAssignmentConfigs", "type": "[]LastAssignmentConfig", "versions": "0+", "tag": 1, "taggedVersions": "0+", "nullableVersions": "0+"},
    {"name": "StoredDescriptionTopologyEpoch", "type": "int32", "versions": "0+", "tag": 2, "taggedVersions": "0+", "default": "-1"},
    {"name": "FailedDescriptionTopologyEpoch", "type": "int32", "versions": "0+", "tag": 3, "taggedVersions": "0+", "default": "-1"}
  ]
}
"""
