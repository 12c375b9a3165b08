"""Fetch (api key 1), versions 0 to 18: read records of partitions, waiting for new ones if needed.

    0, 1  magic 0    1  throttle time    2, 3  magic 1    3  size limit of the response, first batch always complete
    4  magic 2, isolation level, aborted transactions    5  log start offset    7  sessions    9  leader epochs
    10  zstd    11  rack    12  flexible, last fetched epoch    13  topic ids    15  replica state    16  endpoints
    18  high watermark of followers

A node that does not lead a partition responds with NOT_LEADER_OR_FOLLOWER and, from version 16 on, the leader with its
endpoint (KIP-951). Consumers may fetch from followers from version 11 on. The leader sends
those that tell their rack to a replica there, with replica.selector.class (KIP-392).

The response is sent when min_bytes are available, a partition has an error, or max_wait_ms has passed; every append to
one of the partitions is checked. max_bytes is not absolute: from version 3 on, the first partition with records returns
at least one batch, and another one nothing if its first batch is larger than the limit. Partitions are read in the
order of the request, or of the fetch session. Followers (replica_id of 0 or more) need CLUSTER_ACTION on the cluster,
consumers READ on each topic.

Source: kafka.server.KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages, DelayedFetch 3.9.1.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeVar
from uuid import UUID

from kwire.broker.apis.steps.current_leaders import current_leader, endpoints_of
from kwire.broker.apis.steps.partition_fetch import (
    WHOLE_BATCH_VERSION,
    FetchedPartition,
    error_code,
    failure,
    fetch_partition,
)
from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.clock import TimerHandle
from kwire.broker.context import RequestContext
from kwire.broker.fetch_sessions import NO_SESSION, SessionPartition, View
from kwire.broker.network.throttling import QuotaType
from kwire.broker.node import Node
from kwire.broker.responses import RECORDS_ELSEWHERE, SplicedResponse, piece_bytes
from kwire.broker.topics import Partition
from kwire.errors import KwireError
from kwire.messages import FetchRequest, FetchResponse
from kwire.messages.fetch_response import FetchableTopicResponse, LeaderIdAndEpoch, PartitionData
from kwire.protocol.error_codes import ErrorCode
from kwire.records.append.request_magic import fetch_magic

if TYPE_CHECKING:
    from kwire.log.writing.partition_writer import PartitionWriter

RACK_VERSION = 11
LEADER_VERSION = 16
LEADER_ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
NO_REPLICA = -1
REPLICA_STATE_VERSION = 15

NEWEST_MAGIC = 2
CORRELATION_ID_BYTES = 4

Body = FetchResponse | SplicedResponse
Results = list[tuple[SessionPartition, FetchedPartition]]
"""The results by partition; partitions that an incremental response does not need are left out."""
Result = TypeVar("Result")


def handle(node: Node, context: RequestContext, request: FetchRequest) -> Body | Awaitable[Body]:
    """Read the partitions; returns an awaitable if the request has to wait for records or their conversion."""
    fetch = Fetch(node, context, request)
    results = fetch.read()
    if fetch_magic(context.api_version) < NEWEST_MAGIC:
        return respond_converted(fetch, results)
    if fetch.is_enough(results):
        return fetch.respond(results)
    return DelayedFetch(fetch, fetch.respond).future


async def respond_converted(fetch: Fetch, results: Results) -> Body:
    """Respond in a version that may need an older record format than the stored one."""
    if not fetch.is_enough(results):
        results = await DelayedFetch(fetch, list).future
    return fetch.respond([(each, await fetch.convert(one)) for each, one in results])


class Fetch:
    """A fetch request being handled."""

    __slots__ = ("_max_bytes", "_may_follow", "_partitions", "_started_ns", "_view", "context", "node", "request")

    def __init__(self, node: Node, context: RequestContext, request: FetchRequest) -> None:
        self.node, self.context, self.request = node, context, request
        self._started_ns = time.perf_counter_ns()
        self._max_bytes = min(request.max_bytes, node.settings.fetch_max_bytes)
        within_quota = node.throttling.max_fetch_bytes(context)
        if within_quota is not None:
            self._max_bytes = min(self._max_bytes, within_quota)
        self._view: View = node.fetch_sessions.view(request, context.api_version)
        in_state = context.api_version >= REPLICA_STATE_VERSION
        replica_id = request.replica_state.replica_id if in_state else request.replica_id
        # None for a consumer, which needs READ on each topic instead
        self._may_follow = (
            node.may(context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER) if replica_id >= 0 else None
        )
        self._partitions = [self._resolve(each) for each in self._view.partitions]

    def _resolve(self, each: SessionPartition) -> Partition | ErrorCode:
        """Return a partition of the request, or its error."""
        if self.context.fetch_error is not None:
            injected = self.context.fetch_error(each.topic, each.index)
            if injected is not None:
                return injected
        if self._may_follow is False:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topics = self.node.topics
        by_id = isinstance(each.topic, UUID)
        topic = topics.with_id(each.topic) if isinstance(each.topic, UUID) else topics.get(each.topic)
        name = each.topic if topic is None else topic.name
        if isinstance(name, str) and not (self._may_follow or self._may_read(name)):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return topic.partitions.get(each.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _may_read(self, topic: str) -> bool:
        return self.node.may(self.context, Operation.READ, ResourceType.TOPIC, topic)

    @property
    def watched(self) -> list[Partition]:
        """The partitions whose appends may complete the request."""
        return [each for each in self._partitions if isinstance(each, Partition)]

    def read(self) -> Results:
        """Read every partition that may have something to return."""
        request, version = self.request, self.context.api_version
        self._started_ns = time.perf_counter_ns()
        left = self._max_bytes
        at_least_one = version >= WHOLE_BATCH_VERSION
        results: Results = []
        is_incremental = self._view.is_incremental
        for each, partition in zip(self._view.partitions, self._partitions, strict=True):
            if isinstance(partition, ErrorCode):
                results.append((each, failure(each.index, partition)))
                continue
            if is_incremental and not request.rack_id and is_unchanged(self.node.node_id, partition, each):
                continue
            try:
                log = partition.at(
                    self.node.node_id, each.request.current_leader_epoch, may_follow=self._may_fetch_from_follower
                )
                one = self._elsewhere(partition, log, each.index) or fetch_partition(
                    partition, log, each.request, version, request.isolation_level, left, at_least_one=at_least_one
                )
            except KwireError as error:
                one = failure(each.index, error_code(error))
                if one.data.error_code in LEADER_ERRORS and version >= LEADER_VERSION:
                    leader_id, leader_epoch = current_leader(partition)
                    one.data.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
            if one.size_bytes:
                left, at_least_one = left - one.size_bytes, False
            results.append((each, one))
        return results

    @property
    def _may_fetch_from_follower(self) -> bool:
        return self._may_follow is None and self.context.api_version >= RACK_VERSION

    def _elsewhere(self, partition: Partition, log: PartitionWriter, index: int) -> FetchedPartition | None:
        """Return the response that sends a consumer to a replica in its rack; None if it may read here."""
        node = self.node
        if not self._may_fetch_from_follower or not self.request.rack_id or partition.state.leader != node.node_id:
            return None
        replica = node.members.nearest(partition.state, self.request.rack_id, node.settings.replica_selector_class)
        if replica == node.node_id:
            return None
        return FetchedPartition(
            data=PartitionData(
                partition_index=index,
                high_watermark=log.high_watermark,
                last_stable_offset=log.last_stable_offset,
                log_start_offset=log.log_start_offset,
                preferred_read_replica=replica,
                records=b"",
            )
        )

    async def convert(self, result: FetchedPartition) -> FetchedPartition:
        """Convert records to the format of the client's version, if needed."""
        if result.conversion is None:
            return result
        try:
            return await self.node.workers.run(self.context.peer, result.conversion())
        except KwireError as error:
            return failure(result.data.partition_index, error_code(error))
        finally:
            self._started_ns = time.perf_counter_ns()  # waiting does not count as request time

    def is_enough(self, results: Results) -> bool:
        """Return whether the response can be sent now."""
        return (
            self.request.max_wait_ms <= 0
            or not self._partitions
            or sum(one.size_bytes for _, one in results) >= min(self.request.min_bytes, self._max_bytes)
            or any(
                one.data.error_code
                or one.data.diverging_epoch.epoch >= 0
                or one.data.preferred_read_replica != NO_REPLICA
                for _, one in results
            )
        )

    def respond(self, results: Results) -> Body:
        """Build the response; in an incremental session, only with partitions that have changed.

        It has the partitions in the order of `results`, as their payloads, so a topic is in it again after another one:
        the partitions of a session change places.
        Source: Kafka's FetchResponse.toMessage.
        """
        view = self._view
        topics: list[FetchableTopicResponse] = []
        payloads = []
        sent: list[tuple[SessionPartition, PartitionData]] = []
        for each, one in results:
            if one.size_bytes:
                one.data.records = RECORDS_ELSEWHERE
            if not view.has_changed(each, one.data):
                continue
            if not sent or sent[-1][0].topic != each.topic:
                topics.append(
                    FetchableTopicResponse(topic_id=each.topic, partitions=[])
                    if isinstance(each.topic, UUID)
                    else FetchableTopicResponse(topic=each.topic, partitions=[])
                )
            topics[-1].partitions.append(one.data)
            sent.append((each, one.data))
            if one.size_bytes:
                payloads.append(one.payload)
        body = FetchResponse(session_id=view.session_id, responses=topics)
        if self.context.api_version >= LEADER_VERSION:
            leaders = {data.current_leader.leader_id for _, data in sent if data.error_code}
            body.node_endpoints = [
                FetchResponse.NodeEndpoint(node_id=each.node_id, host=host, port=port, rack=each.rack)
                for each, host, port in endpoints_of(self.node, self.context, leaders)
            ]
        response = SplicedResponse(body=body, payloads=payloads) if payloads else body
        if self._is_throttled(response):
            if not view.is_incremental:  # Kafka creates a session with the first response that is sent
                self.node.fetch_sessions.close(view.session_id)
            return FetchResponse(session_id=view.session_id if view.is_incremental else NO_SESSION)
        for each, data in sent:
            view.mark_sent(each, data)
        return response

    def _is_throttled(self, response: Body) -> bool:
        """Record the response for the client's quotas. Returns whether it exceeds them and must not be sent."""
        context, throttling = self.context, self.node.throttling
        if throttling.limit(QuotaType.FETCH, context) is None:
            bandwidth_ms, size_bytes = 0, 0
        else:
            size_bytes = response_size(response, context.api_version)
            bandwidth_ms = throttling.record(QuotaType.FETCH, context, size_bytes)
        context.thread_ns += time.perf_counter_ns() - self._started_ns
        context.is_time_recorded = True
        context.throttle_ms = max(bandwidth_ms, throttling.record_time(context))
        if context.throttle_ms and size_bytes:
            throttling.unrecord(QuotaType.FETCH, context, size_bytes)
        return context.throttle_ms > 0


def is_unchanged(node_id: int, partition: Partition, each: SessionPartition) -> bool:
    """Return whether a consumer that is at the end of a partition knows all about it: there is nothing to return.

    This is what `fetch_partition` and `View.has_changed` find for most partitions of a consumer of many.
    """
    log, request = partition.log, each.request
    return (
        log is not None
        and partition.state.leader == node_id
        and request.fetch_offset == log.log_end_offset == log.high_watermark == each.sent_high_watermark
        and log.log_start_offset == each.sent_log_start_offset
        and (request.current_leader_epoch < 0 or request.current_leader_epoch == partition.leader_epoch)
        and (request.last_fetched_epoch < 0 or request.last_fetched_epoch == log.leader_epochs.latest)
    )


class DelayedFetch(Generic[Result]):
    """A fetch that waits for records or max_wait_ms (Kafka's DelayedFetch). finish: builds the future's result."""

    __slots__ = ("_fetch", "_finish", "_timer", "future")

    def __init__(self, fetch: Fetch, finish: Callable[[Results], Result]) -> None:
        self._fetch, self._finish = fetch, finish
        self.future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.future.add_done_callback(self._stop)
        for partition in fetch.watched:
            partition.watchers.add(self._on_append)
        self._timer: TimerHandle = fetch.node.timers.call_later(fetch.request.max_wait_ms, self._on_timeout)

    def _on_append(self) -> None:
        if not self.future.done():
            results = self._fetch.read()
            if self._fetch.is_enough(results):
                self._done(results)

    def _on_timeout(self) -> None:
        if not self.future.done():
            self._done(self._fetch.read())

    def _done(self, results: Results) -> None:
        for partition in self._fetch.watched:
            partition.watchers.discard(self._on_append)
        self.future.set_result(self._finish(results))

    def _stop(self, _future: asyncio.Future[Result]) -> None:
        """Release timer and watchers, also if the future was cancelled because the client disconnected."""
        self._timer.cancel()
        for partition in self._fetch.watched:
            partition.watchers.discard(self._on_append)


def response_size(response: Body, version: int) -> int:
    """Return the size of a response as Kafka counts it for quotas: with correlation id, without length prefix."""
    body = response.body if isinstance(response, SplicedResponse) else response
    size_bytes = CORRELATION_ID_BYTES + body.encoded_size(version=version)
    if isinstance(response, SplicedResponse):
        size_bytes += sum(sum(map(piece_bytes, payload)) - len(RECORDS_ELSEWHERE) for payload in response.payloads)
    return size_bytes


def error_response(request: FetchRequest, code: ErrorCode, message: str) -> FetchResponse:
    """Build a response with a top-level error, such as an invalid session."""
    return FetchResponse(error_code=code, session_id=0)
