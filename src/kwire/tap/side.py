"""One of the two sockets of a connection through the tap, with backpressure from the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Side"]

BUFFERED_BYTES = 256 * 1024
"""Above this, what one side does not take stops the tap from reading the other."""


class Side(asyncio.Protocol):
    """One of the two sockets. received, ended: called with what it sends, and at its end. other: the other side."""

    def __init__(self, received: Callable[[bytes], None], ended: Callable[[Exception | None], None]) -> None:
        self._received, self._ended = received, ended
        self.transport: asyncio.Transport | None = None
        self.other: Side | None = None
        self.connected: Callable[[], None] | None = None
        self._stops: set[str] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; see asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(BUFFERED_BYTES)
        for reason in list(self._stops):
            self._stops.discard(reason)
            self.stop_reading(reason)
        if self.connected is not None:
            self.connected()

    def data_received(self, data: bytes) -> None:
        """Hand on what was received; see asyncio.Protocol."""
        self._received(data)

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end; see asyncio.Protocol."""
        self.transport = None  # in asyncio, its abort fails now if it was closed before everything was sent
        self._ended(error)

    def pause_writing(self) -> None:
        """Stop reading from the other side; see asyncio.Protocol."""
        if self.other is not None:
            self.other.stop_reading("backpressure")

    def resume_writing(self) -> None:
        """Read from the other side again; see asyncio.Protocol."""
        if self.other is not None:
            self.other.read_again("backpressure")

    def stop_reading(self, reason: str) -> None:
        """Do not read until `read_again` has been called for each reason."""
        if not self._stops and self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()
        self._stops.add(reason)

    def read_again(self, reason: str) -> None:
        """See stop_reading."""
        if reason in self._stops:
            self._stops.discard(reason)
            if not self._stops and self.transport is not None and not self.transport.is_closing():
                self.transport.resume_reading()

    def write(self, parts: list[bytes | memoryview]) -> None:
        """Send parts, of which none may change any more."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def close(self) -> None:
        """Close it once everything is sent."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close it now."""
        if self.transport is not None:
            self.transport.abort()
