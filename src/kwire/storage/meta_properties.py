"""`meta.properties`: the ids of a log directory, its node and its cluster.

Source: rule F-01; Kafka's MetaProperties, MetaPropertiesEnsemble.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from kwire.errors import Malformed
from kwire.identifiers import new_uuid, render_uuid
from kwire.storage.checkpoints import META_PROPERTIES, parse_properties, render_properties
from kwire.storage.file_system import FileSystem

__all__ = ["MetaProperties"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """The ids of a log directory. directory_id: "" if the file has none."""

    node_id: int
    cluster_id: str
    directory_id: str

    @classmethod
    def new(cls, node_id: int | None = None, cluster_id: str | None = None) -> MetaProperties:
        """Return the ids of a new directory; by default node 1 of a random cluster."""
        return cls(
            node_id=1 if node_id is None else node_id,
            cluster_id=cluster_id or render_uuid(new_uuid()),
            directory_id=render_uuid(new_uuid()),
        )

    @classmethod
    def parse(cls, data: bytes) -> MetaProperties:
        """Parse a file of version 0 or 1. Raises Malformed without a node id."""
        properties = parse_properties(data)
        node_id = properties.get("node.id", properties.get("broker.id", ""))
        if not node_id.isdecimal():
            raise Malformed("node.id and broker.id are missing or not numbers", 0)
        return cls(
            node_id=int(node_id),
            cluster_id=properties.get("cluster.id", ""),
            directory_id=properties.get("directory.id", ""),
        )

    def write(self, files: FileSystem, directory: str, now_ms: int) -> None:
        """Write the file into a directory. Raises LogError."""
        files.write_atomically(f"{directory}/{META_PROPERTIES}", self.render(now_ms))

    def render(self, now_ms: int) -> bytes:
        """Return the contents of the file, written at this time."""
        properties = {
            "version": "1",
            "cluster.id": self.cluster_id,
            "node.id": str(self.node_id),
            "directory.id": self.directory_id,
        }
        written = datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC)
        return render_properties(properties, written)
