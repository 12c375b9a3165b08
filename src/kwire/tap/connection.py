"""One client's connection through the tap: its requests to a node of the cluster, and the responses back.

Bytes are passed on as they arrive. A frame is held only if somebody has to read it: a fault that may apply, the request
log, a recording that must not contain secrets, or a response with addresses. Responses keep the order of the requests,
and so do the requests that the cluster sees: while faults apply to one, the next ones wait.

A Fetch response that is too large to be held is passed on without the addresses in it, unless a fault applies to it.

Memory of a connection: one frame in each direction that is held, within a limit for all connections (see memory), and
what the operating system has not taken, after which the other side is not read from: a client that does not read stops
the node that sends to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kwire.broker.context import Peer
from kwire.broker.faults.effects import HALF
from kwire.broker.faults.names import FETCH, SHARE_FETCH
from kwire.broker.network.pacing import SlowBytes
from kwire.broker.security.tls import principal_of
from kwire.errors import DecodeError, KwireError, Malformed
from kwire.messages import ApiVersionsRequest
from kwire.protocol.frames import LENGTH_BYTES, MAX_FRAME_BYTES
from kwire.protocol.requests import read_correlation_id, write_response
from kwire.protocol.versions import API_VERSIONS, UNSUPPORTED_VERSION, describe
from kwire.tap.addresses import carriers
from kwire.tap.fetch_stream import FIRST_WITH_ADDRESSES, FetchStream
from kwire.tap.frames import FrameSplitter, Way
from kwire.tap.memory import HeldFrame
from kwire.tap.reading import Reading
from kwire.tap.requests import (
    HEAD_BYTES,
    PRODUCE,
    Acks,
    Head,
    looks_like_request,
    peek_acks,
    read_head,
)
from kwire.tap.responses import KNOWN, Answer, changes, read_answer
from kwire.tap.side import Side

if TYPE_CHECKING:
    from kwire.broker.faults.effects import Delivery
    from kwire.tap.addresses import Node
    from kwire.tap.listeners import Listener
    from kwire.tap.memory import FrameMemory
    from kwire.tap.shared import Shared

__all__ = ["TapConnection"]

log = logging.getLogger("kwire.tap")

SASL_HANDSHAKE = 17
READ_AHEAD_BYTES = 64 * 1024
"""Read from a client whose request waits, so that its end is noticed."""
MAX_PENDING = 10_000
"""Requests without a response, beyond which the client is not read from."""
FLUSH_S = 10.0
"""Time for a client to take what it was sent, once its connection ends."""


class Pending:
    """A request whose response has not been sent. reply: is complete; may_pass: whether the next one may be sent.

    reading: how the response is read, None if it is passed on; waiter: gets the frame instead of the client.
    is_token: a SASL token without a header.
    """

    __slots__ = ("head", "is_token", "reading", "reply", "waiter")

    def __init__(self, head: Head, *, is_token: bool = False, reply: bytes | None = None) -> None:
        self.head, self.is_token, self.reply = head, is_token, reply
        self.waiter: asyncio.Future[bytes] | None = None
        self.reading: Reading | None = None


class TapConnection:
    """A client's connection with the one to the node. closed: called once."""

    def __init__(
        self, shared: Shared, listener: Listener, number: int, closed: Callable[[TapConnection], None]
    ) -> None:
        self.shared, self.listener, self._closed = shared, listener, closed
        self.number = number
        self.client = Side(self._from_client, lambda error: self._ended("client", error))
        self.upstream = Side(self._from_upstream, lambda error: self._ended("broker", error))
        self.client.other, self.upstream.other = self.upstream, self.client
        self.client.connected = self._client_connected
        self._requests = FrameSplitter(self._decide_request, self._pass_request, self._take_request)
        self._responses = FrameSplitter(self._decide_response, self._pass_response, self._take_response)
        self._held_request = self._held(shared.request_memory, self._requests, self.client)
        self._held_response = self._held(shared.response_memory, self._responses, self.upstream)
        self._pending: deque[Pending] = deque()
        self._to_client: list[bytes | memoryview] = []
        self._to_upstream: list[bytes | memoryview] = []
        self._rest: bytes = b""  # received from the client and not handled
        self._is_connected = self._has_left = False  # to the node; the client, whose last requests wait for that
        self._takes_tokens = self._keeps_token = False
        self._work: asyncio.Task[None] | None = None  # a request with faults
        self._slow: SlowBytes | None = None
        self._stream: FetchStream | None = None  # a response with addresses that is passed
        self._connecting: asyncio.Task[None] | None = None
        self.is_open = True
        self.peer = Peer(connection_id="", host="", port=0, listener="")
        self.local_host = ""
        self.track: Any = None  # of a recording

    def _held(self, memory: FrameMemory, frames: FrameSplitter, side: Side) -> HeldFrame:
        return HeldFrame(
            memory,
            frames,
            pause=lambda: side.stop_reading("memory"),
            resume=lambda: side.read_again("memory"),
            stalled=lambda: self.close("paused inside a large frame while others waited for its memory"),
        )

    @property
    def node(self) -> Node:
        """The node that the connection leads to, as far as it is known."""
        return self.listener.node

    @property
    def port(self) -> int:
        """The port of the listener."""
        return self.listener.port

    def place(self, node: Node, host: str, port: int) -> tuple[str, int]:
        """Return the address by which the client reaches a node."""
        return self.shared.listeners.place(self.local_host, node, host, port)

    # Opening

    def _client_connected(self) -> None:
        assert self.client.transport is not None
        extra = self.client.transport.get_extra_info
        host, port = extra("peername")[:2]
        local_host, local_port = extra("sockname")[:2]
        self.local_host = local_host
        is_tls = self.shared.listeners.tls is not None
        self.peer = Peer(
            connection_id=f"{local_host}:{local_port}-{host}:{port}-{self.number}",
            host=host,
            port=port,
            listener="TAP",
            security_protocol="SSL" if is_tls else "PLAINTEXT",
        )
        if is_tls:
            self.peer.principal = principal_of(extra("peercert"))
        if self.shared.recorder is not None:
            self.track = self.shared.recorder.begin((host, port), (local_host, local_port))
        self._connecting = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        try:
            await self.shared.connect(self.listener.targets, self.upstream)
        except (OSError, UnicodeError) as error:
            target = ",".join(f"{host}:{port}" for host, port in self.listener.targets)
            level = self.shared.level_of(f"cannot connect to {target}")
            self.close(f"cannot connect to {target}: {reason_of(error)}", level=level)
            return
        self._is_connected = True
        self._continue()
        if self._has_left:
            self._ended("client", None)

    # From the client

    @property
    def _is_blocked(self) -> bool:
        """Whether the client's next request has to wait."""
        return not self._is_connected or self._work is not None or self._slow is not None

    def _from_client(self, data: bytes) -> None:
        if self._is_blocked or self._rest:
            self._rest = self._rest + data if self._rest else data
            if len(self._rest) > READ_AHEAD_BYTES:
                self.client.stop_reading("request")
            return
        self._feed(data)

    def _continue(self) -> None:
        """Handle what waits, if it may be handled now."""
        if self._is_blocked or not self.is_open:
            return
        rest, self._rest = self._rest, b""
        self._requests.is_paused = False
        if rest:
            self._feed(rest)
        if not self._rest:
            self.client.read_again("request")

    def _feed(self, data: bytes) -> None:
        try:
            rest = self._requests.feed(data)
        except KwireError as error:
            self.close(f"{type(error).__name__}: {error}")
            return
        except Exception:
            log.exception("connection %s: a request could not be handled", self.peer.connection_id)
            self.close("internal error of the tap")
            return
        self._flush()
        if self.is_open:
            self._held_request.count()
        if rest and self.is_open:
            self._rest = bytes(rest)
            if len(self._rest) > READ_AHEAD_BYTES:
                self.client.stop_reading("request")
        if len(self._pending) > MAX_PENDING:
            self.client.stop_reading("pending")

    def _decide_request(self, view: bytes | memoryview, size: int) -> Way:
        if size > LENGTH_BYTES + MAX_FRAME_BYTES:  # Kafka closes the connection before more arrives
            raise Malformed(f"request of {size - LENGTH_BYTES} bytes, at most {MAX_FRAME_BYTES} are allowed", 0)
        if self._takes_tokens:
            if len(view) < min(size, HEAD_BYTES):
                return Way.PEEK
            if not looks_like_request(view):
                self._pending.append(Pending(Head(-1, 0, 0, False), is_token=True))
                self._keeps_token = self.track is not None
                return Way.KEEP if self._keeps_token else Way.PASS
            self._takes_tokens = False
        if size < HEAD_BYTES:
            raise Malformed(f"request of {size - LENGTH_BYTES} bytes", LENGTH_BYTES)
        if len(view) < HEAD_BYTES:
            return Way.PEEK
        head = read_head(view)
        if not head.is_known:
            return self._decide_unknown(head)
        if head.api_key == SASL_HANDSHAKE and head.version == 0:
            self._takes_tokens = True
        if self.shared.reads_request(head.api_key) or (self.track is not None and self.track.hides(head.api_key)):
            return Way.KEEP
        if head.api_key == PRODUCE:
            acks = peek_acks(view, head.version)
            if acks is Acks.UNKNOWN:
                return Way.PEEK
            if acks is Acks.NONE:
                return Way.PASS
        elif head.api_key == FETCH:
            self.shared.topics.forget_sessions()  # this one may change them unseen
        elif head.api_key == SHARE_FETCH:
            self.shared.topics.forget_share_sessions()
        self._pending.append(Pending(head))
        return Way.PASS

    def _decide_unknown(self, head: Head) -> Way:
        """Refuse a request whose response could lead the client past the tap; pass others."""
        if head.api_key == API_VERSIONS:
            return Way.KEEP
        if carriers(head.api_key):
            supported = KNOWN.get(head.api_key)
            raise Malformed(
                f"api key {head.api_key} version {head.version} is not supported by the tap; supported versions: "
                f"{supported}",
                4,
            )
        if self.track is not None and self.track.hides(head.api_key):
            raise Malformed(f"api key {head.api_key} version {head.version} cannot be recorded without its secrets", 4)
        self._pending.append(Pending(head))
        return Way.PASS

    def _pass_request(self, data: bytes | memoryview) -> None:
        self._to_upstream.append(data)
        if self.track is not None:
            self.track.sent(data)

    def _take_request(self, frame: bytes) -> None:
        """Handle a request that was kept."""
        if self._keeps_token:  # for a recording
            self._keeps_token = False
            self.track.token_sent(frame)
            self._to_upstream.append(frame)
            return
        if self.track is not None:
            self.track.request(frame)
        head = read_head(frame)
        if head.api_key == API_VERSIONS and not head.is_known:
            body = describe(KNOWN, UNSUPPORTED_VERSION)
            reply = write_response(body, api_key=API_VERSIONS, version=0, correlation_id=head.correlation_id)
            self._pending.append(Pending(head, reply=reply))
            return
        pending = Pending(head)
        try:
            reading = Reading(self, frame)
        except DecodeError as error:  # the cluster is the judge of it
            log.info("connection %s: api key %s: %s", self.peer.connection_id, head.api_key, error)
            self._pending.append(pending)
            self._to_upstream.append(frame)
            return
        if isinstance(reading.request.body, ApiVersionsRequest):
            asked = reading.request.body
            self.peer.client_software = (asked.client_software_name, asked.client_software_version)
        pending.reading = reading
        pending.reply = reading.own_reply()
        if pending.reply is not None:
            self._pending.append(pending)
            return
        plan = reading.plan()
        if plan is None:
            if reading.request.expects_reply:
                self._pending.append(pending)
            else:
                reading.log(None)
            self._to_upstream.append(frame)
            return
        self._requests.is_paused = True
        self._pending.append(pending)
        self._work = asyncio.ensure_future(self._run(pending, reading.inject(plan)))

    async def _run(self, pending: Pending, injected: Any) -> None:
        """Send the response to a request with faults."""
        reading = pending.reading
        assert reading is not None
        try:
            body = await injected
            must_close = self.peer.must_close
            call = reading.call
            frame = b""
            if body is not None and call.expects_reply:
                frame = reading.encode(body)
            reading.log(body if frame else None)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if not isinstance(error, KwireError):
                log.exception("api key %s failed", pending.head.api_key)
            self.close(f"its response could not be made: {error}", level=logging.WARNING)
            return
        finally:
            self._work = None
        if frame:
            self._deliver(pending, frame, call.delivery)
        else:
            with contextlib.suppress(ValueError):
                self._pending.remove(pending)
        self._flush()
        if (must_close or self.peer.must_close) and self._slow is None:
            self.close("closed by a fault")
        self._continue()

    def _deliver(self, pending: Pending, frame: bytes, delivery: Delivery | None) -> None:
        """Make a response ready, as a fault demands."""
        data = memoryview(frame)
        if delivery is not None and delivery.sent_bytes is not None:
            half = len(data) // 2
            data = data[: half if delivery.sent_bytes == HALF else min(delivery.sent_bytes, len(data) - 1)]
            self.peer.must_close = True
        if delivery is None or not delivery.bytes_per_second:
            pending.reply = bytes(data)
            return
        self._slow = SlowBytes(data, delivery.bytes_per_second)
        pending.reply = b""
        if self.track is not None:
            self.track.response(frame, pending.head)
        self._send_slowly()

    def _send_slowly(self) -> None:
        if self._slow is None or not self.is_open:
            return
        self._to_client.append(self._slow.next_piece())
        if self._slow.data:
            self.shared.timers.call_later(self._slow.pause_ms, self._send_slowly)
        else:
            self._slow = None
            if self.peer.must_close:
                self._flush()
                self.close("closed by a fault")
        self._flush()
        self._continue()

    def forward(self, reading: Reading, frame: bytes) -> asyncio.Future[bytes] | None:
        """Send a request with faults on; see Route."""
        self._to_upstream.append(frame)
        waiter = None
        if reading.request.expects_reply:
            pending = next(each for each in self._pending if each.reading is reading)
            waiter = pending.waiter = asyncio.get_running_loop().create_future()
        self._flush()
        return waiter

    # From the node

    def _from_upstream(self, data: bytes) -> None:
        try:
            self._responses.feed(data)
        except KwireError as error:
            self.close(f"response of {self.node.node_id}: {type(error).__name__}: {error}", level=logging.WARNING)
            return
        except Exception:
            log.exception("connection %s: a response could not be handled", self.peer.connection_id)
            self.close("internal error of the tap")
            return
        self._flush()
        if self.is_open:
            self._held_response.count()

    def _decide_response(self, view: bytes | memoryview, size: int) -> Way:
        if len(view) < min(size, 8):
            return Way.PEEK
        self._send_ready()
        pending = self._next_pending(view, size)
        if pending.is_token:
            if self.track is not None:
                return Way.KEEP
            self._pending.popleft()
            return Way.PASS
        head = pending.head
        is_read = pending.waiter is not None or pending.reading is not None
        hides = self.track is not None and self.track.hides_response(head.api_key)
        if is_read or hides or (head.is_known and changes(head.api_key, head.version)):
            is_large = size > LENGTH_BYTES + MAX_FRAME_BYTES
            if hides or not is_large or head.api_key != FETCH or pending.waiter is not None:
                return Way.KEEP
            self.shared.topics.forget_sessions()  # whose partitions the response would have confirmed
            if pending.reading is not None:
                pending.reading.log(None)
            if head.version >= FIRST_WITH_ADDRESSES:
                self._stream = FetchStream(size)
        self._pending.popleft()
        return Way.PASS

    def _next_pending(self, view: bytes | memoryview, size: int) -> Pending:
        """Return the request that a response belongs to. Raises Malformed if there is none."""
        if not self._pending:
            raise Malformed("response without a request", 0)
        first = self._pending[0]
        correlation_id = read_correlation_id(view) if size >= 8 else None
        while first.is_token and len(self._pending) > 1:  # the last token of a mechanism may have no response
            following = self._pending[1]
            if following.is_token or following.head.correlation_id != correlation_id:
                break
            self._pending.popleft()
            first = self._pending[0]
        if first.is_token:
            return first
        if first.reply is not None or (first.waiter is None and self._is_at_work(first)):
            raise Malformed("response without a request", 0)
        if correlation_id is None:
            raise Malformed(f"response of {size - 4} bytes, its correlation id takes 4", 4)
        if correlation_id != first.head.correlation_id:
            raise Malformed(f"response with correlation id {correlation_id}, expected {first.head.correlation_id}", 4)
        return first

    def _is_at_work(self, pending: Pending) -> bool:
        return self._work is not None and pending is self._pending[-1]

    def _pass_response(self, data: bytes | memoryview) -> None:
        if self._stream is not None:
            data = self._stream.feed(data)
            if self._stream.is_complete:
                self._stream = None
        self._send(data)

    def _send(self, data: bytes | memoryview) -> None:
        self._to_client.append(data)
        if self.track is not None:
            self.track.received(data)

    def _take_response(self, frame: bytes) -> None:
        pending = self._pending[0]
        if pending.waiter is not None:
            waiter, pending.waiter = pending.waiter, None
            if not waiter.done():
                waiter.set_result(frame)
            return
        self._pending.popleft()
        if pending.is_token:
            self._to_client.append(frame)
            self.track.token_received(frame)
            return
        answer = self.answer(frame, pending.head.api_key, pending.head.version)
        if pending.reading is not None:
            pending.reading.answered(answer)
        frame = answer.encode()
        self._to_client.append(frame)
        if self.track is not None:
            self.track.response(frame, pending.head)

    def answer(self, frame: bytes, api_key: int, version: int) -> Answer:
        """Read a response, and replace addresses in it; see Route."""
        return read_answer(frame, api_key, version, self.place, self.shared.topics)

    # To both

    def _send_ready(self) -> None:
        """Send the responses that are ready, in order."""
        while self._pending and self._pending[0].reply is not None and self._slow is None:
            pending = self._pending.popleft()
            if pending.reply:
                self._to_client.append(pending.reply)
                if self.track is not None:
                    self.track.response(pending.reply, pending.head)

    def _flush(self) -> None:
        """Send what has been collected."""
        self._send_ready()
        if self._to_upstream:
            parts, self._to_upstream = self._to_upstream, []
            self.upstream.write(parts)
        if self._to_client:
            parts, self._to_client = self._to_client, []
            self.client.write(parts)
        if len(self._pending) <= MAX_PENDING:
            self.client.read_again("pending")

    # Closing

    def _ended(self, side: str, error: Exception | None) -> None:
        if side == "client" and error is None and self._rest and not self._is_connected:
            self._has_left = True  # as Kafka does, handle what it sent before: some requests have no response
            return
        self.close(f"{side} disconnected" if error is None else f"{side}: {reason_of(error)}", level=logging.DEBUG)

    def close(self, why: str, *, level: int = logging.INFO) -> None:
        """Close both sides; the client gets what was sent to it before. Logs the reason."""
        if not self.is_open:
            return
        self._flush()
        self.is_open = False
        log.log(level, "connection %s closed: %s", self.peer.connection_id or self.number, why)
        for task in (self._work, self._connecting):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        for pending in self._pending:
            if pending.waiter is not None:
                pending.waiter.cancel()
        self._pending.clear()
        self._slow, self._rest = None, b""
        for frames, held in ((self._requests, self._held_request), (self._responses, self._held_response)):
            frames.forget()
            held.release()
        for side in (self.client, self.upstream):
            side.close()
            self.shared.timers.call_later(FLUSH_S * 1000, side.abort)
        if self.track is not None:
            self.track.close()
        self._closed(self)


def reason_of(error: BaseException) -> str:
    """Return the reason of a connection's failure, in a line."""
    if isinstance(error, ssl.SSLError) and error.reason:
        return f"TLS: {error.reason}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: {error.verify_message}"
    if isinstance(error, socket.gaierror):
        return f"unknown host: {error.strerror}"
    if isinstance(error, OSError) and error.errno and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
