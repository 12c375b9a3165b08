"""Generated from BrokerRegistrationRequest.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["BrokerRegistrationRequest", "Feature", "Listener"]


class Listener(base.Struct, kw_only=True):
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


class Feature(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key."""
    min_supported_version: int = 0
    """int16; versions 0+."""
    max_supported_version: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("listeners", "features")
class BrokerRegistrationRequest(base.Message, kw_only=True):
    """Request, api key 62; versions 0-4; flexible 0+; listeners controller."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    cluster_id: str = ""
    """string; versions 0+."""
    incarnation_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    listeners: base.Keyed[Listener] = base.keyed()
    """[]Listener; versions 0+."""
    features: base.Keyed[Feature] = base.keyed()
    """[]Feature; versions 0+."""
    rack: str | None = ""
    """string; versions 0+; nullable."""
    is_migrating_zk_broker: bool = False
    """bool; versions 1+."""
    log_dirs: list[uuid.UUID] = []
    """[]uuid; versions 2+; ignorable."""
    previous_broker_epoch: int = -1
    """int64; versions 3+; default -1; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    Listener: ClassVar[type[Listener]] = Listener
    Feature: ClassVar[type[Feature]] = Feature
    API_KEY: ClassVar[int | None] = 62
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "BrokerRegistrationRequest", "apiKey": 62,
  "validVersions": "0-4", "flexibleVersions": "0+",
  "listeners": ["controller"],
  "fields": [
    {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "ClusterId", "type": "string", "versions": "0+"},
    {"name": "IncarnationId", "type": "uuid", "versions": "0+"},
    {"name": "Listeners", "type": "[]Listener", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "uint16", "versions": "0+"},
      {"name": "SecurityProtocol", "type": "int16", "versions": "0+"}
    ]},
    {"name": "Features", "type": "[]Feature", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "MinSupportedVersion", "type": "int16", "versions": "0+"},
      {"name": "MaxSupportedVersion", "type": "int16", "versions": "0+"}
    ]},
    {"name": "Rack", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "IsMigratingZkBroker", "type": "bool", "versions": "1+"},
    {"name": "LogDirs", "type": "[]uuid", "versions": "2+", "ignorable": true},
    {"name": "PreviousBrokerEpoch", "type": "int64", "versions": "3+", "default": "-1", "ignorable": true}
  ]
}
"""
