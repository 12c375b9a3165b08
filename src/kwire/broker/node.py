"""The state of a broker: everything that handlers work on, without sockets.

A node belongs to one thread, so nothing here takes a lock. Only disk access blocks.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

from kwire.broker import startup
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.client_metrics import ClientMetrics
from kwire.broker.clock import Clock, Timers
from kwire.broker.configs.configs import dynamic_settings, topic_log_config
from kwire.broker.configs.settings import Settings
from kwire.broker.context import RequestContext
from kwire.broker.controller import Controller
from kwire.broker.faults import Faults
from kwire.broker.fetch_sessions import FetchSessions
from kwire.broker.groups.node_log import open_coordinator as open_groups
from kwire.broker.groups.node_log import watch_topics
from kwire.broker.loggers import Loggers
from kwire.broker.metadata_log import MetadataLog
from kwire.broker.network.long_requests import LongRequests
from kwire.broker.network.throttling import Throttling
from kwire.broker.network.workers import Workers
from kwire.broker.request_log import RequestLog
from kwire.broker.security import Security
from kwire.broker.topics import Topic, TopicRegistry
from kwire.broker.transactions.partitions import open_coordinator as open_transactions
from kwire.errors import LogError
from kwire.identifiers import parse_uuid
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.topics.stored_metadata import apply_records, read_metadata
from kwire.messages.base import ZERO_UUID
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.storage.file_system import FileSystem

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
    """A broker on an open log directory. The constructor shows what a broker consists of, in order of dependency.

    endpoints: advertised (host, port) by listener name. faults, requests: fault injection and request log for tests.
    given_settings: the settings at start; settings: with dynamic broker configs applied.
    Raises LogError if the directory cannot be used, OptionError for invalid settings.
    """

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        endpoints: Mapping[str, tuple[str, int]],
        clock: Clock,
        timers: Timers,
        *,
        files: FileSystem | None = None,
        faults: Faults | None = None,
        requests: RequestLog | None = None,
    ) -> None:
        self.given_settings = settings
        self.endpoints = dict(endpoints)
        self.clock, self.timers = clock, timers
        self.workers, self.long_requests = Workers(), LongRequests()
        self.files = files or FileSystem()
        self.faults = faults or Faults()
        self.requests = RequestLog(0) if requests is None else requests
        self.loggers = Loggers()

        # The cluster: topics, configs, brokers, ACLs and everything else in the metadata log
        self.files.make_directory(str(directory))
        stored = read_metadata(directory / f"{METADATA_TOPIC}-0")
        self.cluster = ClusterState()
        self.topics = TopicRegistry(self.cluster)
        apply_records(stored, self.cluster)
        self.node_id = settings.node_id
        self.settings = dynamic_settings(self)

        with contextlib.ExitStack() as undo:
            # The logs, and the leadership of the metadata log
            self.log_manager = startup.open_logs(directory, self.settings, self.topics, self.files, clock.now_ms())
            undo.callback(self.log_manager.close, clean=False)
            self.node_id, self.cluster_id = self.log_manager.node_id, self.log_manager.cluster_id
            directory_id = self.log_manager.directory_id
            self.directory_id = parse_uuid(directory_id) if directory_id else ZERO_UUID
            self.metadata_log = MetadataLog.open(
                self.files,
                self.log_manager.path,
                clock,
                node_id=self.node_id,
                settings=self.settings,
                stored=stored,
                cluster=self.cluster,
                clean=self.log_manager.was_clean,
            )
            self.controller = Controller(self)
            if self.node_id != settings.node_id:  # taken from the directory: its dynamic configs apply
                self.apply_broker_configs()
            startup.register(self, is_new=not stored.records)
            undo.pop_all()
            undo.callback(startup.unregister, self)

            # The services for clients
            self.security = Security(self.cluster, self.controller.commit, clock, self.settings)
            self.throttling = Throttling(self.security.quotas, clock, self.settings)
            self.client_metrics = ClientMetrics(self.cluster, clock)
            self.fetch_sessions = FetchSessions(clock, settings.max_incremental_fetch_session_cache_slots)
            self.start_coordinators()
            watch_topics(self)
            undo.pop_all()

    def close(self) -> None:
        """Stop the coordinators and close the log directory cleanly."""
        with contextlib.ExitStack() as steps:  # in reverse order
            steps.callback(self.loggers.restore)
            steps.callback(self.workers.close)
            steps.callback(startup.unregister, self)
            steps.callback(self.stop_coordinators)
            steps.callback(self.long_requests.stop)

    def start_coordinators(self) -> None:
        """Start coordinators that read their topics. Raises LogError, OptionError."""
        self.groups = open_groups(self)
        try:
            self.transactions = open_transactions(self)
        except BaseException:
            self.groups.stop()
            raise

    def stop_coordinators(self) -> None:
        """Stop the coordinators; waiting members get NOT_COORDINATOR."""
        self.transactions.stop()
        self.groups.stop()

    def may(self, context: RequestContext, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Return whether the sender of a request may perform an operation on a resource."""
        return self.security.may(context, operation, kind, name)

    def authorize(self, context: RequestContext, operation: Operation, kind: ResourceType, name: str) -> None:
        """Raise BrokerError unless the sender of a request may perform an operation on a resource."""
        if not self.may(context, operation, kind, name):
            raise refusal(*AUTHORIZATION_ERRORS[kind])

    def endpoint(self, listener: str) -> tuple[str, int]:
        """Return the (host, port) advertised on a listener."""
        return self.endpoints.get(listener) or next(iter(self.endpoints.values()), ("", -1))

    # Logs

    def open_logs(self, topic: Topic) -> Iterator[None]:
        """Open the logs of a topic's partitions, creating missing ones; yields after each that was created.

        Stops if the topic is deleted in the meantime.
        """
        manager, now_ms = self.log_manager, self.clock.now_ms()
        config = topic_log_config(self.settings, topic.configs)
        manager.set_config(topic.name, config)
        created = False
        for index, partition in list(topic.partitions.items()):
            if partition.log is not None:
                continue
            log = manager.logs.get((topic.name, index))
            if log is None:
                created = True
                log = manager.create(
                    topic.name, index, now_ms=now_ms, topic_id=topic.topic_id, config=config, sync=False
                )
            elif log.topic_id is None:
                log.assign_topic_id(topic.topic_id)
            partition.attach(log)
            if created:
                yield
                if topic.is_deleted:
                    return
        if created:
            manager.sync_directory()

    def reopen_logs(self) -> None:
        """Retry to open logs that could not be created or written, such as on a full disk."""
        for partition in self.topics.partitions():
            topic = partition.topic
            if not topic.is_opening and (partition.log is None or partition.log.has_failed):
                try:
                    reopened = self.log_manager.reopen(
                        topic.name, partition.index, now_ms=self.clock.now_ms(), topic_id=topic.topic_id
                    )
                    partition.attach(reopened)
                except LogError as error:
                    log.warning("%s cannot be written: %s", partition.name, error)
                else:
                    reopened.high_watermark = reopened.log_end_offset

    def delete_logs(self, topic: Topic) -> None:
        """Delete a topic's logs. Fetches that wait for its records are completed with an error."""
        now_ms = self.clock.now_ms()
        topic.is_deleted = True
        for index, partition in topic.partitions.items():
            if partition.log is not None:
                partition.log = None
                self.log_manager.delete(topic.name, index, now_ms=now_ms, sync=False)
            partition.notify()
        self.log_manager.sync_directory()
        self.log_manager.set_config(topic.name, None)

    def apply_topic_configs(self, topic: Topic) -> None:
        """Apply a topic's configs to its logs."""
        self.log_manager.set_config(topic.name, topic_log_config(self.settings, topic.configs))

    def apply_broker_configs(self) -> None:
        """Apply dynamic broker configs to the settings and to the defaults of topics."""
        self.settings = dynamic_settings(self)
        self.log_manager.default_config = topic_log_config(self.settings, {})
        for topic in self.topics:
            self.apply_topic_configs(topic)
