"""Frames of one direction of a captured connection, whose bytes may have holes.

While the start of a frame is known, its length gives the start of the next one. That works across a hole inside a frame
too: such a frame is returned with the bytes before the hole. After a hole that covers a length, synchronization is lost
until bytes look like the header of a frame. `looks_like` decides: for requests by api key, version, client id and
correlation id, for responses by the correlation id of an open request. It also decides whether a length above 100 MB is
one, as that of other bytes would hide everything after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kwire.capture.reassembly import Hole, Piece
from kwire.protocol.frames import LENGTH_BYTES, MAX_FRAME_BYTES

__all__ = ["Frame", "FrameStream", "LooksLike"]

MAX_SEARCHED_BYTES = 1 << 16  # because they are searched again with every packet

LooksLike = Callable[[memoryview, bool], bool | None]
"""(bytes from a position on, whether a packet starts there) -> whether a frame does; None: more bytes needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A frame, or the captured part of it.

    data: the bytes before the first hole, length included. size_bytes: of the complete frame.
    position: in the stream. time_ns: of the last captured byte.
    """

    data: bytes
    size_bytes: int
    position: int
    time_ns: int

    @property
    def is_whole(self) -> bool:
        """Whether the frame was captured completely."""
        return len(self.data) == self.size_bytes

    @property
    def missing(self) -> str:
        """Description of the missing bytes, for error messages."""
        return f"{self.size_bytes - len(self.data)} of {self.size_bytes} bytes were not captured"


class FrameStream:
    """Converts pieces and holes, in stream order, to frames.

    min_bytes: minimum length of a frame. is_lost: whether the start of the next frame is unknown.
    lost_bytes: bytes skipped because no frame was found in them.
    """

    __slots__ = ("_buffer", "_looks_like", "_min_bytes", "_packets", "_start", "_time_ns", "is_lost", "lost_bytes")

    def __init__(self, looks_like: LooksLike, *, min_bytes: int, is_lost: bool) -> None:
        self._looks_like, self._min_bytes = looks_like, min_bytes
        self._buffer, self._start = bytearray(), 0  # contiguous bytes, and the position of the first
        self._packets: list[int] = []  # positions of packet starts in the buffer
        self._time_ns = 0
        self.is_lost, self.lost_bytes = is_lost, 0

    def add(self, part: Piece | Hole) -> Iterator[Frame]:
        """Add the next part of the stream; yield the frames that end in it."""
        if isinstance(part, Hole):
            yield from self._hole(part)
            return
        skipped = 0 if self._buffer else self._start - part.position  # the rest of a frame that has a hole
        if skipped >= len(part.data):
            return
        if part.is_segment_start and self.is_lost:
            self._packets.append(part.position)
        self._buffer += part.data[skipped:] if skipped else part.data
        self._time_ns = part.time_ns
        yield from self._frames()

    def search_again(self) -> Iterator[Frame]:
        """Yield frames that can be recognized now, because more of the other direction is known."""
        if self.is_lost:
            yield from self._frames()

    def _hole(self, hole: Hole) -> Iterator[Frame]:
        end = hole.position + hole.size_bytes
        length = None if self.is_lost else self._length()
        if length is not None:
            size = LENGTH_BYTES + length
            yield Frame(data=bytes(self._buffer), size_bytes=size, position=self._start, time_ns=self._time_ns)
            self._start += size
        elif self._buffer:
            self.lost_bytes += len(self._buffer)
            self._start = hole.position
        self._buffer.clear()
        self._packets.clear()
        if self._start < end:  # else the hole is inside a frame whose end is known
            self.is_lost, self._start = True, end

    def _length(self) -> int | None:
        if len(self._buffer) < LENGTH_BYTES:
            return None
        return int.from_bytes(self._buffer[:LENGTH_BYTES], "big", signed=True)

    def _frames(self) -> Iterator[Frame]:
        while not self.is_lost or self._find():
            length = self._length()
            if length is None:
                return
            is_frame = self._is_frame(length)
            if is_frame is None:
                return
            if not is_frame:
                self.is_lost = True
                self._drop(1)
                self.lost_bytes += 1
                continue
            size = LENGTH_BYTES + length
            if len(self._buffer) < size:
                return
            yield Frame(
                data=bytes(memoryview(self._buffer)[:size]),
                size_bytes=size,
                position=self._start,
                time_ns=self._time_ns,
            )
            self._drop(size)

    def _is_frame(self, length: int) -> bool | None:
        """Return whether the buffer starts with a frame of this length; None if more bytes are needed."""
        if length <= MAX_FRAME_BYTES:
            return length >= self._min_bytes
        with memoryview(self._buffer) as view:
            return self._looks_like(view, True)

    def _find(self) -> bool:
        """Search the buffer for the start of a frame and drop the bytes before it.

        The first certain match wins, even after a possible one that needs more bytes: most of those are coincidence.
        """
        keep = None
        with memoryview(self._buffer) as view:
            end = max(0, len(view) - LENGTH_BYTES - self._min_bytes + 1)
            for at in range(end):
                length = int.from_bytes(view[at : at + LENGTH_BYTES], "big", signed=True)
                if not self._min_bytes <= length <= MAX_FRAME_BYTES:
                    continue
                with view[at:] as tail:
                    is_frame = self._looks_like(tail, self._start + at in self._packets)
                if is_frame:
                    keep, self.is_lost = at, False
                    break
                if is_frame is None and keep is None and len(view) - at < MAX_SEARCHED_BYTES:
                    keep = at
        dropped = end if keep is None else keep
        self.lost_bytes += dropped
        self._drop(dropped)
        return not self.is_lost

    def _drop(self, n: int) -> None:
        del self._buffer[:n]
        self._start += n
        if self._packets:
            self._packets = [position for position in self._packets if position >= self._start]
