"""One client's connection: frames in, answers out, in order, with bounded memory.

Requests are handled one at a time: the next one when the answer before it has been handed to the operating system. So
answers keep the order of their requests, a client that sends and does not read holds up itself alone, and a connection
never costs more than one request, one answer and READ_AHEAD_BYTES. Kafka does the same by muting the channel. A client
that leaves while its answer waits is noticed, as reading goes on up to that bound.

Everything a connection does, it does in its turn (kwire.broker.turns): it reads once, sends at most SEND_BYTES, and
handles requests until its budget is used.

Pieces of files go out by sendfile; small ones are read instead and go in one call with what stands before and behind
them.
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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kwire.broker.context import ANONYMOUS, Peer
from kwire.broker.dispatch import Call, completed_response, error_response, read_request, respond
from kwire.broker.node import Node
from kwire.broker.poller import Poller
from kwire.broker.receiver import LENGTH_BYTES, Receiver
from kwire.broker.request_memory import RequestMemory
from kwire.broker.responses import SplicedResponse, encode_response, piece_bytes
from kwire.broker.security.errors import UnexpectedRequest
from kwire.broker.security.tls import principal_of
from kwire.broker.throttling import set_throttle_time
from kwire.broker.turns import TURN_REQUESTS, Turns
from kwire.errors import KwireError, LogError, Malformed
from kwire.protocol.frames import request_key

if TYPE_CHECKING:
    from kwire.broker.clock import TimerHandle
    from kwire.broker.responses import Piece
    from kwire.broker.security.sessions import SaslSession
    from kwire.log.log_reads import FilePart
    from kwire.storage.file_system import OpenFile

__all__ = ["ClientConnection", "Shared"]

log = logging.getLogger("kwire.broker")

SEND_BYTES = 1024 * 1024
"""What is sent in one turn; the rest follows when others had theirs."""
JOINED_BYTES = 64 * 1024
"""Pieces of files up to this size are read and sent with what surrounds them."""
MOST_OF_SMALL_FRAMES = 4096
"""Frames up to this size are taken from anyone."""
EXEMPT_APIS = frozenset({17, 27, 36})
"""SaslHandshake, WriteTxnMarkers, SaslAuthenticate: the time that they take does not count for request_percentage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all connections of a broker have in common. scratch: where they receive, one after another."""

    node: Node
    turns: Turns
    poller: Poller
    memory: RequestMemory[ClientConnection]
    scratch: bytearray


class ClientConnection:
    """One connection. closed: called once."""

    __slots__ = (
        "_answered_call",
        "_can_read",
        "_can_write",
        "_closed",
        "_greeted",
        "_held",
        "_max_frame_bytes",
        "_memory",
        "_muted",
        "_out",
        "_poller",
        "_reading",
        "_receiver",
        "_tls_wants_write",
        "_turns",
        "_waiting",
        "_writing",
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
        self._max_frame_bytes = shared.node.settings.socket_request_max_bytes
        self._memory = shared.memory
        self._receiver = Receiver(self, shared.scratch, shared.memory, self._check_frame_size)
        self._out: deque[Piece] = deque()
        self._held: list[OpenFile] = []
        self._greeted = False
        self._muted: TimerHandle | None = None  # until when nothing is read from a client that is throttled
        self._waiting: asyncio.Future[Any] | None = None  # what a handler has not answered yet
        self._answered_call: tuple[Call, asyncio.Future[Any]] | None = None  # what it has, to be sent in the next turn
        self._reading = self._writing = self._tls_wants_write = False  # what the socket is watched for
        self._can_read = self._can_write = False  # what it is ready for
        self.share, self.is_queued = shared.turns.new_share(), False
        self.busy = False  # a request is being handled or its answer being sent
        self.last_active = time.monotonic()
        self._watch(read=True, write=False)

    @property
    def is_waiting(self) -> bool:
        """Whether the client waits for the broker: for a response, or until it is not throttled any more."""
        return self._waiting is not None or self._muted is not None

    @property
    def is_receiving(self) -> bool:
        """Whether it is in the middle of a large request that has room for more bytes."""
        return not self.busy and self._memory.holds(self)

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.sock.fileno() >= 0

    # Turns

    def _watch(self, *, read: bool, write: bool) -> None:
        if (read, write) != (self._reading, self._writing):
            self._reading, self._writing = read, write
            self._poller.watch(self.sock, self, read=read, write=write)

    def ready(self, *, read: bool, write: bool) -> None:
        """See Pollable."""
        self._can_read |= read
        self._can_write |= write

    def turn(self) -> bool:
        """Send, read, and handle what has come; see TakesTurns."""
        has_requests = False
        try:
            if self._answered_call is not None:
                self._finish(*self._answered_call)
            if self._can_write:
                self._can_write = False
                self._writable()
            if self._can_read:
                self._read_once()
            has_requests = self._handle_requests()
        except KwireError as error:
            self.close(str(error))
        if not self.is_open:
            return False
        self._receiver.keep()
        wants_more = self._receiver.wants_more and self._muted is None
        self._watch(read=wants_more, write=self._writing)
        return has_requests or (wants_more and self._can_read)

    # Receiving

    def _read_once(self) -> None:
        """Read, unless enough is waiting to be handled."""
        if not self.is_open or not self._receiver.wants_more or self._muted is not None:
            return
        self._can_read = False
        try:
            size, is_full = self._receiver.receive(self.sock)
        except (ssl.SSLWantReadError, BlockingIOError, InterruptedError):
            return
        except ssl.SSLWantWriteError:
            self._tls_wants_write = True
            self._watch(read=self._reading, write=True)
            return
        except OSError as error:
            self.close(f"{error}", level=logging.DEBUG)
            return
        if not size:
            left = self._receiver.partial_bytes
            self.close(f"the client left inside a frame, after {left} bytes of it" if left else "the client left")
            return
        self.last_active = time.monotonic()
        self._can_read = is_full or self._is_tls  # TLS holds bytes that the poller knows nothing of

    def _check_frame_size(self, size: int) -> None:
        most = self._max_frame_bytes
        if size > MOST_OF_SMALL_FRAMES and self._is_stranger:
            most = min(most, self.node.settings.sasl_server_max_receive_size)
        if not 0 <= size <= most:
            raise Malformed(f"frame of {size} bytes, at most {most} are allowed", 0)

    @property
    def _is_stranger(self) -> bool:
        """Whether the client has still to log in."""
        return self.peer.security_protocol.startswith("SASL") and self.peer.principal == ANONYMOUS

    # Handling

    def _handle_requests(self) -> bool:
        """Handle what has come, as far as the turn goes; return whether there may be more of it."""
        for _ in range(TURN_REQUESTS):
            if self.busy or self._muted is not None or not self.is_open:
                return False
            frame = self._receiver.next_frame()
            if frame is None:
                return False
            self._handle(frame)
            self._handled()
            if not self._turns.has_time:
                break
        return not self.busy and self._muted is None

    def _handled(self) -> None:
        """Give the request's memory back once nothing is left to do for it."""
        if not self.busy and self.is_open:
            self._receiver.release()

    def _handle(self, frame: bytes | memoryview) -> None:
        security = self.node.security
        unexpected = None
        try:
            if security is not None:
                if not self._greeted:
                    self._greet()
                session = security.session(self.peer)
                if session is not None and session.takes_bare_tokens:
                    self._take_bare_token(session, frame)
                    return
                try:
                    security.check_request(self.peer, request_key(bytes(frame[:8]))[0])
                except UnexpectedRequest as error:
                    unexpected = error
            call = read_request(frame, self.peer)
        except KwireError as error:
            self.close(f"{type(error).__name__}: {error}")
            return
        if unexpected is not None:
            self.peer.must_close = True
            self._reply(call, error_response(call, unexpected))
            return
        started_ns = time.perf_counter_ns()
        found = respond(self.node, call)
        call.context.thread_ns += time.perf_counter_ns() - started_ns
        if isinstance(found, asyncio.Future):
            self.busy = True
            self._waiting = found
            found.add_done_callback(functools.partial(self._answered, call))
        else:
            self._reply(call, found)

    def _greet(self) -> None:
        """With the first request a TLS handshake is over: whose certificate it was is known."""
        self._greeted = True
        if isinstance(self.sock, ssl.SSLSocket) and not self.peer.security_protocol.startswith("SASL"):
            self.peer.principal = principal_of(self.sock.getpeercert())

    def _take_bare_token(self, session: SaslSession, frame: bytes | memoryview) -> None:
        """After SaslHandshake version 0: a frame is a token, and so is its answer; a refusal has none."""
        token = session.take(bytes(frame[LENGTH_BYTES:])).token
        self._out.append(len(token).to_bytes(LENGTH_BYTES, "big") + token)
        self._flush()

    def _answered(self, call: Call, done: asyncio.Future[Any]) -> None:
        self._waiting = None
        if self.is_open:
            self._answered_call = call, done
            self._turns.add(self)

    def _finish(self, call: Call, done: asyncio.Future[Any]) -> None:
        """Send what a handler has answered later."""
        self._answered_call = None
        self.busy = False
        if not done.cancelled():
            self._reply(call, completed_response(call, done))
        self._handled()

    def _throttle(self, call: Call, body: Any) -> int:
        """Count a request for the client's quotas and tell the client to wait; return for how many milliseconds."""
        context, throttling = call.context, self.node.throttling
        throttle_ms = context.throttle_ms
        is_exempt = not call.expects_reply or context.api_key in EXEMPT_APIS or self._is_stranger
        if not context.is_time_recorded and not is_exempt:
            throttle_ms = max(throttle_ms, throttling.record_time(context))
        if throttle_ms and call.expects_reply:
            message = body.body if isinstance(body, SplicedResponse) else body
            set_throttle_time(message, call.response_version, throttle_ms)
        return throttle_ms

    def _mute(self, throttle_ms: int) -> None:
        """Handle nothing more of a client that is throttled, and read nothing, for a while."""
        if self.is_open:
            self._muted = self.node.timers.call_later(throttle_ms, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        if self.is_open:
            self._turns.add(self)

    def _reply(self, call: Call, body: Any) -> None:
        throttle_ms = self._throttle(call, body)
        self._send_reply(call, body)
        if throttle_ms:
            self._mute(throttle_ms)

    def _send_reply(self, call: Call, body: Any) -> None:
        if self.node.requests.limit:
            self.node.requests.add(call, body if call.expects_reply else None, self.node.clock.now_ms())
        if not call.expects_reply:
            if self.peer.must_close:  # acks=0 and an error: all that can be told
                self.close("a request that is not answered failed")
            return
        if self.peer.must_close_silently:
            self.close("it was refused")
            return
        context = call.context
        try:
            self._out += encode_response(context.api_key, call.response_version, context.correlation_id, body)
        except KwireError:
            log.exception("api %s version %s: no answer", context.api_key, context.api_version)
            self.close("its answer could not be written")
            return
        self._flush()

    # Sending

    def _flush(self) -> None:
        """Send as much as the socket takes, up to SEND_BYTES; the rest when it takes more."""
        out = self._out
        left = SEND_BYTES
        try:
            while out:
                if left <= 0:
                    raise BlockingIOError
                if isinstance(out[0], bytes | bytearray | memoryview):
                    left -= self._send_bytes(left)
                else:
                    left -= self._send_file(left)
        except (BlockingIOError, InterruptedError, ssl.SSLWantWriteError):
            self.busy = True
            self._hold_files()
            self._watch(read=self._reading, write=True)
            return
        except ssl.SSLWantReadError:  # a handshake, before anything was sent
            self.busy = True
            self._hold_files()
            return
        except (OSError, KwireError) as error:
            self.close(f"{error}", level=logging.DEBUG)
            return
        self._let_files_go()
        self.last_active = time.monotonic()
        self.busy = False
        if self.peer.must_close:
            self.close("it was refused")

    def _send_bytes(self, most: int) -> int:
        """Send the bytes at the front and what goes with them, up to `most`; return how many were sent."""
        out = self._out
        head = out[0]
        assert isinstance(head, bytes | bytearray | memoryview)
        if len(out) > 1:
            head = self._joined()
        size = min(len(head), most)
        flags = 0 if len(out) == 1 or self._is_tls else socket.MSG_MORE
        sent = self.sock.send(head if size == len(head) else memoryview(head)[:size], flags)
        if sent < len(head):
            out[0] = memoryview(head)[sent:]
        else:
            out.popleft()
        if sent < size:
            raise BlockingIOError
        return sent

    def _joined(self) -> bytes | bytearray | memoryview:
        """The pieces at the front in one, as far as they are small."""
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

    def _send_file(self, most: int) -> int:
        """Send the piece of a file at the front, up to `most` bytes; return how many were sent."""
        part = self._out.popleft()
        assert not isinstance(part, bytes | bytearray | memoryview)
        size = min(part.size_bytes, most)
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
            raise LogError("the file ended before the records that were to be sent", part.file.url)
        self._put_back(part, sent)
        return sent

    def _put_back(self, part: FilePart, done_bytes: int) -> None:
        """Keep what is left of a piece of a file."""
        if done_bytes < part.size_bytes:
            left = part._replace(position=part.position + done_bytes, size_bytes=part.size_bytes - done_bytes)
            self._out.appendleft(left)

    def _hold_files(self) -> None:
        """Keep the files of what waits open, whatever happens to their segments meanwhile."""
        if not self._held:
            for piece in self._out:
                if not isinstance(piece, bytes | bytearray | memoryview):
                    piece.file.hold()
                    self._held.append(piece.file)

    def _let_files_go(self) -> None:
        while self._held:
            self._held.pop().release()

    def _writable(self) -> None:
        """Go on sending."""
        if self._tls_wants_write:
            self._tls_wants_write = False
            self._can_read = True
        if self._out:
            self._flush()
            self._handled()
        if not self._out and self.is_open:
            self._watch(read=self._reading, write=False)

    # The end

    def close(self, why: str, *, level: int = logging.INFO) -> None:
        """End the connection and say why in the log."""
        if not self.is_open:
            return
        log.log(level, "connection %s closed: %s", self.peer.connection_id, why)
        self._watch(read=False, write=False)
        self.sock.close()
        self._receiver.clear()
        self._out.clear()
        self._answered_call = None
        if self._muted is not None:
            self._muted.cancel()
        self._let_files_go()
        if self._waiting is not None:
            self._waiting.cancel()
        self._closed(self)
