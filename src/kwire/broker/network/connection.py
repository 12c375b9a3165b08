"""One client's connection: requests in, responses out, in order, with bounded memory.

Requests are handled one at a time: the next one when the operating system has taken the response to the one before. So
responses keep the order of their requests, a client that sends and does not read only delays itself, and a connection
never costs more than one request, one response and READ_AHEAD_BYTES. Kafka does the same by muting the channel. Reading
continues up to that bound while a response is pending, so that a client that disconnects is noticed.

All work of a connection happens in its turns (kwire.broker.network.turns): in each it reads once, sends at most
SEND_BYTES, and handles requests until its budget is used up.

Records in files are sent with sendfile. Small pieces are read instead and sent in one call with the bytes around them.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from kwire.broker.apis import served
from kwire.broker.context import ANONYMOUS, Peer
from kwire.broker.dispatch import Call, completed_response, error_response, make_call
from kwire.broker.faults.effects import HALF
from kwire.broker.injection import respond
from kwire.broker.network.memory import RequestMemory
from kwire.broker.network.pacing import SlowBytes
from kwire.broker.network.poller import Poller
from kwire.broker.network.throttling import set_throttle_time
from kwire.broker.network.turns import TURN_REQUESTS, Turns
from kwire.broker.node import Node
from kwire.broker.responses import Response, SplicedResponse, piece_bytes
from kwire.broker.security.errors import AuthenticationFailed, UnexpectedRequest
from kwire.broker.security.tls import principal_of
from kwire.errors import KwireError, LogError
from kwire.protocol.frames import LENGTH_BYTES, NEED_DATA, FrameBuffer, NeedData
from kwire.protocol.requests import read_request, request_key, write_response

if TYPE_CHECKING:
    from kwire.broker.clock import TimerHandle
    from kwire.broker.faults.effects import Delivery
    from kwire.broker.responses import Piece
    from kwire.broker.security.sessions import SaslSession
    from kwire.log.writing.log_reads import FilePart
    from kwire.storage.file_system import OpenFile

__all__ = ["ClientConnection", "Shared"]

log = logging.getLogger("kwire.broker")

PRODUCE = 0
READ_AHEAD_BYTES = 64 * 1024
"""Reading stops when this many bytes wait to be handled."""
SEND_BYTES = 1024 * 1024
"""Maximum sent in one turn."""
JOINED_BYTES = 64 * 1024
"""Pieces of files up to this size are read and sent with the bytes around them."""
SMALL_FRAME_BYTES = 4096
"""Frames up to this size are accepted before authentication, regardless of sasl.server.max.receive.size."""
EXEMPT_APIS = frozenset({17, 27, 36})
"""SaslHandshake, WriteTxnMarkers, SaslAuthenticate: their time does not count towards the request_percentage quota."""


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """State shared by all connections of a broker. scratch: the buffer that they receive into in turn."""

    node: Node
    turns: Turns
    poller: Poller
    memory: RequestMemory[ClientConnection]
    scratch: bytearray


class ClientConnection:
    """A client's connection. closed: called once, with this connection."""

    __slots__ = (
        "_can_read",
        "_can_write",
        "_closed",
        "_finished_call",
        "_frames",
        "_held_files",
        "_is_handshake_complete",
        "_max_frame_bytes",
        "_memory",
        "_muted",
        "_out",
        "_pending",
        "_poller",
        "_rest",
        "_tls_wants_write",
        "_turns",
        "_watches_read",
        "_watches_write",
        "busy",
        "is_queued",
        "last_active",
        "node",
        "peer",
        "share",
        "sock",
    )

    def __init__(
        self, shared: Shared, sock: socket.socket, peer: Peer, closed: Callable[[ClientConnection], None]
    ) -> None:
        self.node, self.sock, self.peer = shared.node, sock, peer
        self._turns, self._poller, self._closed = shared.turns, shared.poller, closed
        self._memory = shared.memory
        settings = shared.node.settings
        limit = self._max_frame_bytes = settings.socket_request_max_bytes
        if not self.is_authenticated:
            limit = min(limit, max(SMALL_FRAME_BYTES, settings.sasl_server_max_receive_size))
        self._frames = FrameBuffer(limit, scratch=shared.scratch, reserve=functools.partial(shared.memory.take, self))
        self._out: deque[Piece] = deque()
        self._held_files: list[OpenFile] = []
        self._rest: SlowBytes | None = None
        self._is_handshake_complete = False
        self._muted: TimerHandle | None = None  # ends the time in which the client is not read from
        self._pending: asyncio.Future[Response | None] | None = None  # a response that is not ready
        self._finished_call: tuple[Call, asyncio.Future[Response | None]] | None = (
            None  # a response to be sent in the next turn
        )
        self._watches_read = self._watches_write = self._tls_wants_write = False
        self._can_read = self._can_write = False
        self.share, self.is_queued = shared.turns.new_share(), False
        self.busy = False  # a request is being handled or its response being sent
        self.last_active = time.monotonic()
        self._watch(read=True, write=False)

    @property
    def is_waiting(self) -> bool:
        """Whether the client waits for the broker: for a response, or for the end of its throttling."""
        return self._pending is not None or self._muted is not None

    @property
    def is_receiving(self) -> bool:
        """Whether it is in the middle of a large request and has memory for more of it."""
        return not self.busy and self._memory.holds(self)

    @property
    def is_open(self) -> bool:
        """Whether the connection is open."""
        return self.sock.fileno() >= 0

    @property
    def is_authenticated(self) -> bool:
        """Whether the client has authenticated, or does not have to."""
        return not (self.peer.security_protocol.startswith("SASL") and self.peer.principal == ANONYMOUS)

    # Turns

    def _watch(self, *, read: bool, write: bool) -> None:
        if (read, write) != (self._watches_read, self._watches_write):
            self._watches_read, self._watches_write = read, write
            self._poller.watch(self.sock, self, read=read, write=write)

    def ready(self, *, read: bool, write: bool) -> None:
        """Remember what the socket is ready for; see Pollable."""
        self._can_read |= read
        self._can_write |= write

    def turn(self) -> bool:
        """Send, read, and handle requests until the turn is over; see TakesTurns."""
        may_have_more = True
        try:
            if self._finished_call is not None:
                self._finish(*self._finished_call)
            if self._can_write:
                self._can_write = False
                self._continue_sending()
            if self._can_read:
                self._read_once()
            for _ in range(TURN_REQUESTS):
                frame = NEED_DATA if self._is_blocked else self._frames.next_frame()
                if isinstance(frame, NeedData):
                    may_have_more = False
                    break
                self._handle(frame)
                self._complete_request()
                if not self._turns.has_time:
                    break
        except KwireError as error:
            self.close(str(error))
        if not self.is_open:
            return False
        self._frames.release_scratch()
        reads_more = self._has_room and self._muted is None
        self._watch(read=reads_more, write=self._watches_write)
        return (may_have_more and not self._is_blocked) or (reads_more and self._can_read)

    # Receiving

    @property
    def _has_room(self) -> bool:
        """Whether more bytes may be received."""
        return not self._frames.is_paused and self._frames.pending_bytes < READ_AHEAD_BYTES

    def _read_once(self) -> None:
        """Read once, unless READ_AHEAD_BYTES wait to be handled."""
        if not self.is_open or not self._has_room or self._muted is not None:
            return
        self._can_read = False
        try:
            size, is_full = self._frames.receive(self.sock.recv_into)
        except (ssl.SSLWantReadError, BlockingIOError, InterruptedError):
            return
        except ssl.SSLWantWriteError:
            self._tls_wants_write = True
            self._watch(read=self._watches_read, write=True)
            return
        except OSError as error:
            self.close(f"{error}", level=logging.DEBUG)
            return
        if not size:
            received = len(self._frames)
            self.close(
                f"client disconnected inside a frame, after {received} bytes of it"
                if received
                else "client disconnected"
            )
            return
        self.last_active = time.monotonic()
        self._can_read = is_full or self._is_tls  # TLS may hold decrypted bytes that the poller does not see

    # Handling

    @property
    def _is_blocked(self) -> bool:
        """Whether no request may be handled now."""
        return self.busy or self._muted is not None or not self.is_open

    def _complete_request(self) -> None:
        """Release the request's memory, unless its response is still pending."""
        if not self.busy and self.is_open:
            self._memory.release(self)
            if self._frames.max_frame_bytes != self._max_frame_bytes and self.is_authenticated:
                self._frames.max_frame_bytes = self._max_frame_bytes

    def _handle(self, frame: bytes | memoryview) -> None:
        unexpected = None
        try:
            if not self._is_handshake_complete:
                self._complete_handshake()
            session = self.node.security.session(self.peer)
            if session is not None and session.takes_bare_tokens:
                self._take_bare_token(session, frame)
                return
            api_key, _ = request_key(frame)
            if session is not None:
                try:
                    session.check_request(api_key)
                except UnexpectedRequest as error:
                    unexpected = error
            # Produced records are not copied: the frame is kept until the response is ready.
            views = api_key == PRODUCE
            versions = served(self.node.settings.unstable_api_versions_enable)
            request = read_request(frame, versions, views=views, lenient=True, allow_trailing=True)
            call = make_call(request, self.peer)
        except KwireError as error:
            self.close(f"{type(error).__name__}: {error}")
            return
        if unexpected is not None:
            self.peer.must_close = True
            self._reply(call, error_response(call, unexpected))
            return
        started_ns = time.perf_counter_ns()
        response = respond(self.node, call)
        call.context.thread_ns += time.perf_counter_ns() - started_ns
        if isinstance(response, asyncio.Future):
            self.busy = True
            self._pending = response
            response.add_done_callback(functools.partial(self._response_ready, call))
        else:
            self._reply(call, response)

    def _complete_handshake(self) -> None:
        """Take the principal from the client's certificate: with the first request the TLS handshake is over."""
        self._is_handshake_complete = True
        if isinstance(self.sock, ssl.SSLSocket) and not self.peer.security_protocol.startswith("SASL"):
            self.peer.principal = principal_of(self.sock.getpeercert())

    def _take_bare_token(self, session: SaslSession, frame: bytes | memoryview) -> None:
        """Handle a frame after SaslHandshake version 0: it is a SASL token, and so is the response to it."""
        delay_ms = self.node.settings.connection_failed_authentication_delay_ms
        try:
            step = session.take(bytes(frame[LENGTH_BYTES:]))
        except AuthenticationFailed as error:
            self._mute(delay_ms, functools.partial(self.close, f"{type(error).__name__}: {error}"))
            return
        if step.is_refusal:
            self._mute(delay_ms, functools.partial(self._send_token, step.token))
        else:
            self._send_token(step.token)

    def _send_token(self, token: bytes) -> None:
        self._out.append(len(token).to_bytes(LENGTH_BYTES, "big") + token)
        self._flush()

    def _response_ready(self, call: Call, done: asyncio.Future[Response | None]) -> None:
        self._pending = None
        if self.is_open:
            self._finished_call = call, done
            self._turns.add(self)

    def _finish(self, call: Call, done: asyncio.Future[Response | None]) -> None:
        """Send a response that was pending."""
        self._finished_call = None
        self.busy = False
        if not done.cancelled():
            self._reply(call, completed_response(call, done))
        self._complete_request()

    def _throttle(self, call: Call, body: Response | None) -> int:
        """Count a request towards the client's quotas; set and return the throttle time of its response in ms."""
        context, throttling = call.context, self.node.throttling
        throttle_ms = context.throttle_ms
        is_exempt = not call.expects_reply or context.api_key in EXEMPT_APIS or not self.is_authenticated
        if not context.is_time_recorded and not is_exempt:
            throttle_ms = max(throttle_ms, throttling.record_time(context))
        if throttle_ms and call.expects_reply and body is not None:
            message = body.body if isinstance(body, SplicedResponse) else body
            set_throttle_time(message, call.response_version, throttle_ms)
        return throttle_ms

    def _mute(self, delay_ms: int, then: Callable[[], object] | None = None) -> None:
        """Read and handle nothing from a client for a while, after which `then` is called."""
        if self.is_open:
            self._muted = self.node.timers.call_later(delay_ms, functools.partial(self._unmute, then))

    def _unmute(self, then: Callable[[], object] | None) -> None:
        self._muted = None
        if then is not None:
            then()
        if self.is_open:
            self._turns.add(self)

    def _reply(self, call: Call, body: Response | None) -> None:
        throttle_ms = self._throttle(call, body)
        self._send_reply(call, body)
        if throttle_ms:
            self._mute(throttle_ms)

    def _send_reply(self, call: Call, body: Response | None) -> None:
        if self.node.requests.limit:
            response = body if call.expects_reply else None
            self.node.requests.add(call.context, call.request, response, self.node.clock.now_ms(), self.node.node_id)
        if not call.expects_reply or body is None:
            if self.peer.must_close:  # an error with acks=0: closing is the only way to report it
                self.close("a request without a response failed")
            return
        if self.peer.must_close_silently:
            self.close("its request was refused")
            return
        context = call.context
        try:
            if isinstance(body, SplicedResponse):
                self._out += body.encode(call.response_version, context.correlation_id)
            else:
                frame = write_response(
                    body,
                    api_key=context.api_key,
                    version=call.response_version,
                    correlation_id=context.correlation_id,
                )
                self._out.append(frame)
        except KwireError:
            log.exception("api %s version %s: cannot encode the response", context.api_key, context.api_version)
            self.close("its response could not be encoded")
            return
        if call.delivery is not None:
            self._deliver(call.delivery)
        self._flush()

    # Sending

    def _deliver(self, delivery: Delivery) -> None:
        """Send only a part of the response, or send it slowly, as a fault demands."""
        pieces = (each if isinstance(each, bytes | bytearray | memoryview) else each.read() for each in self._out)
        data = memoryview(b"".join(pieces))
        self._out.clear()
        if delivery.sent_bytes is not None:
            half = len(data) // 2
            data = data[: half if delivery.sent_bytes == HALF else min(delivery.sent_bytes, len(data) - 1)]
            self.peer.must_close = True
        if delivery.bytes_per_second:
            self._rest = SlowBytes(data, delivery.bytes_per_second)
            self._send_slowly()
        else:
            self._out.append(data)

    def _send_slowly(self) -> None:
        """Send the next piece of a response that is sent slowly."""
        rest = self._rest
        if rest is None or not self.is_open:
            return
        self._out.append(rest.next_piece())
        if rest.data:
            self.node.timers.call_later(rest.pause_ms, self._send_slowly)
        else:
            self._rest = None
        self._flush()
        if not self.busy:
            self._complete_request()
            self._turns.add(self)

    def _flush(self) -> None:
        """Send as much as the socket takes, up to SEND_BYTES; continue when it is writable."""
        out = self._out
        remaining = SEND_BYTES
        try:
            while out:
                if remaining <= 0:
                    raise BlockingIOError
                if isinstance(out[0], bytes | bytearray | memoryview):
                    remaining -= self._send_bytes(remaining)
                else:
                    remaining -= self._send_file(remaining)
        except (BlockingIOError, InterruptedError, ssl.SSLWantWriteError):
            self.busy = True
            self._hold_files()
            self._watch(read=self._watches_read, write=True)
            return
        except ssl.SSLWantReadError:  # a handshake, before anything was sent
            self.busy = True
            self._hold_files()
            return
        except (OSError, KwireError) as error:
            self.close(f"{error}", level=logging.DEBUG)
            return
        self._release_files()
        self.last_active = time.monotonic()
        self.busy = self._rest is not None
        if self.peer.must_close and not self.busy:
            self.close("its request was refused")

    def _send_bytes(self, limit: int) -> int:
        """Send the bytes at the front and small pieces after them, up to limit; return how many were sent."""
        out = self._out
        head = out[0]
        assert isinstance(head, bytes | bytearray | memoryview)
        if len(out) > 1:
            head = self._join_small()
        size = min(len(head), limit)
        flags = 0 if len(out) == 1 or self._is_tls else socket.MSG_MORE
        sent = self.sock.send(head if size == len(head) else memoryview(head)[:size], flags)
        if sent < len(head):
            out[0] = memoryview(head)[sent:]
        else:
            out.popleft()
        if sent < size:
            raise BlockingIOError
        return sent

    def _join_small(self) -> bytes | bytearray | memoryview:
        """Join the small pieces at the front into one."""
        out = self._out
        parts: list[bytes | bytearray | memoryview] = []
        size = 0
        while out:
            piece = out[0]
            if parts and size + piece_bytes(piece) > JOINED_BYTES:
                break
            data = piece if isinstance(piece, bytes | bytearray | memoryview) else piece.read()
            parts.append(data)
            size += len(data)
            out.popleft()
        joined = parts[0] if len(parts) == 1 else b"".join(parts)
        out.appendleft(joined)
        return joined

    @property
    def _is_tls(self) -> bool:
        return isinstance(self.sock, ssl.SSLSocket)

    def _send_file(self, limit: int) -> int:
        """Send the piece of a file at the front, up to limit bytes; return how many were sent."""
        part = self._out.popleft()
        assert not isinstance(part, bytes | bytearray | memoryview)
        size = min(part.size_bytes, limit)
        if self._is_tls:
            self._put_back(part, size)
            self._out.appendleft(part._replace(size_bytes=size).read())  # to be encrypted and sent next
            return 0
        try:
            sent = os.sendfile(self.sock.fileno(), part.file.fileno(), part.position, size)
        except BlockingIOError:
            self._out.appendleft(part)
            raise
        if sent == 0:
            raise LogError("file ends before the records to be sent", part.file.url)
        self._put_back(part, sent)
        return sent

    def _put_back(self, part: FilePart, sent_bytes: int) -> None:
        """Queue the rest of a piece of a file again."""
        if sent_bytes < part.size_bytes:
            rest = part._replace(position=part.position + sent_bytes, size_bytes=part.size_bytes - sent_bytes)
            self._out.appendleft(rest)

    def _hold_files(self) -> None:
        """Keep the files of pending pieces open, even if their segments are deleted."""
        if not self._held_files:
            for piece in self._out:
                if not isinstance(piece, bytes | bytearray | memoryview):
                    piece.file.hold()
                    self._held_files.append(piece.file)

    def _release_files(self) -> None:
        while self._held_files:
            self._held_files.pop().release()

    def _continue_sending(self) -> None:
        """Send more, now that the socket is writable."""
        if self._tls_wants_write:
            self._tls_wants_write = False
            self._can_read = True
        if self._out:
            self._flush()
            self._complete_request()
        if not self._out and self.is_open:
            self._watch(read=self._watches_read, write=False)

    # Closing

    def close(self, why: str, *, level: int = logging.INFO) -> None:
        """Close the connection and log the reason."""
        if not self.is_open:
            return
        log.log(level, "connection %s closed: %s", self.peer.connection_id, why)
        self._watch(read=False, write=False)
        self.sock.close()
        self._frames.clear()
        self._memory.release(self)
        self._out.clear()
        self._rest = self._finished_call = None
        if self._muted is not None:
            self._muted.cancel()
        self._release_files()
        if self._pending is not None:
            self._pending.cancel()
        for callback in self.peer.on_close.values():
            callback()
        self._closed(self)
