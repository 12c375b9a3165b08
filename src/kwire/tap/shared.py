"""What all connections of a tap share."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import TYPE_CHECKING

from kwire.broker.clock import Clock, LoopTimers
from kwire.client.tls import check_suite, tls_context
from kwire.tap.memory import FrameMemory
from kwire.tap.topics import SeenTopics

if TYPE_CHECKING:
    from kwire.broker.faults import Faults
    from kwire.broker.request_log import RequestLog
    from kwire.client.settings import ClientSettings
    from kwire.tap.listeners import Listeners
    from kwire.tap.recording import Recorder

__all__ = ["Shared"]

WARN_S = 10.0
"""Between two warnings of the same problem, and between two attempts to connect to the tap itself."""
OWN_ADDRESS = "this is the tap's own address"


class Shared:
    """The state of a running tap, on the thread of its event loop. settings: of connections to the cluster."""

    listeners: Listeners

    def __init__(
        self, settings: ClientSettings, faults: Faults, requests: RequestLog, recorder: Recorder | None
    ) -> None:
        self.faults, self.requests, self.recorder = faults, requests, recorder
        self.topics = SeenTopics()
        self.clock = Clock()
        self._loop = asyncio.get_running_loop()
        self.timers = LoopTimers(self._loop)
        self.request_memory, self.response_memory = FrameMemory(self.timers), FrameMemory(self.timers)
        self._settings = settings
        self._warned_s: dict[str, float] = {}
        self._own_s: dict[tuple[str, int], float] = {}  # when an address has led back to the tap
        self._tls: ssl.SSLContext | None = tls_context(settings) if settings.uses_tls else None

    def reads_request(self, api_key: int) -> bool:
        """Return whether requests of an API are decoded."""
        return bool(self.requests.limit) or self.faults.concerns(api_key)

    def level_of(self, problem: str) -> int:
        """Return the level to log a problem with, which clients cause again with each attempt."""
        now, last_s = self._loop.time(), self._warned_s.get(problem)
        if last_s is not None and now - last_s < WARN_S:
            return logging.DEBUG
        self._warned_s[problem] = now
        return logging.WARNING

    def port_of(self, node_id: int) -> int:
        """Return the port of a node's listener."""
        listeners = self.listeners.all
        return next((each for each in listeners if each.node.node_id == node_id), listeners[0]).port

    async def connect(self, targets: tuple[tuple[str, int], ...], side: asyncio.Protocol) -> None:
        """Connect to the first of some addresses that can be reached. Raises OSError, UnicodeError."""
        for host, port in targets[:-1]:
            try:
                await self._connect(host, port, side)
            except (OSError, UnicodeError):
                continue
            return
        await self._connect(*targets[-1], side)

    async def _connect(self, host: str, port: int, side: asyncio.Protocol) -> None:
        now, own_s = self._loop.time(), self._own_s.get((host, port))
        if own_s is not None and now - own_s < WARN_S:
            raise OSError(OWN_ADDRESS)
        timeout_s = self._settings.socket_connection_setup_timeout_ms / 1000
        opening = self._loop.create_connection(
            lambda: side,
            host,
            port,
            ssl=self._tls,
            server_hostname=host if self._tls is not None else None,
            ssl_handshake_timeout=timeout_s if self._tls is not None else None,
        )
        transport, _ = await asyncio.wait_for(opening, timeout_s)
        if self.listeners.is_own(transport.get_extra_info("sockname"), transport.get_extra_info("peername")):
            transport.abort()
            # It was accepted as well, and the tap connects for it in turn: without this, it would do so forever.
            self._own_s[host, port] = now
            raise OSError(OWN_ADDRESS)
        if self._tls is not None:
            try:
                check_suite(transport.get_extra_info("cipher"), self._settings)
            except ssl.SSLError:
                transport.abort()
                raise
