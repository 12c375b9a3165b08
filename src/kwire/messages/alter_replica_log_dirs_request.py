"""Generated from AlterReplicaLogDirsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterReplicaLogDir", "AlterReplicaLogDirTopic", "AlterReplicaLogDirsRequest"]


class AlterReplicaLogDirTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key; topicName."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class AlterReplicaLogDir(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("path",)

    path: str = ""
    """string; versions 0+; map key."""
    topics: base.Keyed[AlterReplicaLogDirTopic] = base.keyed()
    """[]AlterReplicaLogDirTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("dirs")
class AlterReplicaLogDirsRequest(base.Message, kw_only=True):
    """Request, api key 34; versions 0-2; flexible 2+; deprecated 0; listeners broker, zkBroker."""

    dirs: base.Keyed[AlterReplicaLogDir] = base.keyed()
    """[]AlterReplicaLogDir; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AlterReplicaLogDirTopic: ClassVar[type[AlterReplicaLogDirTopic]] = AlterReplicaLogDirTopic
    AlterReplicaLogDir: ClassVar[type[AlterReplicaLogDir]] = AlterReplicaLogDir
    API_KEY: ClassVar[int | None] = 34
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "AlterReplicaLogDirsRequest", "apiKey": 34,
  "validVersions": "0-2", "deprecatedVersions": "0", "flexibleVersions": "2+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "Dirs", "type": "[]AlterReplicaLogDir", "versions": "0+", "fields": [
      {"name": "Path", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "Topics", "type": "[]AlterReplicaLogDirTopic", "versions": "0+", "fields": [
        {"name": "Name", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
        {"name": "Partitions", "type": "[]int32", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
