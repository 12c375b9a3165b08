"""Everything the handlers share, without a socket: settings, time, topics, logs, coordinators.

One thread owns it, so nothing here is locked; nothing here waits for anything but the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.clock import Clock, Timers
from kwire.broker.context import RequestContext
from kwire.broker.controller import Controller
from kwire.broker.identifiers import new_uuid, uuid_text
from kwire.broker.image import MetadataImage
from kwire.broker.settings import Settings
from kwire.broker.topics import Topic

__all__ = ["Node"]


class Node:
    """One broker's state.

    endpoints: listener name -> (host, port) that clients are told. groups, transactions, security: None until their
    owners set them; without security everybody may do everything.
    """

    def __init__(self, settings: Settings, clock: Clock, timers: Timers, *, cluster_id: str | None = None) -> None:
        self.settings, self.clock, self.timers = settings, clock, timers
        self.cluster_id = cluster_id or uuid_text(new_uuid())
        self.node_id = settings.node_id
        self.directory_id = new_uuid()
        self.endpoints: dict[str, tuple[str, int]] = {}
        self.image = MetadataImage()
        self.topics = self.image.topics
        self.metadata_log: Any = None
        self.log_manager: Any = None
        self.controller = Controller(self)
        self.groups: Any = None
        self.transactions: Any = None
        self.security: Any = None
        self.on_close: list[Callable[[], object]] = []

    def may(self, context: RequestContext, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether the sender of a request may do that to a resource."""
        return self.security is None or bool(self.security.may(context, operation, kind, name))

    def endpoint(self, listener: str) -> tuple[str, int]:
        """(host, port) for clients of that listener."""
        return self.endpoints.get(listener) or next(iter(self.endpoints.values()), ("", -1))

    # Logs

    def open_logs(self, topic: Topic) -> None:
        """Open the logs of those partitions of a topic that have none yet."""

    def delete_logs(self, topic: Topic) -> None:
        """Remove a topic's logs."""

    def apply_topic_configs(self, topic: Topic) -> None:
        """Make a topic's settings those of its logs."""

    def apply_broker_configs(self) -> None:
        """Make the settings that were altered while the broker ran its settings."""
