"""Generated from RegisterControllerRecord.json, Kafka 3.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["ControllerEndpoint", "ControllerFeature", "RegisterControllerRecord"]


class ControllerEndpoint(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key."""
    host: str = ""
    """string; versions 0+."""
    port: int = 0
    """uint16; versions 0+."""
    security_protocol: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ControllerFeature(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key."""
    min_supported_version: int = 0
    """int16; versions 0+."""
    max_supported_version: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("end_points", "features")
class RegisterControllerRecord(base.Message, kw_only=True):
    """Metadata, record type 27; versions 0; flexible 0+."""

    controller_id: int = 0
    """int32; versions 0+."""
    incarnation_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    zk_migration_ready: bool = False
    """bool; versions 0+."""
    end_points: base.Keyed[ControllerEndpoint] = base.keyed()
    """[]ControllerEndpoint; versions 0+."""
    features: base.Keyed[ControllerFeature] = base.keyed()
    """[]ControllerFeature; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ControllerEndpoint: ClassVar[type[ControllerEndpoint]] = ControllerEndpoint
    ControllerFeature: ClassVar[type[ControllerFeature]] = ControllerFeature
    API_KEY: ClassVar[int | None] = 27
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "RegisterControllerRecord", "apiKey": 27,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ControllerId", "type": "int32", "versions": "0+"},
    {"name": "IncarnationId", "type": "uuid", "versions": "0+"},
    {"name": "ZkMigrationReady", "type": "bool", "versions": "0+"},
    {"name": "EndPoints", "type": "[]ControllerEndpoint", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "uint16", "versions": "0+"},
      {"name": "SecurityProtocol", "type": "int16", "versions": "0+"}
    ]},
    {"name": "Features", "type": "[]ControllerFeature", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "MinSupportedVersion", "type": "int16", "versions": "0+"},
      {"name": "MaxSupportedVersion", "type": "int16", "versions": "0+"}
    ]}
  ]
}
"""
