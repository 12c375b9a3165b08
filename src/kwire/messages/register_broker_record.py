"""Generated from RegisterBrokerRecord.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["BrokerEndpoint", "BrokerFeature", "RegisterBrokerRecord"]


class BrokerEndpoint(base.Struct, kw_only=True):
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


class BrokerFeature(base.Struct, kw_only=True):
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
class RegisterBrokerRecord(base.Message, kw_only=True):
    """Metadata, record type 0; versions 0-4; flexible 0+."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    is_migrating_zk_broker: bool = False
    """bool; versions 2+."""
    incarnation_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    broker_epoch: int = 0
    """int64; versions 0+."""
    end_points: base.Keyed[BrokerEndpoint] = base.keyed()
    """[]BrokerEndpoint; versions 0+."""
    features: base.Keyed[BrokerFeature] = base.keyed()
    """[]BrokerFeature; versions 0+."""
    rack: str | None = ""
    """string; versions 0+; nullable."""
    fenced: bool = True
    """bool; versions 0+; default true."""
    in_controlled_shutdown: bool = False
    """bool; versions 1+."""
    log_dirs: list[uuid.UUID] = []
    """[]uuid; versions 3+; tag 0."""
    cordoned_log_dirs: list[uuid.UUID] | None = None
    """[]uuid; versions 4+; tag 1; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    BrokerEndpoint: ClassVar[type[BrokerEndpoint]] = BrokerEndpoint
    BrokerFeature: ClassVar[type[BrokerFeature]] = BrokerFeature
    API_KEY: ClassVar[int | None] = 0
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "RegisterBrokerRecord", "apiKey": 0,
  "validVersions": "0-4", "flexibleVersions": "0+",
  "fields": [
    {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "IsMigratingZkBroker", "type": "bool", "versions": "2+"},
    {"name": "IncarnationId", "type": "uuid", "versions": "0+"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "0+"},
    {"name": "EndPoints", "type": "[]BrokerEndpoint", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "uint16", "versions": "0+"},
      {"name": "SecurityProtocol", "type": "int16", "versions": "0+"}
    ]},
    {"name": "Features", "type": "[]BrokerFeature", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "MinSupportedVersion", "type": "int16", "versions": "0+"},
      {"name": "MaxSupportedVersion", "type": "int16", "versions": "0+"}
    ]},
    {"name": "Rack", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "Fenced", "type": "bool", "versions": "0+", "default": "true"},
    {"name": "InControlledShutdown", "type": "bool", "versions": "1+"},
    {"name": "LogDirs", "type": "[]uuid", "versions": "3+", "tag": 0, "taggedVersions": "3+"},
    {"name": "CordonedLogDirs", "type": "[]uuid", "versions": "4+", "tag": 1, "taggedVersions": "4+", "nullableVersions": "4+", "default": "null"}
  ]
}
"""
