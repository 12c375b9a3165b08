"""A real group coordinator on a manual clock, with its log in memory instead of sockets and files."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kwire.broker.clock import ManualClock
from kwire.broker.configs.settings import Settings
from kwire.broker.context import Peer, RequestContext
from kwire.broker.coordinator_log import CoordinatorRecord
from kwire.broker.groups import GroupCoordinator
from kwire.broker.groups.store import GroupStore
from kwire.broker.shares.coordinator import ShareCoordinator
from kwire.broker.topics import Topic, TopicRegistry
from kwire.broker.transactions import NO_PRODUCER, ProducerIdAndEpoch
from kwire.errors import BrokerError, LogError
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.coordinator_records import decode_group, decode_share_state
from kwire.internal_topics.enums import ConfigResource
from kwire.internal_topics.metadata_records import metadata_record
from kwire.internal_topics.typed_record import UNKNOWN, Decoder, TypedRecord
from kwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitValue,
    PartitionRecord,
    SyncGroupRequest,
    TopicRecord,
)
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.record_values import write_prefixed

PARTITIONS = 3
GROUPS = "__consumer_offsets"


def logged(
    partition: int,
    offset: int,
    key: bytes,
    value: bytes | None,
    producer: ProducerIdAndEpoch,
    topic: str = GROUPS,
    decoder: Decoder = decode_group,
) -> TypedRecord:
    """Return a record in the form of the log."""
    record = TypedRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=0,
        kind=UNKNOWN,
        raw_key=key,
        raw_value=value,
        is_transactional=producer != NO_PRODUCER,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
    )
    decoder(record)
    return record


class MemoryLog:
    """A coordinator's topic in memory, `__consumer_offsets` or another. broken: the error of the next appends."""

    def __init__(self, topic: str = GROUPS, decoder: Decoder = decode_group) -> None:
        self._topic, self._decoder = topic, decoder
        self.partitions: list[list[TypedRecord]] = [[] for _ in range(PARTITIONS)]
        self.broken: Exception | None = None

    def partition_count(self) -> int:
        return len(self.partitions)

    def append(
        self, partition: int, records: Sequence[tuple[bytes, bytes | None]], producer: ProducerIdAndEpoch = NO_PRODUCER
    ) -> int:
        if self.broken is not None:
            raise self.broken
        log = self.partitions[partition]
        first = len(log)
        for index, (key, value) in enumerate(records):
            log.append(logged(partition, first + index, key, value, producer, self._topic, self._decoder))
        return first

    def append_marker(self, partition: int, producer_id: int, commit: bool) -> None:
        marker = TypedRecord(
            topic="__consumer_offsets",
            partition=partition,
            offset=0,
            timestamp=0,
            kind="COMMIT" if commit else "ABORT",
            is_control=True,
            producer_id=producer_id,
        )
        self.partitions[partition].append(marker)

    def replay(self, partition: int | None = None) -> Iterator[TypedRecord]:
        for log in self.partitions:
            yield from log

    def records(self) -> list[CoordinatorRecord]:
        """Return all records of all partitions."""
        return [
            CoordinatorRecord(record.key, record.value, record.version or 0)
            for record in self.replay()
            if record.key is not None
        ]


class Responses(list[Any]):
    """The responses, in order; `.one` is the only one."""

    def __call__(self, response: Any) -> None:
        self.append(response)

    @property
    def one(self) -> Any:
        assert len(self) == 1
        return self[0]


def subscription(*topics: str, owned: dict[str, list[int]] | None = None, version: int = 3) -> bytes:
    """Encode the subscription of a consumer, for JoinGroup."""
    message = ConsumerProtocolSubscription(
        topics=list(topics),
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in (owned or {}).items()
        ],
    )
    return write_prefixed(message, version)


def assignment(**topics: list[int]) -> bytes:
    """Encode the assignment of a leader, for SyncGroup."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ]
    )
    return write_prefixed(message, 3)


class Bench:
    """A coordinator with its clock, topics and log."""

    def __init__(self, **settings: Any) -> None:
        self.settings = Settings(**settings)
        self.clock = ManualClock()
        self.cluster = ClusterState()
        self.topics = TopicRegistry(self.cluster)
        self.log = MemoryLog()
        self.state_log = MemoryLog("__share_group_state", decode_share_state)
        self.coordinator = self.start()

    def start(self) -> GroupCoordinator:
        """Start a coordinator on the current log."""
        store = GroupStore(self.clock, self.clock.timers, self.settings, self.topics, self.log, self.configs_of)
        states = ShareCoordinator(self.clock, self.settings, self.topics, self.state_log)
        states.load()
        coordinator = GroupCoordinator(store, states)
        coordinator.start()
        return coordinator

    def configs_of(self, group_id: str) -> Mapping[str, str]:
        """Return the configs of a group."""
        return self.cluster.configs_of(ConfigResource.GROUP, group_id)

    def restart(self) -> None:
        """Restart the broker; state that is not in the log is lost."""
        self.coordinator.store.timers.cancel_all()
        self.coordinator = self.start()

    def topic(self, name: str, partitions: int) -> Topic:
        """Create a topic, or add partitions to it."""
        topic_id = uuid.uuid5(uuid.NAMESPACE_DNS, name)
        if self.topics.get(name) is None:
            self.cluster.apply(metadata_record(TopicRecord(name=name, topic_id=topic_id), 0))
        topic = self.topics.get(name)
        assert topic is not None
        for index in range(len(topic.partitions), partitions):
            self.cluster.apply(metadata_record(PartitionRecord(partition_id=index, topic_id=topic_id), 1))
        self.coordinator.topics_changed()
        return topic

    @staticmethod
    def context(version: int, client_id: str = "c") -> RequestContext:
        peer = Peer(connection_id="", host="10.0.0.1", port=1, listener="PLAINTEXT")
        return RequestContext(
            peer=peer, api_key=11, api_version=version, correlation_id=0, client_id=client_id, request_bytes=0
        )

    # --- the classic protocol ---

    def join(self, group_id: str, member_id: str = "", *, version: int = 9, **fields: Any) -> Responses:
        """Send JoinGroup, by default as a consumer of topic "t"; errors are responses too."""
        protocols = fields.pop("protocols", {"range": subscription("t")})
        request = JoinGroupRequest(
            group_id=group_id,
            member_id=member_id,
            protocol_type=fields.pop("protocol_type", "consumer"),
            session_timeout_ms=fields.pop("session_timeout_ms", 10_000),
            rebalance_timeout_ms=fields.pop("rebalance_timeout_ms", 60_000),
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols.items()
            ],
            **fields,
        )
        responses = Responses()
        try:
            self.coordinator.join(self.context(version), request, responses)
        except BrokerError as error:
            responses.append(error)
        return responses

    def new_member(self, group_id: str, **fields: Any) -> tuple[str, Responses]:
        """Join like a client: without an id, then with the one from the response."""
        member_id = self.join(group_id, **fields).one.member_id
        return member_id, self.join(group_id, member_id, **fields)

    def sync(
        self, group_id: str, member_id: str, generation: int, given: dict[str, bytes] | None = None, **fields: Any
    ) -> Responses:
        """Send SyncGroup; errors are responses too."""
        request = SyncGroupRequest(
            group_id=group_id,
            member_id=member_id,
            generation_id=generation,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=one, assignment=data)
                for one, data in (given or {}).items()
            ],
            **fields,
        )
        responses = Responses()
        try:
            self.coordinator.sync(request, responses)
        except BrokerError as error:
            responses.append(error)
        return responses

    def heartbeat(self, group_id: str, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        """Send Heartbeat and return the error code."""
        try:
            self.coordinator.heartbeat(group_id, member_id, instance_id, generation)
        except BrokerError as error:
            return ErrorCode(error.code)
        return ErrorCode.NONE

    def leave(self, group_id: str, *members: str | tuple[str, str]) -> list[ErrorCode]:
        """Send LeaveGroup for member ids, or (member id, instance id) pairs, and return the results."""
        request = LeaveGroupRequest(
            group_id=group_id,
            members=[
                LeaveGroupRequest.MemberIdentity(member_id=member)
                if isinstance(member, str)
                else LeaveGroupRequest.MemberIdentity(member_id=member[0], group_instance_id=member[1])
                for member in members
            ],
        )
        return [ErrorCode(member.error_code) for member in self.coordinator.leave(request).members]

    def stable(self, group_id: str, count: int = 1, **fields: Any) -> list[str]:
        """Create a stable classic group with this number of members; the first is the leader."""
        joins = [self.new_member(group_id, **fields) for _ in range(count)]
        self.clock.advance(2 * self.settings.group_initial_rebalance_delay_ms)  # each member prolongs it once
        generation = joins[0][1].one.generation_id
        ids = [member_id for member_id, _ in joins]
        given = {member_id: b"for " + str(index).encode() for index, member_id in enumerate(ids)}
        for member_id in reversed(ids):
            self.sync(group_id, member_id, generation, given)
        assert self.state(group_id) == "Stable"
        return ids

    # --- the consumer protocol ---

    def beat(self, group_id: str, member_id: str = "", epoch: int = 0, *, version: int = 0, **fields: Any) -> Any:
        """Send ConsumerGroupHeartbeat and return the response, or the error code."""
        if epoch == 0:
            fields.setdefault("rebalance_timeout_ms", 60_000)
            fields.setdefault("topic_partitions", [])
            if not fields.get("subscribed_topic_regex"):
                fields.setdefault("subscribed_topic_names", ["t"])
        if isinstance(fields.get("topic_partitions"), dict):
            fields["topic_partitions"] = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in fields["topic_partitions"].items()
            ]
        request = ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch, **fields)
        try:
            return self.coordinator.consumer_heartbeat(self.context(version), request)
        except BrokerError as error:
            return ErrorCode(error.code)

    # --- offsets ---

    def commit(
        self,
        group_id: str,
        offsets: dict[tuple[str, int], int],
        member_id: str = "",
        epoch: int = -1,
        *,
        producer: ProducerIdAndEpoch = NO_PRODUCER,
        version: int = 9,
        instance_id: str | None = None,
        expire_ms: int = -1,
    ) -> ErrorCode:
        """Commit offsets like a handler and return the error code."""
        values = [
            (
                partition,
                OffsetCommitValue(
                    offset=offset, metadata="", commit_timestamp=self.clock.now_ms(), expire_timestamp=expire_ms
                ),
            )
            for partition, offset in offsets.items()
        ]
        transactional = producer != NO_PRODUCER
        try:
            self.coordinator.offsets.check_commit(
                group_id, member_id, instance_id, epoch, version=version, transactional=transactional
            )
            self.coordinator.offsets.commit(group_id, values, producer)
        except BrokerError as error:
            return ErrorCode(error.code)
        return ErrorCode.NONE

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return the committed offsets."""
        found = self.coordinator.store.state.offsets_of(group_id)
        return {partition: offset.offset for partition, offset in found.items()}

    # --- looking ---

    def group(self, group_id: str) -> Any:
        return self.coordinator.store.find(group_id)

    def state(self, group_id: str) -> str:
        """Return the group's state, Dead if it does not exist."""
        group = self.group(group_id)
        return "Dead" if group is None else str(group.state)

    def break_log(self) -> None:
        """Simulate a full disk."""
        self.log.broken = LogError("no space left on device")
