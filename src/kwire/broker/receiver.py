"""The bytes that one connection has received, cut into frames one at a time.

What has come and is not cut yet costs at most READ_AHEAD_BYTES and one read. A large frame is received straight into
the buffer that its records are then written from; that buffer grows with what comes, as far as there is memory.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.broker.connection import ClientConnection
    from kwire.broker.request_memory import RequestMemory

__all__ = ["LENGTH_BYTES", "READ_AHEAD_BYTES", "Receiver"]

LENGTH_BYTES = 4
READ_AHEAD_BYTES = 64 * 1024
"""Reading stops when this many bytes wait to be handled."""
FIRST_FRAME_BYTES, FRAME_GROWTH = 64 * 1024, 4
"""Size of the buffer of a frame that arrives in pieces, and its growth whenever it is full: the size that a client
announces costs no memory before the bytes arrive. The first buffer does not count as memory of requests."""


class Receiver:
    """Frames of one connection.

    scratch: a buffer shared by all connections, whose bytes are good until keep(). check_size: raises Malformed for a
    frame of a size that is not allowed. is_short: a frame waits for memory.
    """

    __slots__ = (
        "_check_size",
        "_data",
        "_filled",
        "_frame",
        "_frame_bytes",
        "_memory",
        "_owner",
        "_pos",
        "_scratch",
        "is_short",
    )

    def __init__(
        self,
        owner: ClientConnection,
        scratch: bytearray,
        memory: RequestMemory[ClientConnection],
        check_size: Callable[[int], None],
    ) -> None:
        self._owner, self._scratch, self._memory, self._check_size = owner, scratch, memory, check_size
        self._data: bytes | memoryview = b""  # received and not cut yet, from _pos on
        self._pos = 0
        self._frame: bytearray | None = None  # a frame that is being received
        self._frame_bytes = self._filled = 0  # how long it will be, how much of it has come
        self.is_short = False

    @property
    def ahead_bytes(self) -> int:
        """Bytes that were received and not cut yet."""
        return len(self._data) - self._pos

    @property
    def partial_bytes(self) -> int:
        """Bytes of frames that are not whole."""
        return self._filled + self.ahead_bytes

    @property
    def wants_more(self) -> bool:
        """Whether reading may go on."""
        return not self.is_short and self.ahead_bytes < READ_AHEAD_BYTES

    def receive(self, sock: socket.socket) -> tuple[int, bool]:
        """Read once. Returns the number of bytes, 0 at the end, and whether there was room for no more."""
        frame = self._frame
        if frame is not None and not self.ahead_bytes and len(frame) - self._filled > len(self._scratch):
            room = len(frame) - self._filled
            with memoryview(frame) as whole, whole[self._filled :] as into:
                size = sock.recv_into(into)
            self._filled += size
            return size, size == room
        size = sock.recv_into(self._scratch)
        new = memoryview(self._scratch)[:size]
        self._data = b"".join((self._data[self._pos :], new)) if self.ahead_bytes else new
        self._pos = 0
        return size, size == len(self._scratch)

    def keep(self) -> None:
        """Copy what is still in the shared buffer, which others use next."""
        if self._pos >= len(self._data):
            self._data, self._pos = b"", 0
        elif isinstance(self._data, memoryview):
            self._data, self._pos = bytes(self._data[self._pos :]), 0

    def next_frame(self) -> bytes | memoryview | None:
        """Cut off the next frame with its length; None when it is not whole yet. Raises Malformed."""
        if self._frame is None:
            data, pos = self._data, self._pos
            if len(data) - pos < LENGTH_BYTES:
                return None
            size = int.from_bytes(data[pos : pos + LENGTH_BYTES], "big", signed=True)
            self._check_size(size)
            stop = pos + LENGTH_BYTES + size
            if stop <= len(data):  # all of it is here, as it mostly is
                self._pos = stop
                return bytes(data[pos:stop])
            self._frame_bytes = LENGTH_BYTES + size
            self._frame = bytearray(min(self._frame_bytes, FIRST_FRAME_BYTES))
            self._filled = 0
        return self._fill(self._frame)

    def _fill(self, frame: bytearray) -> memoryview | None:
        """Move what was received into the frame that is being received; return the frame when it is whole."""
        while True:
            part = min(self.ahead_bytes, len(frame) - self._filled)
            frame[self._filled : self._filled + part] = self._data[self._pos : self._pos + part]
            self._filled += part
            self._pos += part
            if self._filled == self._frame_bytes:
                self._frame, self._filled = None, 0
                return memoryview(frame)
            if self._filled < len(frame):
                return None
            growth = min(self._frame_bytes, len(frame) * FRAME_GROWTH) - len(frame)
            self.is_short = not self._memory.take(self._owner, growth)
            if self.is_short:
                return None
            frame.extend(bytes(growth))

    def release(self) -> None:
        """The last frame was handled: its memory is free."""
        self._memory.release(self._owner)

    def clear(self) -> None:
        """Forget everything."""
        self._data, self._pos = b"", 0
        self._frame, self._filled, self.is_short = None, 0, False
        self._memory.release(self._owner)
