"""One TCP connection as Kafka requests and responses, matched by correlation id.

The client is the end that sends the SYN, the end whose peer is a known broker, or the end that sends a complete request
with a client id (without one, a response may look like a Produce request). A connection whose first bytes do not look
like Kafka's is ignored, unless its port is one of the brokers'. Brokers respond in the order of requests, so a response
to a later request means that the responses to the earlier ones were not captured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from kwire.capture.exchange import Address, Exchange
from kwire.capture.frame_stream import Frame, FrameStream
from kwire.capture.packets import FIN, RST, SYN, Segment
from kwire.capture.reassembly import Hole, Piece, TcpStream
from kwire.errors import KwireError, UnsupportedVersion
from kwire.messages import registry
from kwire.plan import Codec
from kwire.protocol import read_request, request_codec, request_key, response_codec

__all__ = ["Conversation"]

PRODUCE, SASL_HANDSHAKE = 0, 17
HEADER_BYTES = 14  # length, api key, version, correlation id, length of the client id
MIN_REQUEST_BYTES, MIN_RESPONSE_BYTES = 8, 4
MAX_OPEN_REQUESTS = 10_000  # a client has a handful in flight; more means that one direction was not captured
MAX_EARLIER_REQUESTS = 1_000
MAX_UNRECOGNIZED_BYTES = 1 << 16
KNOWN_REQUESTS = 4096  # whether kwire has them is remembered: most bytes are not Kafka's
TLS_HANDSHAKE = b"\x16\x03"


class Conversation:
    """Converts the segments of one connection to exchanges, in the order in which they are complete.

    number: index of the connection in the capture. brokers: known addresses of brokers; updated. lost_bytes: bytes of
    both directions in which no frame was found. closed_at_ns: when both ends had closed.
    A capture may have very many connections, most of which are not Kafka's: they cost little until frames are read.
    """

    __slots__ = (
        "_brokers",
        "_client",
        "_closed_by",
        "_frames",
        "_is_kafka",
        "_is_lost",
        "_ports",
        "_server",
        "_source_stream",
        "_target_stream",
        "_unrecognized",
        "_unrecognized_size",
        "closed_at_ns",
        "lost_bytes",
        "number",
        "source",
        "target",
    )

    def __init__(self, number: int, first: Segment, ports: frozenset[int], brokers: set[Address]) -> None:
        self.number, self._ports, self._brokers = number, ports, brokers
        self.closed_at_ns: int | None = None
        self.source, self.target = first.source, first.target
        self._source_stream: TcpStream | None = None  # what the source of the first segment sends
        self._target_stream: TcpStream | None = None
        self._closed_by: tuple[Address, ...] = ()
        self._client: Address | None = None
        self._server: Address | None = None
        self._unrecognized: list[tuple[Address, Piece | Hole]] | None = None
        self._unrecognized_size = 0
        self._is_kafka: bool | None = None
        self._is_lost = False  # whether frames have to be searched for: the capture starts in the middle
        self._frames: MatchedFrames | None = None
        self.lost_bytes = 0
        forth, back = (first.source, first.target), (first.target, first.source)
        if first.flags & SYN:
            self._client, self._server = forth if first.acknowledged < 0 else back
        elif any(server in brokers or server[1] in ports for _, server in (forth, back)):
            self._client, self._server = forth if first.target in brokers or first.target[1] in ports else back
            self._is_kafka = self._is_lost = True

    def is_reused_by(self, segment: Segment) -> bool:
        """Return whether segment opens a new connection between the same ports."""
        stream = self._source_stream if segment.source == self.source else self._target_stream
        started = None if stream is None else stream.position
        is_first = segment.flags & SYN and segment.acknowledged < 0
        return bool(is_first and started is not None and (started > 0 or self.closed_at_ns is not None))

    def _stream(self, sender: Address) -> TcpStream:
        """Return the stream of what an end sends."""
        if sender == self.source:
            if self._source_stream is None:
                self._source_stream = TcpStream()
            return self._source_stream
        if self._target_stream is None:
            self._target_stream = TcpStream()
        return self._target_stream

    def add(self, segment: Segment) -> Iterator[Exchange]:
        """Add a segment; yield the exchanges that it completes."""
        if segment.flags & SYN:
            self._stream(segment.source).start(segment.sequence)
        elif (segment.data or segment.missing_bytes) and self._is_kafka is not False:
            stream = self._stream(segment.source)
            for part in stream.add(segment.sequence, segment.data, segment.missing_bytes, segment.time_ns):
                yield from self._part(segment.source, part)
        peer = self._target_stream if segment.source == self.source else self._source_stream
        if segment.acknowledged >= 0 and peer is not None and self._is_kafka is not False:
            for part in peer.acknowledge(segment.acknowledged, segment.time_ns):
                yield from self._part(segment.target, part)
        if segment.flags & RST:
            self._closed_by = (self.source, self.target)
        elif segment.flags & FIN and segment.source not in self._closed_by:
            self._closed_by = (*self._closed_by, segment.source)
        if len(self._closed_by) == 2:
            self.closed_at_ns = segment.time_ns

    def finish(self) -> Iterator[Exchange]:
        """Yield the rest at the end of the connection or capture, including requests without a response."""
        if self._is_kafka is False:
            return
        for sender, stream in ((self.source, self._source_stream), (self.target, self._target_stream)):
            for part in stream.finish() if stream is not None else ():
                yield from self._part(sender, part)
        if self._frames is not None:
            yield from self._frames.finish()
            self.lost_bytes = self._frames.lost_bytes

    # ---- which end is which

    def _part(self, source: Address, part: Piece | Hole) -> Iterator[Exchange]:
        if self._is_kafka is None:
            if self._unrecognized is None:
                self._unrecognized = []
            self._unrecognized.append((source, part))
            self._unrecognized_size += len(part.data) if isinstance(part, Piece) else 1
            self._is_kafka = is_kafka = self._recognize(source, part)
            if is_kafka is None:
                return
            waiting, self._unrecognized = self._unrecognized, None
            for address, each in waiting if is_kafka else ():
                yield from self._kafka_part(address, each)
            if is_kafka and self._server:
                self._brokers.add(self._server)
        elif self._is_kafka:
            yield from self._kafka_part(source, part)

    def _kafka_part(self, source: Address, part: Piece | Hole) -> Iterator[Exchange]:
        if self._frames is None:
            assert self._client is not None  # decided before any frame is read
            assert self._server is not None
            self._frames = MatchedFrames(self.number, self._client, self._server, is_lost=self._is_lost)
        return self._frames.add(source, part)

    def _recognize(self, source: Address, part: Piece | Hole) -> bool | None:
        """Return whether the connection is Kafka's, and find out the client; None if more bytes are needed."""
        if isinstance(part, Piece):
            if self._client is None:
                if part.is_segment_start and is_request_with_client_id(memoryview(part.data)):
                    self._client, self._server = source, self.target if source == self.source else self.source
                    self._is_lost = True
                    return True
            elif source == self._client and part.position == 0:
                if self._server is not None and self._server[1] in self._ports:
                    return True
                is_request = looks_like_request(memoryview(part.data), None, -1)
                return is_request is not False and not part.data.startswith(TLS_HANDSHAKE)
        return False if self._unrecognized_size > MAX_UNRECOGNIZED_BYTES else None


class MatchedFrames:
    """The frames of a Kafka connection, responses with their requests.

    is_lost: whether frames have to be searched for at first. lost_bytes: in which no frame was found.
    """

    __slots__ = (
        "_client",
        "_client_id",
        "_early_responses",
        "_handshake",
        "_last_correlation_id",
        "_number",
        "_open",
        "_requests",
        "_responses",
        "_server",
    )

    def __init__(self, number: int, client: Address, server: Address, *, is_lost: bool) -> None:
        self._number, self._client, self._server = number, client, server
        self._requests = FrameStream(self._looks_like_request, min_bytes=MIN_REQUEST_BYTES, is_lost=is_lost)
        self._responses = FrameStream(self._looks_like_response, min_bytes=MIN_RESPONSE_BYTES, is_lost=is_lost)
        self._open: dict[int, Exchange] = {}  # by correlation id, oldest first
        self._early_responses: dict[int, Frame] = {}  # responses captured before their requests
        self._handshake: Exchange | None = None  # after SaslHandshake v0, whose tokens have no header
        self._client_id: str | None = None
        self._last_correlation_id = -1

    @property
    def lost_bytes(self) -> int:
        """Bytes of both directions in which no frame was found."""
        return self._requests.lost_bytes + self._responses.lost_bytes

    def finish(self) -> Iterator[Exchange]:
        """Yield requests without a response, and responses without a request."""
        yield from self._without_response(list(self._open))
        for correlation_id, frame in self._early_responses.items():
            problem = "its request was not captured: unknown API and version"
            yield replace(self._exchange(), correlation_id=correlation_id, response=frame, problem=problem)

    # ---- frames to exchanges

    def add(self, source: Address, part: Piece | Hole) -> Iterator[Exchange]:
        """Add the next part of what an end sends; yield the exchanges that it completes."""
        if source == self._client:
            for frame in self._requests.add(part):
                yield from self._request(frame)
            for frame in self._responses.search_again():
                yield from self._response(frame)
        else:
            for frame in self._responses.add(part):
                yield from self._response(frame)

    def _exchange(self) -> Exchange:
        return Exchange(connection=self._number, client=self._client, server=self._server)

    def _request(self, frame: Frame) -> Iterator[Exchange]:
        header = parse_request_header(memoryview(frame.data))
        if self._handshake is not None and (header is None or not is_known(header[0], header[1])):
            # The token is a password or a proof of one: it is counted, but not kept.
            self._handshake = None
            hidden = replace(frame, data=b"")
            yield replace(self._exchange(), request=hidden, problem="SASL token without a header, hidden")
            return
        if header is None:
            problem = "its header was not captured" if not frame.is_whole else "not a request"
            yield replace(self._exchange(), request=frame, problem=problem)
            return
        api_key, version, correlation_id, client_id = header
        self._client_id = client_id if client_id is not None else self._client_id
        self._last_correlation_id = correlation_id
        exchange = replace(
            self._exchange(),
            api_key=api_key,
            api_version=version,
            correlation_id=correlation_id,
            client_id=client_id,
            request=frame,
            expects_response=expects_response(api_key, frame),
            problem=None if is_known(api_key, version) else f"unknown api key {api_key} version {version}",
        )
        self._handshake = exchange if api_key == SASL_HANDSHAKE and version == 0 else None
        if not exchange.expects_response:
            yield exchange
            return
        if correlation_id in self._early_responses:
            yield replace(exchange, response=self._early_responses.pop(correlation_id))
            return
        if correlation_id in self._open:
            yield from self._without_response([correlation_id])
        if len(self._open) >= MAX_OPEN_REQUESTS:
            yield from self._without_response([next(iter(self._open))])
        self._open[correlation_id] = exchange

    def _response(self, frame: Frame) -> Iterator[Exchange]:
        if len(frame.data) < 8:
            problem = "its correlation id was not captured" if not frame.is_whole else "SASL token without a header"
            yield replace(self._exchange(), response=frame, problem=problem)
            return
        correlation_id = int.from_bytes(frame.data[4:8], "big", signed=True)
        request = self._open.pop(correlation_id, None)
        if request is None:
            # The packets of the two directions may be out of order in the file; finish() yields what remains unmatched.
            while len(self._early_responses) >= MAX_OPEN_REQUESTS:
                del self._early_responses[next(iter(self._early_responses))]
            self._early_responses[correlation_id] = frame
            return
        assert request.request is not None
        before = [
            number
            for number, each in self._open.items()
            if each.request is not None and each.request.position < request.request.position
        ]
        yield from self._without_response(before)
        yield replace(request, response=frame)

    def _without_response(self, correlation_ids: list[int]) -> Iterator[Exchange]:
        for correlation_id in correlation_ids:
            exchange = self._open.pop(correlation_id)
            missing = "its response was not captured"
            yield replace(exchange, problem=f"{exchange.problem}; {missing}" if exchange.problem else missing)

    # ---- synchronization

    def _looks_like_request(self, view: memoryview, is_packet_start: bool) -> bool | None:
        is_request = looks_like_request(view, self._client_id, self._last_correlation_id)
        if not is_request:
            return is_request
        header = parse_request_header(view)
        has_client_id = header is not None and header[3]  # zeros look like a Produce without one
        return True if is_packet_start and has_client_id else decodes(view, request_codec, *request_key(view))

    def _looks_like_response(self, view: memoryview, is_packet_start: bool) -> bool | None:
        if len(view) < 8:
            return None
        correlation_id = int.from_bytes(view[4:8], "big", signed=True)
        request = self._open.get(correlation_id)
        if request is None:  # a packet may start with the response to a request before the capture
            return is_packet_start and 0 <= self._last_correlation_id - correlation_id < MAX_EARLIER_REQUESTS
        if is_packet_start:
            return True
        assert request.api_key is not None
        assert request.api_version is not None
        return decodes(view, response_codec, request.api_key, request.api_version)


RequestHeader = tuple[int, int, int, str | None]


def parse_request_header(view: memoryview) -> RequestHeader | None:
    """Return (api key, version, correlation id, client id) of a possible request; None if it cannot be one.

    view: the frame with its length, or its first bytes. These fields have the same position in all versions of the
    header, except that version 0, of ControlledShutdown v0 only, has no client id (W-84).
    """
    if len(view) < HEADER_BYTES - 2:
        return None
    api_key, version = request_key(view)
    correlation_id = int.from_bytes(view[8:12], "big", signed=True)
    size = int.from_bytes(view[12:14], "big", signed=True) if len(view) >= HEADER_BYTES else -1
    if size < 0:
        return api_key, version, correlation_id, None
    try:
        return api_key, version, correlation_id, bytes(view[HEADER_BYTES : HEADER_BYTES + size]).decode()
    except UnicodeDecodeError:
        return None


@lru_cache(KNOWN_REQUESTS)
def is_known(api_key: int, version: int) -> bool:
    """Return whether kwire has this request."""
    try:
        registry.request(api_key).check_version(version)
    except UnsupportedVersion:
        return False
    return True


def looks_like_request(view: memoryview, client_id: str | None, after: int) -> bool | None:
    """Return whether view starts with a request, by its header; None if more bytes are needed.

    client_id: of the requests on this connection, None if unknown. after: the last correlation id.
    """
    if len(view) < HEADER_BYTES:
        return None
    length = int.from_bytes(view[:4], "big", signed=True)
    api_key, version = request_key(view)
    size = int.from_bytes(view[12:14], "big", signed=True)
    if length < MIN_REQUEST_BYTES or not is_known(api_key, version) or not -1 <= size <= length - 10:
        return False
    if int.from_bytes(view[8:12], "big", signed=True) <= after:
        return False
    if len(view) < HEADER_BYTES + size:
        return None
    header = parse_request_header(view)
    if header is None:
        return False
    name = header[3]
    return (client_id is None or name == client_id) and (name is None or name.isprintable())


def is_request_with_client_id(view: memoryview) -> bool:
    """Return whether view starts with a complete request that has a client id."""
    header = parse_request_header(view) if looks_like_request(view, None, -1) else None
    return header is not None and bool(header[3]) and decodes(view, request_codec, header[0], header[1]) is True


def decodes(view: memoryview, codec_of: Callable[[int, int], Codec], api_key: int, version: int) -> bool | None:
    """Return whether view starts with a valid frame of this API and version; None if the frame is incomplete."""
    size = 4 + int.from_bytes(view[:4], "big", signed=True)
    if len(view) < size:
        return None
    try:
        codec_of(api_key, version).decode(bytes(view[:size]), lenient=True)
    except KwireError:
        return False
    return True


def expects_response(api_key: int, frame: Frame) -> bool:
    """Return whether a request gets a response: all do, except Produce with acks=0."""
    if api_key != PRODUCE or not frame.is_whole:
        return True
    try:
        return read_request(frame.data, views=True, lenient=True).expects_reply
    except KwireError:
        return True
