"""Frames: how messages are delimited on a connection.

    pos  bytes  field
      0      4  length     int32, of what follows
      4      n  payload    header and body of a request or response, see kwire.protocol.requests

Source: org.apache.kafka.common.network.NetworkReceive.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from kwire.errors import Malformed

__all__ = ["LENGTH_BYTES", "MAX_FRAME_BYTES", "NEED_DATA", "FrameBuffer", "FrameMemory", "NeedData"]

MAX_FRAME_BYTES = 100 * 1024 * 1024
"""Kafka's default for socket.request.max.bytes."""
LENGTH_BYTES = 4
SCRATCH_BYTES = 256 * 1024
FIRST_FRAME_BYTES, FRAME_GROWTH = 64 * 1024, 4
"""Initial size of the buffer of a frame that arrives in pieces, and the factor by which it grows when it is full: the
length that a peer announces costs no memory before the bytes arrive."""
KEPT_FRAMES, LEAST_KEPT_BYTES, MOST_KEPT_BYTES = 2, 256 * 1024, 16 * 1024 * 1024
"""How many frames FrameMemory keeps, and of which sizes: one is read while the next arrives."""
LARGEST_RATIO = 2
"""Of the memory of a frame to its size, so that who holds a frame does not hold much more memory."""

Buffer = bytes | bytearray | memoryview


class NeedData:
    """The type of NEED_DATA."""

    def __repr__(self) -> str:
        return "NEED_DATA"

    def __bool__(self) -> bool:
        return False


NEED_DATA = NeedData()
"""No complete frame yet: the connection needs more bytes."""


class FrameMemory:
    """Memory of large frames, to be used again when nothing refers to it any more.

    New memory has to be cleared page by page, which takes as long as receiving into it. For one thread.
    """

    def __init__(self) -> None:
        self._kept: list[bytearray] = []

    def keep(self, frame: bytearray) -> None:
        """Keep a frame, which is in use, instead of the oldest one."""
        if LEAST_KEPT_BYTES <= len(frame) <= MOST_KEPT_BYTES:
            self._kept = [*self._kept[1 - KEPT_FRAMES :], frame]

    def take(self, size: int) -> bytearray | None:
        """Return memory for a frame of a size, which may be smaller or larger; None if there is none."""
        for index in range(len(self._kept)):
            # of the list and of this call; each view has one more
            if sys.getrefcount(self._kept[index]) <= 2 and len(self._kept[index]) <= LARGEST_RATIO * size:
                return self._kept.pop(index)
        return None


class FrameBuffer:
    """Cuts a stream of bytes into frames, however the stream was split.

    Bytes arrive with `append`, or with `receive`, which lends a buffer to socket.recv_into: a frame that is larger than
    the scratch buffer is received into the memory in which it is returned.

    max_frame_bytes: maximum length of a frame; may change at any time. scratch: the buffer for everything else. Several
    FrameBuffers may share one, if each calls `release_scratch` before the next one receives.
    reserve: called with the number of bytes by which a frame outgrows FIRST_FRAME_BYTES, step by step; False pauses the
    frame until `next_frame` is called again.
    memory: for large frames, also of other FrameBuffers of the thread; each frame gets new memory by default.
    """

    __slots__ = (
        "_data",
        "_filled_bytes",
        "_frame",
        "_frame_bytes",
        "_memory",
        "_pos",
        "_reserve",
        "_scratch",
        "is_paused",
        "max_frame_bytes",
    )

    def __init__(
        self,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        *,
        scratch: bytearray | None = None,
        reserve: Callable[[int], bool] | None = None,
        memory: FrameMemory | None = None,
    ) -> None:
        self.max_frame_bytes, self._memory = max_frame_bytes, memory
        self._scratch, self._reserve = scratch, reserve
        self._data: Buffer = b""  # received and not in a frame, from _pos on
        self._pos = 0
        self._frame: bytearray | None = None  # the frame that is being received
        self._frame_bytes = self._filled_bytes = 0  # its size, and how much of it has arrived
        self.is_paused = False

    def __len__(self) -> int:
        """Bytes received and not returned in frames."""
        return self._filled_bytes + self.pending_bytes

    @property
    def pending_bytes(self) -> int:
        """Bytes received that no frame has been made of."""
        return len(self._data) - self._pos

    def append(self, data: Buffer) -> None:
        """Add bytes from the stream."""
        if not self.pending_bytes:
            self._data = bytes(data)
        elif isinstance(self._data, bytearray):
            del self._data[: self._pos]
            self._data += data
        else:
            self._data = bytearray(memoryview(self._data)[self._pos :])
            self._data += data
        self._pos = 0

    def receive(self, recv_into: Callable[[memoryview], int]) -> tuple[int, bool]:
        """Receive once with recv_into, such as socket.recv_into.

        Returns the number of bytes, 0 at the end of the stream, and whether they filled the buffer.
        """
        frame = self._frame
        if self._scratch is None:
            self._scratch = bytearray(SCRATCH_BYTES)
        end = 0 if frame is None else min(len(frame), self._frame_bytes)
        if frame is not None and not self.pending_bytes and end - self._filled_bytes > len(self._scratch):
            with memoryview(frame) as whole, whole[self._filled_bytes : end] as room:
                size = recv_into(room)
                is_full = size == len(room)
            self._filled_bytes += size
            return size, is_full
        room = memoryview(self._scratch)
        size = recv_into(room)
        if self.pending_bytes:
            self.append(room[:size])
        else:
            self._data, self._pos = room[:size], 0
        return size, size == len(room)

    def release_scratch(self) -> None:
        """Copy the bytes that are still in the scratch buffer, so that another FrameBuffer can use it."""
        if self._pos >= len(self._data):
            self._data, self._pos = b"", 0
        elif isinstance(self._data, memoryview):
            self._data, self._pos = bytes(self._data[self._pos :]), 0

    def next_frame(self) -> bytes | memoryview | NeedData:
        """Return the next complete frame with its length, or NEED_DATA.

        Raises Malformed for a length that is negative or above max_frame_bytes, as soon as the length has arrived.
        """
        if self._frame is None:
            data, pos = self._data, self._pos
            if len(data) - pos < LENGTH_BYTES:
                return NEED_DATA
            size = int.from_bytes(data[pos : pos + LENGTH_BYTES], "big", signed=True)
            if not 0 <= size <= self.max_frame_bytes:
                raise Malformed(f"frame of {size} bytes, at most {self.max_frame_bytes} are allowed", 0)
            stop = pos + LENGTH_BYTES + size
            if stop <= len(data):  # the usual case
                self._pos = stop
                return bytes(memoryview(data)[pos:stop])
            self._frame_bytes = LENGTH_BYTES + size
            kept = None if self._memory is None else self._memory.take(self._frame_bytes)
            self._frame = bytearray(min(self._frame_bytes, FIRST_FRAME_BYTES)) if kept is None else kept
            self._filled_bytes = 0
        return self._fill(self._frame)

    def _fill(self, frame: bytearray) -> memoryview | NeedData:
        """Move pending bytes into the frame that is being received; return the frame when it is complete."""
        while True:
            size = min(self.pending_bytes, min(len(frame), self._frame_bytes) - self._filled_bytes)
            part = memoryview(self._data)[self._pos : self._pos + size]
            frame[self._filled_bytes : self._filled_bytes + size] = part
            self._filled_bytes += size
            self._pos += size
            if self._filled_bytes == self._frame_bytes:
                self._frame, self._filled_bytes = None, 0
                if self._memory is not None:
                    self._memory.keep(frame)
                return memoryview(frame)[: self._frame_bytes]
            if self._filled_bytes < len(frame):
                return NEED_DATA
            growth = min(self._frame_bytes, len(frame) * FRAME_GROWTH) - len(frame)
            self.is_paused = self._reserve is not None and not self._reserve(growth)
            if self.is_paused:
                return NEED_DATA
            frame.extend(bytes(growth))

    def clear(self) -> None:
        """Drop everything that was received and not returned."""
        self._data, self._pos = b"", 0
        self._frame, self._filled_bytes, self.is_paused = None, 0, False
