"""One client's connection: frames in, answers out, in order, with bounded memory.

Requests are handled one at a time: the next one when the answer before it has been handed to the operating system. So
answers keep the order of their requests, a client that sends and does not read holds up itself alone, and a connection
never costs more than one answer and READ_AHEAD frames. Kafka does the same by muting the channel. A client that leaves
while its answer waits is noticed, as reading goes on up to that bound.

A large frame is received straight into the buffer that its records are then written from. Pieces of files go out by
sendfile; small ones are read instead and go in one call with what stands before and behind them.
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
from typing import TYPE_CHECKING, Any

from kwire.broker.answers import encode_answer, piece_bytes
from kwire.broker.context import ANONYMOUS, Peer
from kwire.broker.dispatch import Call, answer, outcome, read_request
from kwire.broker.node import Node
from kwire.broker.poller import Poller
from kwire.broker.security.tls import principal_of
from kwire.errors import KwireError, LogError, Malformed
from kwire.protocol.frames import request_key

if TYPE_CHECKING:
    from kwire.broker.answers import Piece
    from kwire.broker.security.sessions import SaslSession
    from kwire.log.file_system import OpenFile

__all__ = ["ClientConnection"]

log = logging.getLogger("kwire.broker")

READ_AHEAD = 8
"""Frames that may wait behind the one being handled before reading stops."""
READ_AHEAD_BYTES = 64 * 1024
"""A frame above this size that waits stops the reading at once."""
READS_AT_ONCE = 4
"""How often one connection is read from before others get their turn."""
FIRST_FRAME_BYTES, FRAME_GROWTH = 64 * 1024, 4
"""A frame that does not come at once gets so much room, and so many times as much whenever that is full: what a client
announces and does not send costs no memory."""
JOINED_BYTES = 64 * 1024
"""Pieces of files up to this size are read and sent with what surrounds them."""
LENGTH_BYTES = 4
MOST_OF_SMALL_FRAMES = 4096
"""Frames up to this size are taken from anyone."""


class ClientConnection:
    """One connection. node: what handlers work on; scratch: a buffer shared by all connections; closed: called once."""

    __slots__ = (
        "_closed",
        "_filled",
        "_frame",
        "_frame_bytes",
        "_frames",
        "_greeted",
        "_head",
        "_held",
        "_loop",
        "_max_frame_bytes",
        "_out",
        "_poller",
        "_reading",
        "_scratch",
        "_tls_wants_write",
        "_waiting",
        "_writing",
        "busy",
        "last_active",
        "node",
        "peer",
        "sock",
    )

    def __init__(
        self,
        node: Node,
        loop: asyncio.AbstractEventLoop,
        poller: Poller,
        sock: socket.socket,
        peer: Peer,
        scratch: bytearray,
        closed: Callable[[ClientConnection], None],
    ) -> None:
        self.node, self.sock, self.peer = node, sock, peer
        self._loop, self._poller, self._scratch, self._closed = loop, poller, scratch, closed
        self._max_frame_bytes = node.settings.socket_request_max_bytes
        self._head = b""  # the first bytes of a frame whose length is not whole yet
        self._frame: bytearray | None = None  # a frame that is being received
        self._frame_bytes = self._filled = 0  # how long it will be, how much of it has come
        self._frames: deque[bytes | memoryview] = deque()
        self._out: deque[Piece] = deque()
        self._held: list[OpenFile] = []
        self._greeted = False
        self._waiting: asyncio.Future[Any] | None = None  # what a handler has not answered yet
        self._reading = self._writing = self._tls_wants_write = False
        self.busy = False  # a request is being handled or its answer being sent
        self.last_active = time.monotonic()
        self._watch(read=True, write=False)

    @property
    def is_waiting(self) -> bool:
        """Whether a handler has not answered yet."""
        return self._waiting is not None

    # Receiving

    def _watch(self, *, read: bool, write: bool) -> None:
        if (read, write) != (self._reading, self._writing):
            self._reading, self._writing = read, write
            self._poller.watch(self.sock, self, read=read, write=write)

    def readable(self) -> None:
        """Read, and handle what has come."""
        try:
            for _ in range(READS_AT_ONCE):
                more = self._receive()
                self.process()
                if self.sock.fileno() < 0 or not self._reading:
                    return
                if not more:
                    break
            if isinstance(self.sock, ssl.SSLSocket) and self.sock.pending():  # the kernel knows nothing of these
                self._loop.call_soon(self._readable_again)
        except (ssl.SSLWantReadError, BlockingIOError, InterruptedError):
            pass
        except ssl.SSLWantWriteError:
            self._tls_wants_write = True
            self._watch(read=self._reading, write=True)
        except KwireError as error:
            self.close(str(error))
        except OSError as error:
            self.close(f"{error}", level=logging.DEBUG)

    def _readable_again(self) -> None:
        if self._reading:
            self.readable()

    def _receive(self) -> bool:
        """Read once. False when the buffer given was not filled, so that nothing is left to read now."""
        frame = self._frame
        if frame is not None and len(frame) - self._filled > len(self._scratch):
            room = len(frame) - self._filled
            with memoryview(frame) as whole, whole[self._filled :] as into:
                size = self.sock.recv_into(into)
            self._filled += size
            if size:
                self._took_part(frame)
        else:
            room = len(self._scratch)
            size = self.sock.recv_into(self._scratch)
            self._take(memoryview(self._scratch)[:size])
        if not size:
            left = self._filled + len(self._head)
            self.close(f"the client left inside a frame, after {left} bytes of it" if left else "the client left")
            return False
        self.last_active = time.monotonic()
        return size == room or isinstance(self.sock, ssl.SSLSocket)

    def _take(self, data: memoryview) -> None:
        """Cut what came into frames."""
        pos, end = 0, len(data)
        while pos < end:
            frame = self._frame
            if frame is None:
                if not self._head and end - pos >= LENGTH_BYTES:
                    stop = pos + LENGTH_BYTES + self._frame_size(data[pos : pos + LENGTH_BYTES])
                    if stop <= end:  # all of it is here, as it mostly is
                        self._frames.append(bytes(data[pos:stop]))
                        pos = stop
                        continue
                missing = LENGTH_BYTES - len(self._head)
                head = self._head + bytes(data[pos : pos + missing])
                pos += missing
                if len(head) < LENGTH_BYTES:
                    self._head = head
                    return
                self._head = b""
                self._frame_bytes = LENGTH_BYTES + self._frame_size(head)
                frame = self._frame = bytearray(min(self._frame_bytes, FIRST_FRAME_BYTES))
                frame[:LENGTH_BYTES] = head
                self._filled = LENGTH_BYTES
            part = min(end - pos, len(frame) - self._filled)
            frame[self._filled : self._filled + part] = data[pos : pos + part]
            self._filled += part
            pos += part
            self._took_part(frame)

    def _frame_size(self, head: bytes | memoryview) -> int:
        size = int.from_bytes(head, "big", signed=True)
        most = self._max_frame_bytes
        if size > MOST_OF_SMALL_FRAMES and self._is_stranger:
            most = min(most, self.node.settings.sasl_server_max_receive_size)
        if not 0 <= size <= most:
            raise Malformed(f"frame of {size} bytes, at most {most} are allowed", 0)
        return size

    @property
    def _is_stranger(self) -> bool:
        """Whether the client has still to log in."""
        return self.peer.security_protocol.startswith("SASL") and self.peer.principal == ANONYMOUS

    def _took_part(self, frame: bytearray) -> None:
        if self._filled == self._frame_bytes:
            self._frames.append(memoryview(frame))
            self._frame, self._filled = None, 0
        elif self._filled == len(frame):
            frame.extend(bytes(min(self._frame_bytes, len(frame) * FRAME_GROWTH) - len(frame)))

    # Handling

    def process(self) -> None:
        """Handle what has come, as far as it is its turn."""
        while self._frames and not self.busy and self.sock.fileno() >= 0:
            self._handle(self._frames.popleft())
        if len(self._frames) >= READ_AHEAD or any(len(frame) > READ_AHEAD_BYTES for frame in self._frames):
            self._watch(read=False, write=self._writing)
        elif not self._reading and self.sock.fileno() >= 0:
            self._watch(read=True, write=self._writing)

    def _handle(self, frame: bytes | memoryview) -> None:
        security = self.node.security
        try:
            if security is not None:
                if not self._greeted:
                    self._greet()
                session = security.session(self.peer)
                if session is not None and session.takes_bare_tokens:
                    self._take_bare_token(session, frame)
                    return
                security.check_request(self.peer, request_key(bytes(frame[:8]))[0])
            call = read_request(frame, self.peer)
        except KwireError as error:
            self.close(f"{type(error).__name__}: {error}")
            return
        found = answer(self.node, call)
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
        self.busy = False
        if not done.cancelled():
            body = outcome(call, done)
            if self.sock.fileno() >= 0:
                self._reply(call, body)
                self.process()

    def _reply(self, call: Call, body: Any) -> None:
        if self.node.requests.limit:
            self.node.requests.add(call, body if call.expects_reply else None, self.node.clock.now_ms())
        if not call.expects_reply:
            if self.peer.must_close:  # acks=0 and an error: all that can be told
                self.close("a request that is not answered failed")
            return
        context = call.context
        try:
            self._out += encode_answer(context.api_key, call.response_version, context.correlation_id, body)
        except KwireError:
            log.exception("api %s version %s: no answer", context.api_key, context.api_version)
            self.close("its answer could not be written")
            return
        self._flush()

    # Sending

    def _flush(self) -> None:
        """Send as much as the socket takes; the rest when it takes more."""
        out = self._out
        try:
            while out:
                if isinstance(out[0], bytes | bytearray | memoryview):
                    self._send_bytes()
                else:
                    self._send_file()
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

    def _send_bytes(self) -> None:
        out = self._out
        head = out[0]
        assert isinstance(head, bytes | bytearray | memoryview)
        if len(out) > 1:
            head = self._joined()
        sent = self.sock.send(head, 0 if len(out) == 1 or self._is_tls else socket.MSG_MORE)
        if sent < len(head):
            out[0] = memoryview(head)[sent:]
            raise BlockingIOError
        out.popleft()

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

    def _send_file(self) -> None:
        out = self._out
        part: Any = out[0]
        if self._is_tls:
            out[0] = part.read()
            return
        sent = os.sendfile(self.sock.fileno(), part.file.fileno(), part.position, part.size_bytes)
        if sent == 0:
            raise LogError("the file ended before the records that were to be sent", part.file.url)
        if sent < part.size_bytes:
            out[0] = part._replace(position=part.position + sent, size_bytes=part.size_bytes - sent)
        else:
            out.popleft()

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

    def writable(self) -> None:
        """Go on sending."""
        if self._tls_wants_write:
            self._tls_wants_write = False
            self.readable()
        if self._out:
            self._flush()
        if not self._out and self.sock.fileno() >= 0:
            self._watch(read=self._reading, write=False)
            self.process()

    # The end

    def close(self, why: str, *, level: int = logging.INFO) -> None:
        """End the connection and say why in the log."""
        if self.sock.fileno() < 0:
            return
        log.log(level, "connection %s closed: %s", self.peer.connection_id, why)
        self._watch(read=False, write=False)
        self.sock.close()
        self._frames.clear()
        self._out.clear()
        self._let_files_go()
        self._frame, self._filled, self._head = None, 0, b""
        if self._waiting is not None:
            self._waiting.cancel()
        self._closed(self)
