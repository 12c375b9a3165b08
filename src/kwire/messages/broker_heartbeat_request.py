"""Generated from BrokerHeartbeatRequest.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["BrokerHeartbeatRequest"]


class BrokerHeartbeatRequest(base.Message, kw_only=True):
    """Request, api key 63; versions 0-2; flexible 0+; listeners controller."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    broker_epoch: int = -1
    """int64; versions 0+; default -1."""
    current_metadata_offset: int = 0
    """int64; versions 0+."""
    want_fence: bool = False
    """bool; versions 0+."""
    want_shut_down: bool = False
    """bool; versions 0+."""
    offline_log_dirs: list[uuid.UUID] = []
    """[]uuid; versions 1+; tag 0."""
    cordoned_log_dirs: list[uuid.UUID] | None = None
    """[]uuid; versions 2+; tag 1; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 63
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "BrokerHeartbeatRequest", "apiKey": 63,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "listeners": ["controller"],
  "fields": [
    {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "0+", "default": "-1"},
    {"name": "CurrentMetadataOffset", "type": "int64", "versions": "0+"},
    {"name": "WantFence", "type": "bool", "versions": "0+"},
    {"name": "WantShutDown", "type": "bool", "versions": "0+"},
    {"name": "OfflineLogDirs", "type": "[]uuid", "versions": "1+", "tag": 0, "taggedVersions": "1+"},
    {"name": "CordonedLogDirs", "type": "[]uuid", "versions": "2+", "tag": 1, "taggedVersions": "2+", "nullableVersions": "2+", "default": "null"}
  ]
}
"""
