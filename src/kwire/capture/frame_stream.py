"""Frames of one direction of a connection that may have holes.

While the place of a frame's start is known, lengths lead from frame to frame, also over a hole inside one: that frame
is told with the bytes before the hole. A hole that hides a length loses the thread. It is found again where bytes look
like the header of a frame, which the two sides judge by what they know (`looks_like`): api key, version, client id and
correlation id of a request, the correlation id of an open request for a response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kwire.capture.reassembly import Hole, Piece
from kwire.protocol import MAX_FRAME_BYTES

__all__ = ["Frame", "FrameStream", "LooksLike"]

LENGTH_BYTES = 4
MAX_SEARCHED_BYTES = 1 << 16  # searched again with every packet

LooksLike = Callable[[memoryview, bool], bool | None]
"""(bytes from a possible frame start on, whether a packet begins there) -> whether a frame does; None: not told yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A frame as far as it was captured.

    data: with its length; all of it, or what stands before the first hole. size_bytes: of the whole frame.
    position: in the stream. time_ns: when its last captured byte came.
    """

    data: bytes
    size_bytes: int
    position: int
    time_ns: int

    @property
    def is_whole(self) -> bool:
        """Whether all of it was captured."""
        return len(self.data) == self.size_bytes

    @property
    def missing(self) -> str:
        """What to say of one that is not whole."""
        return f"{self.size_bytes - len(self.data)} of {self.size_bytes} bytes were not captured"


class FrameStream:
    """Takes pieces and holes in stream order; gives frames.

    min_bytes: of a frame without its length; shorter ones are none. lost_bytes: skipped because no frame was found.
    is_lost: whether the next frame's start is being looked for.
    """

    __slots__ = ("_buffer", "_looks_like", "_min_bytes", "_packets", "_start", "_time_ns", "is_lost", "lost_bytes")

    def __init__(self, looks_like: LooksLike, *, min_bytes: int, is_lost: bool) -> None:
        self._looks_like, self._min_bytes = looks_like, min_bytes
        self._buffer, self._start = bytearray(), 0  # bytes without a hole, and the position of the first
        self._packets: list[int] = []  # positions where packets began, in the buffer
        self._time_ns = 0
        self.is_lost, self.lost_bytes = is_lost, 0

    def add(self, part: Piece | Hole) -> Iterator[Frame]:
        """Take the next part of the stream; frames that end in it."""
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
        """Frames that can be found by now, because the other direction has told more."""
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
        if self._start < end:  # else it is in the middle of a frame whose end is known
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
            if not self._min_bytes <= length <= MAX_FRAME_BYTES:
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

    def _find(self) -> bool:
        """Look for a frame's start in the buffer and drop what is before it.

        The first certain one counts, even behind one that more bytes would decide: most of those are chance.
        """
        keep = None
        with memoryview(self._buffer) as view:
            end = max(0, len(view) - LENGTH_BYTES - self._min_bytes + 1)
            for at in range(end):
                length = int.from_bytes(view[at : at + LENGTH_BYTES], "big", signed=True)
                if not self._min_bytes <= length <= MAX_FRAME_BYTES:
                    continue
                with view[at:] as tail:
                    found = self._looks_like(tail, self._start + at in self._packets)
                if found:
                    keep, self.is_lost = at, False
                    break
                if found is None and keep is None and len(view) - at < MAX_SEARCHED_BYTES:
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
