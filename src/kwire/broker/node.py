"""Everything the handlers share, without a socket: settings, time, topics, logs, coordinators.

One thread owns it, so nothing here is locked; nothing here waits for anything but the disk.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.client_metrics import ClientMetrics
from kwire.broker.clock import Clock, Timers
from kwire.broker.configs import dynamic_settings, topic_log_config
from kwire.broker.context import RequestContext
from kwire.broker.controller import Controller
from kwire.broker.faults import Faults
from kwire.broker.fetch_sessions import FetchSessions
from kwire.broker.request_log import RequestLog
from kwire.broker.settings import Settings
from kwire.broker.throttling import Throttling
from kwire.broker.topics import Topic, TopicRegistry
from kwire.errors import LogError
from kwire.internal_topics.cluster_state import ClusterState
from kwire.messages.base import ZERO_UUID
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.storage.file_system import FileSystem

if TYPE_CHECKING:
    from kwire.broker.groups.coordinator import GroupCoordinator
    from kwire.broker.metadata_log import MetadataLog
    from kwire.broker.security import Security
    from kwire.broker.transactions import TransactionCoordinator
    from kwire.broker.workers import Workers
    from kwire.log.log_manager import LogManager

__all__ = ["Node"]

log = logging.getLogger("kwire.broker")

AUTHORIZATION_ERRORS = {
    ResourceType.CLUSTER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    ResourceType.GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    ResourceType.TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    ResourceType.TRANSACTIONAL_ID: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
}
"""Error code and Kafka's message by type of the resource."""


class Node:
    """One broker's state. `startup.start` opens its log directory; before that, log_manager and what follows is absent.

    given_settings: as at the start; settings: with what was changed since. endpoints: listener name -> (host, port)
    that clients are told. faults, requests: what tests make go wrong, and
    see.
    """

    log_manager: LogManager
    metadata_log: MetadataLog
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    workers: Workers
    security: Security

    def __init__(self, settings: Settings, clock: Clock, timers: Timers) -> None:
        self.given_settings = self.settings = settings
        self.clock, self.timers = clock, timers
        self.node_id, self.cluster_id, self.directory_id = settings.node_id, "", ZERO_UUID
        self.endpoints: dict[str, tuple[str, int]] = {}
        self.cluster = ClusterState()
        self.topics = TopicRegistry(self.cluster)
        self.controller = Controller(self)
        self.fetch_sessions = FetchSessions(clock, settings.max_incremental_fetch_session_cache_slots)
        self.client_metrics = ClientMetrics(self)
        self.throttling = Throttling(self)
        self.files = FileSystem()
        self.faults = Faults()
        self.requests = RequestLog(0)

    def may(self, context: RequestContext, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Return whether the sender of a request may perform an operation on a resource."""
        return self.security.may(context, operation, kind, name)

    def authorize(self, context: RequestContext, operation: Operation, kind: ResourceType, name: str) -> None:
        """Raise BrokerError unless the sender of a request may perform an operation on a resource."""
        if not self.may(context, operation, kind, name):
            raise refusal(*AUTHORIZATION_ERRORS[kind])

    def endpoint(self, listener: str) -> tuple[str, int]:
        """(host, port) for clients of that listener."""
        return self.endpoints.get(listener) or next(iter(self.endpoints.values()), ("", -1))

    # Logs

    def open_logs(self, topic: Topic) -> None:
        """Open the logs of those partitions of a topic that have none yet; make those that are not there."""
        manager, now_ms = self.log_manager, self.clock.now_ms()
        config = topic_log_config(self.settings, topic.configs)
        manager.set_config(topic.name, config)
        for index, partition in topic.partitions.items():
            if partition.log is None:
                partition.log = manager.logs.get((topic.name, index)) or manager.create(
                    topic.name, index, now_ms=now_ms, topic_id=topic.topic_id, config=config
                )

    def reopen_logs(self) -> None:
        """Open the logs again that could not be made or written, such as on a full disk; they may fail again."""
        for topic in self.topics:
            for index, partition in topic.partitions.items():
                if partition.log is None or partition.log.has_failed:
                    try:
                        partition.log = self.log_manager.reopen(
                            topic.name, index, now_ms=self.clock.now_ms(), topic_id=topic.topic_id
                        )
                    except LogError as error:
                        log.warning("%s cannot be written: %s", partition.name, error)
                    else:
                        partition.log.high_watermark = partition.log.log_end_offset

    def delete_logs(self, topic: Topic) -> None:
        """Remove a topic's logs. Who waits for records there is woken, to hear that the topic has gone."""
        now_ms = self.clock.now_ms()
        topic.is_deleted = True
        for index, partition in topic.partitions.items():
            if partition.log is not None:
                partition.log = None
                self.log_manager.delete(topic.name, index, now_ms=now_ms)
            for watcher in tuple(partition.watchers):
                watcher()
        self.log_manager.set_config(topic.name, None)

    def apply_topic_configs(self, topic: Topic) -> None:
        """Make a topic's settings those of its logs."""
        self.log_manager.set_config(topic.name, topic_log_config(self.settings, topic.configs))

    def apply_broker_configs(self) -> None:
        """Make the settings that were altered while the broker runs its settings, and the defaults of its topics."""
        self.settings = dynamic_settings(self)
        self.log_manager.default_config = topic_log_config(self.settings, {})
        for topic in self.topics:
            self.apply_topic_configs(topic)
