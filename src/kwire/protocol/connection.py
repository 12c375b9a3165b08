"""One end of a Kafka connection, without a socket: bytes in, messages out, and back.

    conn = Connection(Role.BROKER)                        conn = Connection(Role.CLIENT, client_id="app")
    conn.receive_data(chunk)                              socket.send(conn.negotiate())
    while (request := conn.next_request()):               ...conn.receive_data(chunk); conn.next_response()
        socket.send(conn.send(request.reply(body)))       socket.send(conn.send(MetadataRequest(...)))

Nothing here waits, reads a clock or starts a thread. Responses go out in the order of their requests and are told
apart by the correlation id, as Kafka does it: whatever comes with another one than the oldest open request's ends the
connection.

TRANSITIONS is the table of states; every other pair of state and event is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from kwire.errors import DecodeError, KwireError, Malformed, OptionError, Truncated, UnsupportedVersion
from kwire.messages import registry
from kwire.protocol.frames import (
    MAX_FRAME_BYTES,
    NEED_DATA,
    FrameBuffer,
    NeedData,
    request_codec,
    request_key,
    response_codec,
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

__all__ = ["TRANSITIONS", "Connection", "Event", "Request", "Response", "Role", "State"]

PRODUCE = 0
ERROR_CODE_POSITION = 8  # of an ApiVersions response: behind length and correlation id, in every version
MAX_CORRELATION_ID = 2**31 - 1


class Role(Enum):
    """Which end this is."""

    BROKER = "broker"
    CLIENT = "client"


class State(Enum):
    """OPEN: no versions agreed. NEGOTIATING: asked. READY: requests may go. FAILED: bad bytes came. CLOSED."""

    OPEN = "open"
    NEGOTIATING = "negotiating"
    READY = "ready"
    FAILED = "failed"
    CLOSED = "closed"


class Event(Enum):
    """What happens to a connection."""

    RECEIVE = "bytes came"
    ASK = "versions asked for"
    AGREE = "versions told"
    REFUSE = "version of the question refused"
    SEND = "message sent"
    SEND_EXPLICIT = "message sent in a version of the caller's"
    BREAK = "bytes broke the protocol"
    CLOSE = "closed"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request that came or went.

    header: RequestHeader; body: the request, None if its version is one that this side does not know (only ApiVersions:
    any other ends the connection). expects_reply: false for a Produce with acks=0. size_bytes: of the frame.
    """

    api_key: int
    version: int
    header: Any
    body: Any
    expects_reply: bool
    size_bytes: int

    @property
    def correlation_id(self) -> int:
        """The number that the response repeats."""
        return int(self.header.correlation_id)

    @property
    def client_id(self) -> str:
        """The client's name; a null one is empty (W-84)."""
        return self.header.client_id or ""

    def reply(self, body: Any) -> Response:
        """The response with that body, in this request's version."""
        return Response(request=self, body=body, size_bytes=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response with the request it answers. size_bytes: of the frame, 0 until it was one."""

    request: Request
    body: Any
    size_bytes: int


class Connection:
    """One end of a connection.

    role: BROKER receives requests and sends responses, CLIENT the reverse.
    client_id: what a client calls itself. kafka: read and write messages as that release has them.
    versions: what this side speaks, by api key (all that kwire knows). max_frame_bytes: of a frame that comes.
    views: bytes and records as memoryviews of the frame instead of copies; lenient: see kwire.plan.reading.
    """

    def __init__(
        self,
        role: Role,
        *,
        client_id: str | None = "kwire",
        kafka: str | None = None,
        versions: Mapping[int, Versions] | None = None,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        views: bool = False,
        lenient: bool = False,
    ) -> None:
        self.role, self.client_id, self.kafka, self.views, self.lenient = role, client_id, kafka, views, lenient
        self.versions = dict(supported(kafka) if versions is None else versions)
        self.state = State.OPEN if role is Role.CLIENT else State.READY
        self.peer_versions: dict[int, Versions] = {}
        self._frames = FrameBuffer(max_frame_bytes)
        self._open: deque[Request] = deque()
        self._correlation_id = -1

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Take bytes from the peer, however they were split; no bytes are the end of the stream.

        Raises Truncated when the stream ends inside a frame, OptionError after that or after a failure.
        """
        self._require(Event.RECEIVE)
        if len(data):
            self._frames.append(data)
            return
        left = len(self._frames)
        self.close()
        if left:
            raise Truncated(f"the stream ends inside a frame, {left} bytes of it are here", left)

    def close(self) -> None:
        """No more bytes either way. What was received and not taken is dropped."""
        self._move(Event.CLOSE)
        self._frames = FrameBuffer(self._frames.max_frame_bytes)
        self._open.clear()

    @property
    def open_requests(self) -> tuple[Request, ...]:
        """The requests that wait for their response, oldest first."""
        return tuple(self._open)

    # Broker

    def next_request(self) -> Request | NeedData:
        """The next request, or NEED_DATA.

        Raises Malformed, Truncated or UnsupportedVersion when it cannot be read; the connection has then failed, as
        there is no answer to what cannot be understood. The exception is an ApiVersions request of an unknown
        version: it comes with body None, and `refuse_version` is the answer (W-85).
        """
        self._require_role(Role.BROKER)
        frame = self._next_frame()
        if isinstance(frame, NeedData):
            return frame
        try:
            request = self._read_request(frame)
        except KwireError:
            self._move(Event.BREAK)
            raise
        if request.expects_reply:
            self._open.append(request)
        return request

    def refuse_version(self, request: Request) -> Response:
        """The answer to an ApiVersions request of a version that this side does not know."""
        return request.reply(describe(self.versions, UNSUPPORTED_VERSION))

    def offer_versions(self, request: Request) -> Response:
        """The answer to an ApiVersions request: what this side speaks, or the refusal of the request's own version."""
        return self.refuse_version(request) if request.body is None else request.reply(describe(self.versions))

    def _read_request(self, frame: bytes) -> Request:
        api_key, version = request_key(frame)
        ours = self.versions.get(api_key)
        if ours is None:
            raise UnsupportedVersion(f"request with api key {api_key}, which is not served here")
        if version in ours:
            header, body = request_codec(api_key, version, self.kafka).decode(frame, self.views, self.lenient)
            expects_reply = api_key != PRODUCE or body.acks != 0
        elif api_key == API_VERSIONS:
            header, body, expects_reply = self._header_alone(frame), None, True
        else:
            raise UnsupportedVersion(f"request with api key {api_key} version {version}, served are versions {ours}")
        return Request(
            api_key=api_key,
            version=version,
            header=header,
            body=body,
            expects_reply=expects_reply,
            size_bytes=len(frame),
        )

    @staticmethod
    def _header_alone(frame: bytes) -> Any:
        """The header of a request whose body has an unknown form: ApiVersions of a later, hence flexible version."""
        cls = registry.get("RequestHeader")
        header, _ = cls.decode_from(frame, 4, version=cls.VALID_VERSIONS.highest)
        return header

    # Client

    def negotiate(self, client_software_name: str = "kwire", client_software_version: str = "0") -> bytes:
        """An ApiVersions request in the highest version that is not known to be refused.

        Feed what comes back and take it with `next_response`: the connection is then READY, or OPEN again after a
        refusal, to ask once more in a version that the broker has. Raises UnsupportedVersion when there is none.
        """
        self._require_role(Role.CLIENT)
        self._require(Event.ASK)
        ours = self.versions.get(API_VERSIONS)
        version = highest_common(API_VERSIONS, ours, self.peer_versions.get(API_VERSIONS, ours))
        cls: Any = registry.request(API_VERSIONS, self.kafka)
        body = cls(client_software_name=client_software_name, client_software_version=client_software_version)
        data = self._write_request(body, API_VERSIONS, version)
        self._move(Event.ASK)
        return data

    def version_for(self, api_key: int) -> int:
        """The highest version that both sides speak. Raises UnsupportedVersion if there is none."""
        return highest_common(api_key, self.versions.get(api_key), self.peer_versions.get(api_key))

    def next_response(self) -> Response | NeedData:
        """The next response, or NEED_DATA.

        Raises Malformed or Truncated when it cannot be read or answers no open request; the connection has then failed.
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
            self._learn(response)
        return response

    def _read_response(self, frame: bytes) -> Response:
        if len(frame) < 8:
            raise Truncated(f"response of {len(frame) - 4} bytes, its correlation id takes 4", 4)
        correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
        if not self._open:
            raise Malformed(f"response with correlation id {correlation_id}, and no request is open", 4)
        request = self._open[0]
        if correlation_id != request.correlation_id:
            what = (
                f"response with correlation id {correlation_id}, the oldest open request has {request.correlation_id}"
            )
            raise Malformed(what, 4)
        version = request.version
        if request.api_key == API_VERSIONS and _refused(frame):
            version = 0
        codec = response_codec(request.api_key, version, self.kafka)
        _, body = codec.decode(frame, self.views, self.lenient)
        return Response(request=request, body=body, size_bytes=len(frame))

    def _learn(self, response: Response) -> None:
        """What an ApiVersions response says about the peer."""
        told = offered(response.body.api_keys)
        if response.body.error_code == UNSUPPORTED_VERSION:
            # Brokers before KIP-511 name nothing: then version 0 is the one that all of them have.
            below = Versions(0, response.request.version - 1)
            self.peer_versions = {API_VERSIONS: told.get(API_VERSIONS, Versions(0, 0)).intersect(below)}
            self._move(Event.REFUSE)
            return
        self.peer_versions = told
        self._move(Event.AGREE)

    # Both

    def send(self, outgoing: Response | Message, *, version: int | None = None) -> bytes:
        """The bytes of a response (broker) or of a request (client), to be sent as they are.

        version: of a client's request, in place of the highest that both sides speak. Raises EncodeError when the
        message does not fit its version, OptionError when it is not this connection's turn to send it,
        UnsupportedVersion.
        """
        if isinstance(outgoing, Response):
            self._require_role(Role.BROKER)
            return self._write_response(outgoing)
        self._require_role(Role.CLIENT)
        self._require(Event.SEND if version is None else Event.SEND_EXPLICIT)
        api_key = outgoing.API_KEY
        if api_key is None or outgoing.SPEC.kind != "request":
            raise OptionError(f"{type(outgoing).__name__} is no request")
        return self._write_request(outgoing, api_key, self.version_for(api_key) if version is None else version)

    def _write_request(self, body: Any, api_key: int, version: int) -> bytes:
        cls: Any = registry.get("RequestHeader")
        # After the largest int32 comes the smallest: what counts is that open requests have different ones.
        correlation_id = 0 if self._correlation_id == MAX_CORRELATION_ID else self._correlation_id + 1
        header = cls(
            request_api_key=api_key,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=self.client_id,
        )
        data = request_codec(api_key, version, self.kafka).encode((header, body))
        self._correlation_id = correlation_id
        request = Request(
            api_key=api_key,
            version=version,
            header=header,
            body=body,
            expects_reply=api_key != PRODUCE or body.acks != 0,
            size_bytes=len(data),
        )
        if request.expects_reply:
            self._open.append(request)
        return data

    def _write_response(self, response: Response) -> bytes:
        self._require(Event.SEND)
        request = response.request
        if not self._open or self._open[0] is not request:
            raise OptionError(
                f"the response to request {request.correlation_id} is not the next one: "
                f"{len(self._open)} requests are open, and responses go out in their order"
            )
        version = request.version
        if request.api_key == API_VERSIONS and version not in self.versions[API_VERSIONS]:
            version = 0  # W-85
        cls: Any = registry.get("ResponseHeader")
        header = cls(correlation_id=request.correlation_id)
        data = response_codec(request.api_key, version, self.kafka).encode((header, response.body))
        self._open.popleft()
        return data

    def _next_frame(self) -> bytes | NeedData:
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
            raise OptionError(f"{event.value}: not possible, the connection is {self.state.value}")

    def _require_role(self, role: Role) -> None:
        if self.role is not role:
            raise OptionError(f"only a {role.value} does this, the connection is a {self.role.value}'s")

    def _move(self, event: Event) -> None:
        self._require(event)
        self.state = TRANSITIONS[self.state, event]


def _refused(frame: bytes) -> bool:
    """Whether an ApiVersions response says UNSUPPORTED_VERSION, which it does in version 0."""
    code = frame[ERROR_CODE_POSITION : ERROR_CODE_POSITION + 2]
    return code == UNSUPPORTED_VERSION.to_bytes(2, "big")
