"""Generated from ZkMigrationStateRecord.json, Kafka 3.4.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ZkMigrationStateRecord"]


class ZkMigrationStateRecord(base.Message, kw_only=True):
    """Metadata, record type 21; versions 0; flexible 0+."""

    zk_migration_state: int = 0
    """int8; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 21
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "ZkMigrationStateRecord", "apiKey": 21,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ZkMigrationState", "type": "int8", "versions": "0+"}
  ]
}
"""
