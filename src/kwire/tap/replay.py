"""Replay of a recording: clients get the recorded responses, without a cluster."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from typing import TYPE_CHECKING, Any

from kwire.errors import KwireError, OptionError
from kwire.protocol.frames import FrameBuffer, NeedData
from kwire.protocol.requests import read_request, response_codec, write_response
from kwire.tap.addresses import replace_addresses
from kwire.tap.listeners import Listener, Listeners, shown
from kwire.tap.matching import FETCH, OWN_IDS, Mismatch, Recording
from kwire.tap.responses import KNOWN, api_name
from kwire.tap.runner import OnThread
from kwire.tap.settings import parse_listen

if TYPE_CHECKING:
    from pathlib import Path

    from kwire.messages.base import Message
    from kwire.protocol.requests import Request

__all__ = ["Replay"]

log = logging.getLogger("kwire.tap")

KEPT_MISMATCHES = 1000
POLL_S = 0.01
MAX_WAIT_S = 5.0


class Replay(OnThread):
    """A server that responds as a recording does, used as a context manager.

    path: a capture, such as Tap(record=...) writes. listen: PORT or HOST:PORT.
    mismatches: requests that differ from the recording, the first 1,000; mismatch_count: all. answered: how many had a
    response. Raises OptionError for a file without requests, or an address that is not available.
    """

    NAME = "replay"

    def __init__(self, path: str | Path, listen: str | int = 0) -> None:
        super().__init__()
        self._address = parse_listen(str(listen))
        self.recording = Recording(str(path))
        self.mismatches: list[Mismatch] = []
        self.mismatch_count = self.answered = 0
        self._listeners: Listeners | None = None
        self._connections: set[ReplayConnection] = set()
        self._opening: set[asyncio.Task[Any]] = set()

    @property
    def bootstrap_servers(self) -> str:
        """host:port of the first listener."""
        listeners = self._listeners
        if listeners is None:
            raise OptionError("the replay is not running")
        return shown(listeners.first.host, listeners.first.port)

    async def _serve(self, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
        listeners = self._listeners = Listeners(loop, self._address, (), self._accepted, None)
        try:
            self._ready.set()
            await stop.wait()
        finally:
            self._listeners = None
            listeners.close()
            for connection in list(self._connections):
                connection.close()

    def _accepted(self, sock: socket.socket, listener: Listener) -> None:
        listeners = self._listeners
        if listeners is None:
            sock.close()
            return
        connection = ReplayConnection(self, listeners)
        self._connections.add(connection)
        opening = asyncio.ensure_future(asyncio.get_running_loop().connect_accepted_socket(lambda: connection, sock))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)

    def forget(self, connection: ReplayConnection) -> None:
        """Forget a connection that has ended."""
        self._connections.discard(connection)

    def report(self, request: Request, what: str) -> None:
        """Keep a mismatch."""
        found = Mismatch(api_name(request.api_key), request.version, request.client_id, what)
        log.warning("%s", found)
        self.mismatch_count += 1
        if len(self.mismatches) < KEPT_MISMATCHES:
            self.mismatches.append(found)


class ReplayConnection(asyncio.Protocol):
    """A client's connection. Requests are handled one after the other."""

    def __init__(self, replay: Replay, listeners: Listeners) -> None:
        self._replay, self._listeners = replay, listeners
        self._frames = FrameBuffer()
        self._waiting: deque[bytes | memoryview] = deque()
        self._transport: asyncio.Transport | None = None
        self._work: asyncio.Task[None] | None = None
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._host = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; see asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._host = transport.get_extra_info("sockname")[0]

    def pause_writing(self) -> None:
        """Respond to nothing more for now; see asyncio.Protocol."""
        self._can_write.clear()

    def resume_writing(self) -> None:
        """Continue; see asyncio.Protocol."""
        self._can_write.set()

    def connection_lost(self, error: Exception | None) -> None:
        """End the work; see asyncio.Protocol."""
        if self._work is not None:
            self._work.cancel()
        self._replay.forget(self)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Handle the requests in it; see asyncio.Protocol."""
        assert self._transport is not None
        self._frames.append(data)
        try:
            while not isinstance(frame := self._frames.next_frame(), NeedData):
                self._waiting.append(frame)
        except KwireError as error:
            log.info("a client was disconnected: %s", error)
            self.close()
            return
        if self._waiting and self._work is None:
            self._transport.pause_reading()
            self._work = asyncio.ensure_future(self._handle_all())

    async def _handle_all(self) -> None:
        assert self._transport is not None
        try:
            while self._waiting:
                await self._can_write.wait()
                if not await self._handle(self._waiting.popleft()):
                    self.close()
                    return
        except Exception as error:
            if not isinstance(error, KwireError):
                log.exception("a request could not be replayed")
            else:
                log.warning("a client was disconnected: %s", error)
            self.close()
            return
        finally:
            self._work = None
        if not self._transport.is_closing():
            self._transport.resume_reading()

    async def _handle(self, frame: bytes | memoryview) -> bool:
        """Respond to a request; returns False to close the connection."""
        replay = self._replay
        request = read_request(bytes(frame), KNOWN, lenient=True, allow_trailing=True)
        key, version = request.api_key, request.version
        if request.body is None:
            replay.report(request, f"version {version} is not known")
            return False
        if key == FETCH:
            await self._fetch(request)
            return True
        match = replay.recording.match(key, version, request.body)
        if match.mismatch:
            replay.report(request, match.mismatch)
        recorded = match.recorded
        if recorded is None:
            return False
        replay.recording.use(key, version, request.body, recorded)
        if request.expects_reply and recorded.response is not None and recorded.version is not None:
            self._send(request, recorded.response, recorded.version)
        return True

    async def _fetch(self, request: Request) -> None:
        """Respond to a fetch with the records that the recording has, or that there are none for now."""
        fetches, body = self._replay.recording.fetches, request.body
        for what in fetches.unknown(body):
            self._replay.report(request, what)
        loop = asyncio.get_running_loop()
        due = loop.time() + min(MAX_WAIT_S, max(0, body.max_wait_ms) / 1000)
        response, has_news = fetches.respond(body)
        while not has_news and loop.time() < due:
            await asyncio.sleep(POLL_S)
            response, has_news = fetches.respond(body)
        self._write(request, request.version, response)

    def _send(self, request: Request, response: bytes, version: int) -> None:
        _, body = response_codec(request.api_key, version).decode(response, False, True, True)
        replace_addresses(body, request.api_key, version, self._place)
        if request.api_key in OWN_IDS and getattr(body, "member_id", None):
            body.member_id = request.body.member_id
        self._write(request, version, body)

    def _write(self, request: Request, version: int, body: Message) -> None:
        assert self._transport is not None
        frame = write_response(body, api_key=request.api_key, version=version, correlation_id=request.correlation_id)
        self._transport.write(frame)
        self._replay.answered += 1

    def _place(self, node: Any, host: str, port: int) -> tuple[str, int]:
        return self._listeners.place(self._host, node, host, port)
