"""The state of a broker: everything that handlers work on, without sockets.

A node belongs to one thread, so nothing here takes a lock. Only disk access blocks.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from kwire.broker import startup
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.client_metrics import ClientMetrics
from kwire.broker.clock import Clock, Timers
from kwire.broker.configs.broker_configs import BrokerConfigs, dynamic_settings
from kwire.broker.configs.settings import Settings
from kwire.broker.context import RequestContext
from kwire.broker.controller import Controller
from kwire.broker.coordinators import Coordinators
from kwire.broker.faults import Faults
from kwire.broker.features import Features
from kwire.broker.fetch_sessions import FetchSessions
from kwire.broker.groups.coordinator import GroupCoordinator
from kwire.broker.loggers import Loggers
from kwire.broker.metadata_log import MetadataLog
from kwire.broker.network.long_requests import LongRequests
from kwire.broker.network.throttling import Throttling
from kwire.broker.network.workers import Workers
from kwire.broker.replication.leadership import Leadership
from kwire.broker.replication.members import NO_PEERS, Member, Members, Peers
from kwire.broker.replication.placement import Placement
from kwire.broker.request_log import RequestLog
from kwire.broker.security import Security
from kwire.broker.shares.sessions import ShareSessions
from kwire.broker.topic_creation import TopicCreation
from kwire.broker.topic_logs import TopicLogs
from kwire.broker.topics import TopicRegistry
from kwire.broker.transactions.coordinator import TransactionCoordinator
from kwire.broker.transactions.partitions import PartitionMarkers
from kwire.errors import OptionError
from kwire.identifiers import parse_uuid
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.enums import ConfigResource
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.topics.stored_metadata import StoredMetadata, apply_records, read_metadata
from kwire.messages.base import ZERO_UUID
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.storage.file_system import FileSystem

__all__ = ["Instruments", "Node"]

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


class Instruments(NamedTuple):
    """Fault injection and the request log, for tests."""

    faults: Faults
    requests: RequestLog


class Node:
    """A broker on an open log directory. The constructor shows what a broker consists of, in order of dependency.

    settings: at start. endpoints: advertised (host, port) by listener name. peers: the other nodes of the cluster; see
    `joined`.
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
        instruments: Instruments | None = None,
        peers: Peers = NO_PEERS,
    ) -> None:
        self.endpoints = dict(endpoints)
        self.clock, self.timers = clock, timers
        self.workers, self.long_requests = Workers(), LongRequests()
        self.files = files or FileSystem()
        self.faults, self.requests = instruments or Instruments(Faults({}), RequestLog(0))
        self.loggers = Loggers()

        # The cluster: topics, configs, brokers, ACLs and everything else in the metadata log
        self.files.make_directory(str(directory))
        stored = read_metadata(directory / f"{METADATA_TOPIC}-0")
        self.cluster = ClusterState()
        self.topics = TopicRegistry(self.cluster)
        apply_records(stored, self.cluster)
        self.features = Features(self.cluster, settings)

        with contextlib.ExitStack() as undo:
            # The logs. The node id may be that of the directory, so the broker's configs are known after opening it
            opening = dynamic_settings(settings, self.cluster, settings.node_id)
            self.log_manager = startup.open_logs(directory, opening, self.topics, self.files, clock.now_ms())
            undo.callback(self.log_manager.close, clean=False)
            self.node_id, self.cluster_id = self.log_manager.node_id, self.log_manager.cluster_id
            directory_id = self.log_manager.directory_id
            self.directory_id = parse_uuid(directory_id) if directory_id else ZERO_UUID
            self.configs = BrokerConfigs(
                settings,
                self.cluster,
                node_id=self.node_id,
                endpoints=self.endpoints,
                directory=self.log_manager.path,
            )
            self.topic_logs = TopicLogs(self.log_manager, self.topics, self.configs, clock)
            if self.node_id != settings.node_id:
                self.topic_logs.apply_default_configs()

            self._join_cluster(stored, peers)
            undo.pop_all()
            undo.callback(startup.unregister, self.controller, self.log_manager)

            # The services for clients
            self.security = Security(self.cluster, self.controller.commit, clock, self.settings)
            self.throttling = Throttling(self.security.quotas, clock, self.settings)
            self.client_metrics = ClientMetrics(self.cluster, clock)
            self.fetch_sessions = FetchSessions(clock, settings.max_incremental_fetch_session_cache_slots)
            self.share_sessions = ShareSessions(settings.group_share_max_share_sessions)
            self.share_sessions_of = {self.node_id: self.share_sessions}  # of all nodes, by id
            self.topic_creation = TopicCreation(self.topics, self.controller, self.configs)
            self.coordinators = Coordinators(
                clock=clock,
                timers=timers,
                settings=self.settings,
                topics=self.topics,
                features=self.features,
                topic_creation=self.topic_creation,
                configs_of=functools.partial(self.cluster.configs_of, ConfigResource.GROUP),
                claim_producer_ids=self.controller.claim_producer_ids,
            )
            self.leadership.observers.append(self.coordinators.leader_changed)
            undo.pop_all()

    def _join_cluster(self, stored: StoredMetadata, peers: Peers) -> None:
        """Become the leader of the metadata log, register the nodes and open all logs."""
        self.metadata_log = MetadataLog.open(
            self.files,
            self.log_manager.path,
            self.clock,
            node_id=self.node_id,
            settings=self.settings,
            stored=stored,
            cluster=self.cluster,
            clean=self.log_manager.was_clean,
        )
        this = Member(
            node_id=self.node_id,
            endpoints=self.endpoints,
            rack=self.settings.broker_rack or None,
            directory_id=self.directory_id,
        )
        self.members = Members([this, *(self._known(each) for each in peers.members)])
        self.controller = Controller(
            metadata_log=self.metadata_log,
            cluster=self.cluster,
            topics=self.topics,
            topic_logs=self.topic_logs,
            configs=self.configs,
            members=self.members,
            placement=Placement(self.members, peers.seed),
        )
        startup.register(self.controller, self.topic_logs, self.configs, is_new=not stored.records)
        self.leadership = Leadership(
            self.topics,
            self.members,
            self.controller.commit,
            self.log_manager,
            self.clock,
            has_eligible=lambda: self.features.eligible_leader_replicas_version > 0,
        )

    def close(self) -> None:
        """Stop the coordinators and close the log directory cleanly."""
        with contextlib.ExitStack() as steps:  # in reverse order
            steps.callback(self.loggers.restore)
            steps.callback(self.workers.close)
            steps.callback(startup.unregister, self.controller, self.log_manager)
            steps.callback(self.coordinators.stop)
            steps.callback(self.long_requests.stop)

    @property
    def settings(self) -> Settings:
        """The settings at start with the dynamic broker configs applied."""
        return self.configs.settings

    def _known(self, member: Member) -> Member:
        """Return another node with the id of its directory in the metadata. Raises OptionError for this one's id."""
        if member.node_id == self.node_id:
            raise OptionError(f"the log directory is that of node {self.node_id}; a cluster needs that of node 1")
        stored = self.cluster.brokers.get(member.node_id)
        if stored is None or not stored.log_dirs:
            return member
        return msgspec.structs.replace(member, directory_id=stored.log_dirs[0])

    def joined(self, member: Member) -> Node:
        """Return another node of the same cluster: it shares everything but what a client sees of one broker."""
        other = copy.copy(self)
        other.node_id, other.endpoints = member.node_id, dict(member.endpoints)
        known = self.controller.node_configs
        if member.node_id not in known:
            known[member.node_id] = BrokerConfigs(
                self.configs.given.replace(node_id=member.node_id, broker_rack=member.rack or ""),
                self.cluster,
                node_id=member.node_id,
                endpoints=other.endpoints,
                directory=self.log_manager.path,
            )
        other.configs = known[member.node_id]
        other.throttling = Throttling(self.security.quotas, self.clock, other.settings)
        slots = other.settings.max_incremental_fetch_session_cache_slots
        other.fetch_sessions = FetchSessions(self.clock, slots)
        other.share_sessions = ShareSessions(other.settings.group_share_max_share_sessions)
        self.share_sessions_of[member.node_id] = other.share_sessions
        return other

    @property
    def groups(self) -> GroupCoordinator:
        """The coordinator of groups."""
        return self.coordinators.groups

    @property
    def transactions(self) -> TransactionCoordinator:
        """The coordinator of transactions."""
        return self.coordinators.transactions

    @property
    def markers(self) -> PartitionMarkers:
        """The writer of transaction markers."""
        return self.coordinators.markers

    def coordinates(self, topic_name: str, key: str) -> bool:
        """Return whether this node coordinates the group or transactional id that an internal topic holds."""
        return self.members.is_single or self.coordinators.leader_of(topic_name, key) == self.node_id

    def check_coordinator(self, topic_name: str, key: str) -> None:
        """Raise BrokerError (NOT_COORDINATOR) unless this node coordinates a group or transactional id."""
        if not self.coordinates(topic_name, key):
            raise refusal(ErrorCode.NOT_COORDINATOR, "This is not the correct coordinator.")

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
