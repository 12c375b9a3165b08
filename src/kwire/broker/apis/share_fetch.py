"""ShareFetch (api key 78), versions 1 and 2: acquire records of a share session, and acknowledge others (KIP-932).

    1  limits of records    2  acquire mode, renewal of locks (KIP-1206, KIP-1222)

Acknowledgements come first. The response is sent when min_bytes can be acquired, a partition has an error, or
max_wait_ms has passed. Of an incremental session, it has the partitions with records, an error or an acknowledgement,
and new ones. Epoch -1 ends the session and releases its records. Partitions take turns to be read first. Version 0 was
of Kafka 4.0 only.

Source: kafka.server.KafkaApis.handleShareFetchRequest, kafka.server.share.DelayedShareFetch, ShareFetchUtils 4.4.0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kwire.broker.apis.steps.current_leaders import current_leader, endpoints_of
from kwire.broker.apis.steps.partition_fetch import error_code
from kwire.broker.apis.steps.share_requests import (
    RENEW_VERSION,
    Acknowledged,
    acknowledge,
    check_member,
    close_session,
    disconnected,
    share_partition_of,
)
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.clock import TimerHandle
from kwire.broker.context import RequestContext
from kwire.broker.network.throttling import QuotaType
from kwire.broker.node import Node
from kwire.broker.responses import RECORDS_ELSEWHERE, SplicedResponse, piece_bytes
from kwire.broker.shares.acquisition import Acquisition, without_aborted
from kwire.broker.shares.coordinator import ShareKey
from kwire.broker.shares.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession, TopicIdPartition
from kwire.broker.shares.share_partition import SharePartition
from kwire.broker.shares.share_partitions import is_read_committed
from kwire.broker.topics import Partition
from kwire.errors import BrokerError, KwireError
from kwire.log.writing.log_reads import FilePart
from kwire.messages import ShareFetchRequest, ShareFetchResponse
from kwire.messages.share_fetch_response import AcquiredRecords as AcquiredRange
from kwire.messages.share_fetch_response import LeaderIdAndEpoch, PartitionData, ShareFetchableTopicResponse
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.storage.header_walk import HeaderWalk

if TYPE_CHECKING:
    from kwire.broker.responses import Piece
    from kwire.log.writing.log_reads import Fetched
    from kwire.records.format.batch_header import BatchHeader

BY_RECORD = 1
"""Acquire mode "record limit"; 0 is "batch optimized"."""
LEADER_ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

Body = ShareFetchResponse | SplicedResponse


class Target(NamedTuple):
    """A partition to acquire records of."""

    key: ShareKey
    partition: Partition


class Result(NamedTuple):
    """What a response says of a partition: the data without records, and the records."""

    data: PartitionData
    payload: Sequence[FilePart] = ()


def handle(node: Node, context: RequestContext, request: ShareFetchRequest) -> Body | Awaitable[Body]:
    """Acknowledge and acquire records; returns an awaitable if the request has to wait for records."""
    group_id, member_id = check_member(node, context, request.group_id, request.member_id)
    is_renewal = context.api_version >= RENEW_VERSION and request.is_renew_ack
    if is_renewal:
        check_renewal(request)
    acknowledgements = [
        (topic.topic_id, each.partition_index, each.acknowledgement_batches)
        for topic in request.topics
        for each in topic.partitions
    ]
    acknowledges = any(batches for _, _, batches in acknowledgements)
    try:
        session = continue_session(node, context, request, group_id, member_id, acknowledges=acknowledges)
    except BrokerError as error:
        if error.code != ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            raise
        return refuse_later(node, request, error)
    acknowledged = {}
    if acknowledges:
        refused = injected_errors(context, acknowledgements)
        others = [each for each in acknowledgements if each[:2] not in refused]
        acknowledged = acknowledge(node, context, group_id, member_id, others, is_renewal=is_renewal) | refused
    fetch = ShareFetch(node, context, request, session, acknowledged)
    if is_renewal or fetch.is_complete():
        return fetch.respond()
    return DelayedShareFetch(fetch).future


def injected_errors(
    context: RequestContext, acknowledgements: Iterable[tuple[UUID, int, object]]
) -> dict[TopicIdPartition, Acknowledged]:
    """Return the errors that faults set for partitions with acknowledgements, which are not handled then."""
    injected = context.fetch_error
    if injected is None:
        return {}
    codes = {(topic_id, index): injected(topic_id, index) for topic_id, index, batches in acknowledgements if batches}
    return {key: Acknowledged(code) for key, code in codes.items() if code is not None}


def check_renewal(request: ShareFetchRequest) -> None:
    """Raise BrokerError if a request that renews locks wants records too."""
    limits = ("max_bytes", "min_bytes", "max_records", "max_wait_ms")
    wrong = [name for name in limits if getattr(request, name) != 0]
    if wrong:
        names = {
            "max_bytes": "maxBytes",
            "min_bytes": "minBytes",
            "max_records": "maxRecords",
            "max_wait_ms": "maxWaitMs",
        }
        what = "".join(f"{names[name]} must be set to 0, " for name in wrong)
        raise refusal(ErrorCode.INVALID_REQUEST, f"{what}if isRenewAck is true.")


def continue_session(
    node: Node,
    context: RequestContext,
    request: ShareFetchRequest,
    group_id: str,
    member_id: str,
    *,
    acknowledges: bool,
) -> ShareSession | None:
    """Return the session of a request, None if it ends with it. Raises BrokerError."""
    sessions, epoch = node.share_sessions, request.share_session_epoch
    requested = [(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions]
    if epoch == INITIAL_EPOCH:
        if acknowledges:
            raise refusal(ErrorCode.INVALID_REQUEST, "The first request of a share session cannot acknowledge records.")
        connection_id = context.peer.connection_id
        context.peer.on_close["share sessions"] = lambda: disconnected(node, connection_id)
        return sessions.begin(group_id, member_id, requested, connection_id)
    session = sessions.proceed(group_id, member_id, epoch)
    if epoch == FINAL_EPOCH:
        return None
    for each in requested:
        session.partitions.setdefault(each, True)
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            session.partitions.pop((topic.topic_id, index), None)
    return session


async def refuse_later(node: Node, request: ShareFetchRequest, error: BrokerError) -> Body:
    """Refuse a request after the time that it would wait, so that the client does not ask again at once."""
    waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = node.timers.call_later(request.max_wait_ms, waited.cancel)
    try:
        await asyncio.wait([waited])
    finally:
        timer.cancel()
    raise error


class ShareFetch:
    """A share fetch being handled. session: None if it ends. acknowledged: the results of its acknowledgements."""

    def __init__(
        self,
        node: Node,
        context: RequestContext,
        request: ShareFetchRequest,
        session: ShareSession | None,
        acknowledged: dict[TopicIdPartition, Acknowledged],
    ) -> None:
        self.node, self.context, self.request = node, context, request
        self._session, self._acknowledged = session, acknowledged
        self._group_id, self._member_id = request.group_id or "", request.member_id or ""
        self._shares = node.coordinators.share_partitions
        self._committed = is_read_committed(node.groups.store, self._group_id)
        self._max_bytes = min(request.max_bytes, node.settings.fetch_max_bytes)
        within_quota = node.throttling.max_fetch_bytes(context)
        if within_quota is not None:
            self._max_bytes = min(self._max_bytes, within_quota)
        self.results: dict[TopicIdPartition, Result] = {}
        self.targets = [target for each in self._in_turn() if (target := self._resolve(each)) is not None]

    def _in_turn(self) -> list[TopicIdPartition]:
        """Return the partitions of the session, another one first in each request."""
        partitions = [] if self._session is None else list(self._session.partitions)
        epoch = self.request.share_session_epoch
        at = epoch % len(partitions) if partitions and epoch > 0 else 0
        return partitions[at:] + partitions[:at]

    def _resolve(self, each: TopicIdPartition) -> Target | None:
        """Return a partition to read; None for one with an error, which is added to the results."""
        topic_id, index = each
        injected = None if self.context.fetch_error is None else self.context.fetch_error(topic_id, index)
        if injected is not None:
            self._fail(each, injected)
            return None
        topic = self.node.topics.with_id(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None:
            self._fail(each, ErrorCode.UNKNOWN_TOPIC_ID)
        elif not self.node.may(self.context, Operation.READ, ResourceType.TOPIC, topic.name):
            self._fail(each, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif partition is None:
            self._fail(each, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            try:
                return Target(share_partition_of(self.node, self._group_id, topic_id, partition), partition)
            except KwireError as error:
                self._fail(each, error_code(error), partition)
        return None

    def _fail(self, each: TopicIdPartition, code: ErrorCode, partition: Partition | None = None) -> None:
        data = PartitionData(partition_index=each[1], error_code=code, records=b"")
        if partition is not None and code in LEADER_ERRORS:
            leader_id, leader_epoch = current_leader(partition)
            data.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
        self.results[each] = Result(data)

    def is_complete(self) -> bool:
        """Acquire what can be acquired; return whether the response can be sent now."""
        request = self.request
        if request.max_wait_ms <= 0 or not self.targets or request.max_records == 0 or self._max_bytes == 0:
            self.acquire()
            return True
        return self.has_enough()

    def has_enough(self) -> bool:
        """Acquire records if min_bytes of them can be acquired or a partition has an error; return whether."""
        fetched = [self._read(target, share) for target, share in self._acquirable()]
        if any(isinstance(each, KwireError) for each in fetched):
            self.acquire()
            return True
        sizes = sum(each.size_bytes for each in fetched if not isinstance(each, KwireError))
        if fetched and sizes >= min(self.request.min_bytes, self._max_bytes):
            self.acquire()
            return True
        return False

    def _acquirable(self) -> list[tuple[Target, SharePartition]]:
        found = []
        for target in self.targets:
            share = self._shares.get(target.key)
            if share is not None and share.can_acquire():
                found.append((target, share))
        return found

    def _read(self, target: Target, share: SharePartition) -> Fetched | KwireError:
        """Read from the next offset to acquire; return the error if that is not possible."""
        try:
            log = target.partition.at(self.node.node_id)
            offset = share.next_fetch_offset()
            if offset < log.log_start_offset:
                share.log_start_moved(log.log_start_offset)
                offset = max(share.next_fetch_offset(), log.log_start_offset)
            up_to = log.last_stable_offset if self._committed else log.high_watermark
            limit = self._max_bytes // max(1, len(self.targets))
            return log.fetch(offset, limit, up_to=up_to, at_least_one=True)
        except KwireError as error:
            return error

    def acquire(self) -> None:
        """Acquire records of all partitions, within the limits of the request."""
        request = self.request
        left = request.max_records
        if request.max_records == 0 or self._max_bytes == 0:
            return
        for target, share in self._acquirable():
            key = (target.key.topic_id, target.key.partition)
            fetched = self._read(target, share)
            if isinstance(fetched, KwireError):
                code = error_code(fetched)
                if code == ErrorCode.OFFSET_OUT_OF_RANGE:  # the log ends below the group's offset, see ShareFetchUtils:
                    code = ErrorCode.NONE  # clients of share groups do not know this error
                self._fail(key, code, target.partition)
                continue
            headers = whole_batches(fetched)
            acquired = []
            if headers:
                acquisition = Acquisition(
                    self._member_id,
                    headers,
                    fetch_offset=fetched.offset,
                    batch_size=request.batch_size,
                    max_records=left,
                    by_record=request.share_acquire_mode == BY_RECORD,
                )
                acquired = acquisition.run(share)
                if acquired and self._committed:
                    log = target.partition.opened
                    aborted = log.aborted_transactions(fetched.offset, fetched.next_offset_bound)
                    acquired = without_aborted(share, acquired, headers, aborted)
            left -= sum(each.last - each.first + 1 for each in acquired)
            data = PartitionData(
                partition_index=target.key.partition,
                records=b"",
                acquired_records=[
                    AcquiredRange(first_offset=each.first, last_offset=each.last, delivery_count=each.delivery_count)
                    for each in acquired
                ],
            )
            payload = overlapping(fetched, headers, acquired[0].first, acquired[-1].last) if acquired else ()
            self.results[key] = Result(data, payload)

    def respond(self) -> Body:
        """Build the response."""
        results = {key: each for key, each in self.results.items() if self._must_respond(key, each)}
        for key, (code, message) in self._acknowledged.items():
            if key not in results:
                results[key] = Result(PartitionData(partition_index=key[1], records=b""))
            data = results[key].data
            data.acknowledge_error_code, data.acknowledge_error_message = int(code), message
        topics: dict[UUID, ShareFetchableTopicResponse] = {}
        for (topic_id, _), (data, payload) in results.items():
            if topic_id not in topics:
                topics[topic_id] = ShareFetchableTopicResponse(topic_id=topic_id, partitions=[])
            topics[topic_id].partitions.append(data)
            if payload:
                data.records = RECORDS_ELSEWHERE
        leaders = {each.data.current_leader.leader_id for each in results.values() if each.data.error_code}
        body = ShareFetchResponse(
            responses=list(topics.values()),
            acquisition_lock_timeout_ms=self._shares.limits(self._group_id).lock_duration_ms,
            node_endpoints=[
                ShareFetchResponse.NodeEndpoint(node_id=each.node_id, host=host, port=port, rack=each.rack)
                for each, host, port in endpoints_of(self.node, self.context, leaders)
            ]
            if any(each.data.error_code in LEADER_ERRORS for each in results.values())
            else [],
        )
        if self._session is None:
            close_session(self.node, self._group_id, self._member_id)
        payloads: list[Sequence[Piece]] = [
            payload
            for topic_id, topic in topics.items()
            for data in topic.partitions
            if (payload := results[topic_id, data.partition_index].payload)
        ]
        size_bytes = sum(piece_bytes(part) for payload in payloads for part in payload)
        throttling = self.node.throttling
        if size_bytes and throttling.limit(QuotaType.FETCH, self.context) is not None:
            self.context.throttle_ms = throttling.record(QuotaType.FETCH, self.context, size_bytes)
        return SplicedResponse(body=body, payloads=payloads) if payloads else body

    def _must_respond(self, key: TopicIdPartition, result: Result) -> bool:
        """Return whether the response must contain a partition."""
        session = self._session
        if session is None or self.request.share_session_epoch == INITIAL_EPOCH:
            return True
        is_new = session.partitions.get(key, False)
        if key in session.partitions:
            session.partitions[key] = result.data.error_code != 0
            if result.payload:  # others are read before it
                session.partitions[key] = session.partitions.pop(key)
        return is_new or bool(result.payload) or result.data.error_code != 0


def whole_batches(fetched: Fetched) -> list[BatchHeader]:
    """Return the headers of the whole batches that were fetched. Raises CorruptBatch."""
    headers = []
    for part in fetched.parts:
        end = part.position + part.size_bytes
        walk = HeaderWalk(part.file, part.position, end)
        headers += [header for header in walk if header.position + header.size_bytes <= end]
        if walk.damage is not None:
            raise walk.damage
    return headers


def overlapping(fetched: Fetched, headers: Sequence[BatchHeader], first: int, last: int) -> list[FilePart]:
    """Return where the batches with offsets in [first, last] are."""
    chosen = [each for each in headers if each.base_offset <= last and each.last_offset >= first]
    (part,) = fetched.parts
    start = chosen[0].position
    return [FilePart(part.file, start, chosen[-1].position + chosen[-1].size_bytes - start)]


class DelayedShareFetch:
    """A share fetch that waits for records, or for max_wait_ms (Kafka's DelayedShareFetch)."""

    def __init__(self, fetch: ShareFetch) -> None:
        self._fetch = fetch
        self.future: asyncio.Future[Body] = asyncio.get_running_loop().create_future()
        self.future.add_done_callback(self._stop)
        watchers = fetch.node.coordinators.share_partitions.watchers
        for target in fetch.targets:
            target.partition.watchers.add(self._look)
            watchers.setdefault(target.key, set()).add(self._look)
        self._timer: TimerHandle = fetch.node.timers.call_later(fetch.request.max_wait_ms, self._on_timeout)

    def _look(self) -> None:
        if not self.future.done() and self._fetch.has_enough():
            self._done()

    def _on_timeout(self) -> None:
        if not self.future.done():
            self._fetch.acquire()
            self._done()

    def _done(self) -> None:
        self._forget()
        self.future.set_result(self._fetch.respond())

    def _forget(self) -> None:
        watchers = self._fetch.node.coordinators.share_partitions.watchers
        for target in self._fetch.targets:
            target.partition.watchers.discard(self._look)
            waiting = watchers.get(target.key)
            if waiting is not None:
                waiting.discard(self._look)
                if not waiting:
                    del watchers[target.key]

    def _stop(self, _future: asyncio.Future[Body]) -> None:
        """Release timer and watchers, also if the future was cancelled because the client disconnected."""
        self._timer.cancel()
        self._forget()


def error_response(request: ShareFetchRequest, code: ErrorCode, message: str) -> ShareFetchResponse:
    """Build the response to a request that fails as a whole, without a message, as in Kafka."""
    return ShareFetchResponse(error_code=int(code))
