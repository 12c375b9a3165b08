"""A request that is decoded, with its response: for faults, the request log, and the sessions of fetches."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, cast
from uuid import UUID

from kwire.broker.apis import SERVED, Handler, handler
from kwire.broker.context import Peer, RequestContext
from kwire.broker.dispatch import Call
from kwire.broker.faults.conditions import Seen
from kwire.broker.faults.names import FETCH, SHARE_FETCH
from kwire.broker.injection import Injection
from kwire.broker.responses import Response
from kwire.messages import (
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.requests import read_request, request_codec, request_key, write_response
from kwire.protocol.versions import UNSUPPORTED_VERSION
from kwire.tap.requests import PRODUCE
from kwire.tap.responses import KNOWN, Answer
from kwire.tap.topics import TopicsAt

if TYPE_CHECKING:
    from kwire.broker.faults.plan import Plan
    from kwire.messages.base import Message
    from kwire.tap.addresses import Node
    from kwire.tap.shared import Shared

__all__ = ["Reading"]

UNSERVED = cast("Handler", SimpleNamespace())
"""The handler of an API that kwire's broker does not have: its errors are those of its response class."""


PartitionErrors = Callable[["str | UUID", int], "ErrorCode | None"]
"""The error that faults set for a partition, None for none."""


class Route(Protocol):
    """The connection of a client, as its requests see it."""

    shared: Shared
    peer: Peer

    @property
    def node(self) -> Node:
        """The node that the connection leads to."""

    @property
    def port(self) -> int:
        """The port of the listener."""

    def forward(self, reading: Reading, frame: bytes) -> asyncio.Future[bytes] | None:
        """Send a request on; returns the frame of its response, None if it has none."""

    def answer(self, frame: bytes, api_key: int, version: int) -> Answer:
        """Read a response, and replace addresses in it. Raises KwireError."""


class Reading:
    """A decoded request of a connection. frame: its bytes. Raises DecodeError."""

    def __init__(self, connection: Route, frame: bytes) -> None:
        self._connection, self._frame, self._shared = connection, frame, connection.shared
        api_key, _ = request_key(
            frame
        )  # only records are worth a view: other messages may be copied, for their secrets
        self.request = read_request(frame, KNOWN, views=api_key == PRODUCE, lenient=True, allow_trailing=True)
        key = self.request.api_key
        context = RequestContext(
            peer=connection.peer,
            api_key=key,
            api_version=self.request.version,
            correlation_id=self.request.correlation_id,
            client_id=self.request.client_id,
            request_bytes=len(frame),
        )
        serving = handler(key) if key in SERVED else UNSERVED
        self.call = Call(serving, context, self.request.body, self.request.expects_reply, self.request.version)
        self._topics = TopicsAt(self._shared.topics, connection.port)

    def own_reply(self) -> bytes | None:
        """Return the response to a fetch whose partitions the tap does not know and faults ask for: begin again."""
        body, faults = self.request.body, self._shared.faults
        if isinstance(body, ShareFetchRequest):
            if not faults.concerns(SHARE_FETCH, parts=True) or acknowledges(body):
                return None
            if self._shared.topics.has_share_session(self._connection.port, body):
                return None
            return self.encode(ShareFetchResponse(error_code=ErrorCode.SHARE_SESSION_NOT_FOUND))
        if not isinstance(body, FetchRequest) or not faults.concerns(FETCH, parts=True):
            return None
        if self._shared.topics.has_session(self._connection.port, body):
            return None
        return self.encode(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))

    def plan(self) -> Plan | None:
        """Return what faults do with the request, None if nothing."""
        faults = self._shared.faults
        if faults.is_empty:
            return None
        context, node_id = self.call.context, self._connection.node.node_id
        seen = Seen(context.api_key, context.api_version, context.client_id, self.request.body, self._topics)
        seen.node_id = node_id
        return faults.take(seen)

    def inject(self, plan: Plan) -> Coroutine[Any, Any, Response | None]:
        """Return the coroutine that handles the request with faults."""
        injection = Injection(
            self.call,
            plan,
            self._topics,
            self._shared.timers,
            lambda call: asyncio.ensure_future(self._handle(call, call.request)),
        )
        return injection.run()

    async def _handle(self, call: Call, body: Message | None) -> Response | None:
        """Let the cluster handle what faults leave of the request."""
        connection, request = self._connection, self.request
        fetch_error = call.context.fetch_error
        frame = self._frame
        if fetch_error is not None:
            body = copy.copy(body)
            body.max_wait_ms = 0  # type: ignore[union-attr]
            if isinstance(body, ShareFetchRequest):
                body.topics = without_acknowledgements(body, fetch_error)
        if body is not request.body:
            frame = request_codec(request.api_key, request.version).encode((request.header, body))
        waiter = connection.forward(self, frame)
        if waiter is None:
            return None
        answer = connection.answer(await waiter, request.api_key, request.version)
        self._follow(answer.body)
        if fetch_error is not None and isinstance(answer.body, FetchResponse) and not answer.body.error_code:
            self._mark(answer.body)
        elif fetch_error is not None and isinstance(answer.body, ShareFetchResponse) and not answer.body.error_code:
            self._mark_shared(answer.body, fetch_error)
        self.call.response_version = answer.version
        return answer.body

    def _mark(self, body: FetchResponse) -> None:
        """Set the errors of faults in a Fetch response, also of partitions that it leaves out."""
        fetch_error = self.call.context.fetch_error
        assert fetch_error is not None
        present = {}
        for topic in body.responses:
            for partition in topic.partitions:
                present[topic.topic or topic.topic_id, partition.partition_index] = partition
        request = self.request.body
        wanted = dict.fromkeys(self._topics.fetched(body.session_id))
        for asked in request.topics:
            wanted |= dict.fromkeys((asked.topic or asked.topic_id, each.partition) for each in asked.partitions)
        for topic_key, index in [*present, *(key for key in wanted if key not in present)]:
            code = fetch_error(topic_key, index)
            if code is None:
                continue
            failed = FetchResponse.PartitionData(
                partition_index=index, error_code=int(code), high_watermark=-1, records=b""
            )
            self._put(body, topic_key, failed)

    def _mark_shared(self, body: ShareFetchResponse, fetch_error: PartitionErrors) -> None:
        """Set the errors of faults in a ShareFetch response, also of partitions that it leaves out."""
        request = self.request.body
        assert isinstance(request, ShareFetchRequest)
        present = {
            (topic.topic_id, each.partition_index): each for topic in body.responses for each in topic.partitions
        }
        asked = {(topic.topic_id, each.partition_index): each for topic in request.topics for each in topic.partitions}
        session = self._topics.share_fetched(request.group_id or "", request.member_id or "")
        for topic_id, index in dict.fromkeys([*present, *asked, *session]):
            code = fetch_error(topic_id, index)
            if code is None:
                continue
            failed = ShareFetchResponse.PartitionData(partition_index=index, error_code=int(code), records=b"")
            named = asked.get((topic_id, index))
            if named is not None and named.acknowledgement_batches:
                failed.acknowledge_error_code = int(code)
            self._put(body, topic_id, failed)

    @staticmethod
    def _put(body: FetchResponse | ShareFetchResponse, topic_key: str | UUID, failed: Any) -> None:
        topics: list[Any] = list(body.responses)
        for topic in topics:
            if (getattr(topic, "topic", "") or topic.topic_id) != topic_key:
                continue
            for place, partition in enumerate(topic.partitions):
                if partition.partition_index == failed.partition_index:
                    topic.partitions[place] = failed
                    return
            topic.partitions.append(failed)
            return
        added: Any
        if isinstance(body, ShareFetchResponse) and isinstance(topic_key, UUID):
            added = ShareFetchResponse.ShareFetchableTopicResponse(topic_id=topic_key, partitions=[failed])
        else:
            named = {"topic_id" if isinstance(topic_key, UUID) else "topic": topic_key}
            added = FetchResponse.FetchableTopicResponse(**named, partitions=[failed])  # type: ignore[arg-type]
        body.responses.append(added)

    def answered(self, answer: Answer) -> None:
        """Note the response to a request that no fault applied to."""
        self._follow(answer.body)
        self.log(answer.body)

    def _follow(self, body: Message) -> None:
        if isinstance(body, FetchResponse):
            self._shared.topics.follow(self._connection.port, self.request.body, body)
        elif isinstance(body, ShareFetchResponse):
            self._shared.topics.follow_share(self._connection.port, self.request.body, body)

    def log(self, response: Response | None) -> None:
        """Add the request to the request log, with its response without records."""
        requests = self._shared.requests
        if requests.limit:
            has_records = isinstance(response, FetchResponse | ShareFetchResponse)
            body = without_records(response) if has_records else response
            node_id = self._connection.node.node_id
            requests.add(self.call.context, self.request.body, body, self._shared.clock.now_ms(), node_id)

    def encode(self, body: Response) -> bytes:
        """Return the frame of a response. Raises KwireError if it does not fit the version."""
        context, version = self.call.context, self.call.response_version
        if isinstance(body, ApiVersionsResponse) and body.error_code == UNSUPPORTED_VERSION:
            version = 0
        return write_response(
            cast("Message", body), api_key=context.api_key, version=version, correlation_id=context.correlation_id
        )


def acknowledges(body: ShareFetchRequest) -> bool:
    """Return whether a request acknowledges records: it must not be lost."""
    return any(each.acknowledgement_batches for topic in body.topics for each in topic.partitions)


def without_acknowledgements(body: ShareFetchRequest, failed: PartitionErrors) -> list[Any]:
    """Return the topics of a request without the acknowledgements of partitions that a fault fails."""
    topics = [copy.copy(topic) for topic in body.topics]
    for topic in topics:
        topic.partitions = [copy.copy(each) for each in topic.partitions]
        for each in topic.partitions:
            if failed(topic.topic_id, each.partition_index) is not None:
                each.acknowledgement_batches = []
    return topics


def without_records(body: Any) -> Any:
    """Return a copy of a response without its records, which a log would hold in memory."""
    stripped = copy.copy(body)
    stripped.responses = [copy.copy(topic) for topic in body.responses]
    for topic in stripped.responses:
        topic.partitions = [copy.copy(partition) for partition in topic.partitions]
        for partition in topic.partitions:
            partition.records = b"" if partition.records is not None else None
    return stripped
