"""Generated from BrokerRegistrationChangeRecord.json, Kafka 3.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["BrokerRegistrationChangeRecord"]


class BrokerRegistrationChangeRecord(base.Message, kw_only=True):
    """Metadata, record type 17; versions 0-3; flexible 0+."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    broker_epoch: int = 0
    """int64; versions 0+."""
    fenced: int = 0
    """int8; versions 0+; tag 0."""
    in_controlled_shutdown: int = 0
    """int8; versions 1+; tag 1."""
    log_dirs: list[uuid.UUID] = []
    """[]uuid; versions 2+; tag 2."""
    cordoned_log_dirs: list[uuid.UUID] | None = None
    """[]uuid; versions 3+; tag 3; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 17
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "BrokerRegistrationChangeRecord", "apiKey": 17,
  "validVersions": "0-3", "flexibleVersions": "0+",
  "fields": [
    {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "0+"},
    {"name": "Fenced", "type": "int8", "versions": "0+", "tag": 0, "taggedVersions": "0+"},
    {"name": "InControlledShutdown", "type": "int8", "versions": "1+", "tag": 1, "taggedVersions": "1+"},
    {"name": "LogDirs", "type": "[]uuid", "versions": "2+", "tag": 2, "taggedVersions": "2+"},
    {"name": "CordonedLogDirs", "type": "[]uuid", "versions": "3+", "tag": 3, "taggedVersions": "3+", "nullableVersions": "3+", "default": "null"}
  ]
}
"""
