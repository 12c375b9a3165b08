"""One end of a Kafka connection, without a socket: bytes in, messages out, and back.

    conn = Connection(Role.BROKER)                        conn = Connection(Role.CLIENT, client_id="app")
    conn.receive_data(chunk)                              socket.send(conn.negotiate())
    while (request := conn.next_request()):               ...conn.receive_data(chunk); conn.next_response()
        socket.send(conn.send(request.reply(body)))       socket.send(conn.send(MetadataRequest(...)))

Nothing here blocks, reads a clock or starts a thread. Responses are sent in the order of their requests. As in Kafka's
own client, a response whose correlation id is not that of the oldest open request ends the connection.

TRANSITIONS is the state table. Every other pair of state and event is an error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from kwire.errors import DecodeError, KwireError, Malformed, OptionError, Truncated
from kwire.protocol.frames import MAX_FRAME_BYTES, NEED_DATA, FrameBuffer, FrameMemory, NeedData
from kwire.protocol.requests import (
    Request,
    Response,
    read_correlation_id,
    read_request,
    read_response,
    request_class,
    write_request,
    write_response,
)
from kwire.protocol.versions import (
    API_VERSIONS,
    UNSUPPORTED_VERSION,
    describe,
    highest_common,
    offered,
    supported,
)
from kwire.schema import Versions

if TYPE_CHECKING:
    from kwire.messages.base import Message
    from kwire.messages.registry import Definitions

__all__ = ["TRANSITIONS", "Connection", "Event", "Request", "Response", "Role", "State"]

MAX_CORRELATION_ID = 2**31 - 1


class Role(Enum):
    """The end of the connection."""

    BROKER = "broker"
    CLIENT = "client"


class State(Enum):
    """State of a connection.

    OPEN: API versions not negotiated. NEGOTIATING: ApiVersions request sent. READY: requests may be sent.
    FAILED: the peer broke the protocol. CLOSED.
    """

    OPEN = "open"
    NEGOTIATING = "negotiating"
    READY = "ready"
    FAILED = "failed"
    CLOSED = "closed"


class Event(Enum):
    """Event on a connection; its value says in errors what was not possible."""

    RECEIVE = "receive bytes"
    ASK = "request API versions"
    AGREE = "accept API versions"
    REFUSE = "refuse the ApiVersions version"
    SEND = "send a message"
    SEND_EXPLICIT = "send a message in an explicit version"
    BREAK = "fail on a protocol violation"
    CLOSE = "close"


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.OPEN, Event.RECEIVE): State.OPEN,
    (State.OPEN, Event.ASK): State.NEGOTIATING,
    (State.OPEN, Event.SEND_EXPLICIT): State.OPEN,
    (State.OPEN, Event.BREAK): State.FAILED,
    (State.OPEN, Event.CLOSE): State.CLOSED,
    (State.NEGOTIATING, Event.RECEIVE): State.NEGOTIATING,
    (State.NEGOTIATING, Event.AGREE): State.READY,
    (State.NEGOTIATING, Event.REFUSE): State.OPEN,
    (State.NEGOTIATING, Event.BREAK): State.FAILED,
    (State.NEGOTIATING, Event.CLOSE): State.CLOSED,
    (State.READY, Event.RECEIVE): State.READY,
    (State.READY, Event.ASK): State.NEGOTIATING,
    (State.READY, Event.SEND): State.READY,
    (State.READY, Event.SEND_EXPLICIT): State.READY,
    (State.READY, Event.BREAK): State.FAILED,
    (State.READY, Event.CLOSE): State.CLOSED,
    (State.FAILED, Event.CLOSE): State.CLOSED,
    (State.CLOSED, Event.CLOSE): State.CLOSED,
}


class Connection:
    """One end of a connection.

    role: BROKER receives requests and sends responses, CLIENT the reverse. client_id: sent in request headers.
    kafka: encode and decode messages as that release defines them, or as definitions of one's own do (`registry.load`),
    which use Kafka's ApiVersions unless they define it. versions: supported versions by api key; by default
    everything kwire supports. max_frame_bytes: maximum length of a received frame.
    views: return bytes and records as memoryviews of the frame instead of copies. lenient: accept the protocol
    violations that Kafka accepts (docs/plan.md). allow_trailing: ignore bytes after a message, as Kafka does.
    """

    def __init__(
        self,
        role: Role,
        *,
        client_id: str | None = "kwire",
        kafka: Definitions | None = None,
        versions: Mapping[int, Versions] | None = None,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        views: bool = False,
        lenient: bool = False,
        allow_trailing: bool = False,
    ) -> None:
        self.role, self.client_id, self.kafka, self.views, self.lenient = role, client_id, kafka, views, lenient
        self.allow_trailing = allow_trailing
        self.versions = dict(supported(kafka) if versions is None else versions)
        self.state = State.OPEN if role is Role.CLIENT else State.READY
        self.peer_versions: dict[int, Versions] = {}
        self._frames = FrameBuffer(max_frame_bytes)
        self._open: deque[Request] = deque()
        self._correlation_id = -1

    def share_memory(self, memory: FrameMemory) -> None:
        """Receive large frames into memory that connections of one thread share; before the first frame."""
        self._frames = FrameBuffer(self._frames.max_frame_bytes, memory=memory)

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes from the peer, however they were split; empty data is the end of the stream.

        Raises Truncated if the stream ends inside a frame, OptionError after the end of the stream or a failure.
        """
        self._require(Event.RECEIVE)
        if len(data):
            self._frames.append(data)
            return
        remaining = len(self._frames)
        self.close()
        if remaining:
            raise Truncated(f"stream ends inside a frame, after {remaining} bytes of it", remaining)

    def receive(self, recv_into: Callable[[memoryview], int]) -> int:
        """Receive once with recv_into, such as socket.recv_into; large frames are received without a copy.

        Returns the number of bytes; 0 is the end of the stream, to be reported with `receive_data(b"")`. Raises
        OptionError after that or a failure.
        """
        self._require(Event.RECEIVE)
        return self._frames.receive(recv_into)[0]

    def close(self) -> None:
        """Close the connection; drop all bytes received and all open requests."""
        self._move(Event.CLOSE)
        self._frames.clear()
        self._open.clear()

    @property
    def open_requests(self) -> tuple[Request, ...]:
        """Requests without a response so far, oldest first."""
        return tuple(self._open)

    # Broker

    def next_request(self) -> Request | NeedData:
        """Return the next request, or NEED_DATA.

        Raises Malformed, Truncated or UnsupportedVersion for a request that cannot be read; the connection has then
        failed, as such a request gets no response. The exception is an ApiVersions request of an unsupported version:
        its body is None, and `refuse_version` makes the response (W-85).
        """
        self._require_role(Role.BROKER)
        frame = self._next_frame()
        if isinstance(frame, NeedData):
            return frame
        try:
            request = read_request(
                frame,
                self.versions,
                kafka=self.kafka,
                views=self.views,
                lenient=self.lenient,
                allow_trailing=self.allow_trailing,
            )
        except KwireError:
            self._move(Event.BREAK)
            raise
        if request.expects_reply:
            self._open.append(request)
        return request

    def refuse_version(self, request: Request) -> Response:
        """Make the UNSUPPORTED_VERSION response to an ApiVersions request of an unsupported version."""
        return request.reply(describe(self.versions, UNSUPPORTED_VERSION))

    def offer_versions(self, request: Request) -> Response:
        """Make the response to an ApiVersions request of any version, with the versions supported here."""
        return self.refuse_version(request) if request.body is None else request.reply(describe(self.versions))

    # Client

    def negotiate(self, client_software_name: str = "kwire", client_software_version: str = "0") -> bytes:
        """Encode an ApiVersions request, in the highest version that the broker has not refused.

        After the response, taken with `next_response`, the connection is READY; or OPEN again if the broker does not
        support the version, and the next call uses one that it does support. Raises UnsupportedVersion if there is
        none.
        """
        self._require_role(Role.CLIENT)
        self._require(Event.ASK)
        ours = self.versions.get(API_VERSIONS)
        version = highest_common(API_VERSIONS, ours, self.peer_versions.get(API_VERSIONS, ours))
        cls: Any = request_class(API_VERSIONS, self.kafka)
        body = cls(client_software_name=client_software_name, client_software_version=client_software_version)
        frame = self._write_request(body, version)
        self._move(Event.ASK)
        return frame

    def version_for(self, api_key: int) -> int:
        """Return the highest version that both sides support. Raises UnsupportedVersion if there is none."""
        return highest_common(api_key, self.versions.get(api_key), self.peer_versions.get(api_key))

    def next_response(self) -> Response | NeedData:
        """Return the next response, or NEED_DATA.

        Raises Malformed or Truncated for a response that cannot be read or does not belong to the oldest open request;
        the connection has then failed.
        """
        self._require_role(Role.CLIENT)
        frame = self._next_frame()
        if isinstance(frame, NeedData):
            return frame
        try:
            response = self._read_response(frame)
        except KwireError:
            self._move(Event.BREAK)
            raise
        self._open.popleft()
        if response.request.api_key == API_VERSIONS and self.state is State.NEGOTIATING:
            self._learn_versions(response)
        return response

    def _read_response(self, frame: bytes | memoryview) -> Response:
        if not self._open:
            raise Malformed(f"response with correlation id {read_correlation_id(frame)}, but no request is open", 4)
        return read_response(
            frame,
            self._open[0],
            kafka=self.kafka,
            views=self.views,
            lenient=self.lenient,
            allow_trailing=self.allow_trailing,
        )

    def _learn_versions(self, response: Response) -> None:
        """Store the versions that the broker supports, from its ApiVersions response."""
        versions = offered(response.body.api_keys)
        if response.body.error_code == UNSUPPORTED_VERSION:
            # Brokers before KIP-511 list no versions then; all of them support version 0.
            below = Versions(0, response.request.version - 1)
            self.peer_versions = {API_VERSIONS: versions.get(API_VERSIONS, Versions(0, 0)).intersect(below)}
            self._move(Event.REFUSE)
            return
        self.peer_versions = versions
        self._move(Event.AGREE)

    # Both

    def send(self, outgoing: Response | Message, *, version: int | None = None) -> bytes:
        """Encode a response (broker) or a request (client) as a frame, ready to be sent.

        version: of a client's request, instead of the highest that both sides support. Raises EncodeError for a message
        that does not fit its version, OptionError if it may not be sent now, UnsupportedVersion.
        """
        if isinstance(outgoing, Response):
            self._require_role(Role.BROKER)
            return self._write_response(outgoing)
        self._require_role(Role.CLIENT)
        self._require(Event.SEND if version is None else Event.SEND_EXPLICIT)
        api_key = outgoing.API_KEY
        if api_key is None or outgoing.SPEC.kind != "request":
            raise OptionError(f"{type(outgoing).__name__} is not a request")
        return self._write_request(outgoing, self.version_for(api_key) if version is None else version)

    def _write_request(self, body: Message, version: int) -> bytes:
        # After the largest int32 the ids start over: only ids of open requests have to differ.
        correlation_id = 0 if self._correlation_id == MAX_CORRELATION_ID else self._correlation_id + 1
        frame, request = write_request(
            body, version, correlation_id=correlation_id, client_id=self.client_id, kafka=self.kafka
        )
        self._correlation_id = correlation_id
        if request.expects_reply:
            self._open.append(request)
        return frame

    def _write_response(self, response: Response) -> bytes:
        self._require(Event.SEND)
        request = response.request
        if not self._open or self._open[0] is not request:
            raise OptionError(
                f"response to request {request.correlation_id} is not the next one: {len(self._open)} requests are "
                "open; send responses in the order of their requests"
            )
        frame = write_response(
            response.body,
            api_key=request.api_key,
            version=request.response_version,
            correlation_id=request.correlation_id,
            kafka=self.kafka,
        )
        self._open.popleft()
        return frame

    def _next_frame(self) -> bytes | memoryview | NeedData:
        if self.state is State.CLOSED:
            return NEED_DATA
        self._require(Event.RECEIVE)
        try:
            return self._frames.next_frame()
        except DecodeError:
            self._move(Event.BREAK)
            raise

    def _require(self, event: Event) -> None:
        if (self.state, event) not in TRANSITIONS:
            raise OptionError(f"connection is {self.state.value}: cannot {event.value}")

    def _require_role(self, role: Role) -> None:
        if self.role is not role:
            raise OptionError(f"connection is a {self.role.value}'s: only a {role.value}'s can do this")

    def _move(self, event: Event) -> None:
        self._require(event)
        self.state = TRANSITIONS[self.state, event]
