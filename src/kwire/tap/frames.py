"""Streams of frames that are passed on as they arrive, or kept until they are complete.

The first bytes of a frame decide which: only frames that someone reads or changes are held in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from kwire.errors import Malformed
from kwire.protocol.frames import LENGTH_BYTES, MAX_FRAME_BYTES

__all__ = ["FrameSplitter", "Way"]

MAX_PEEK_BYTES = 72 * 1024
"""More than a client id and a transactional id, of up to 32 kB each, and the fields before them."""

Data = bytes | memoryview


class Way(Enum):
    """What happens to a frame. PEEK: more of its bytes are needed to decide."""

    PASS = "pass"
    KEEP = "keep"
    PEEK = "peek"


class FrameSplitter:
    """Divides what one side of a connection sends into frames.

    decide: returns what happens to a frame, given its first bytes, length included, and its whole size. It is asked
    again with more of them if it wants to PEEK; once all or MAX_PEEK_BYTES are there, PEEK means KEEP. passed: gets the
    bytes of frames that are passed, in pieces. kept: gets whole frames.

    `feed` stops early when `is_paused` is set by one of them, and returns the bytes that remain.
    Raises Malformed for a frame with a negative length, and one to keep that is above MAX_FRAME_BYTES.
    """

    __slots__ = ("_decide", "_frame_bytes", "_head", "_kept", "_pass", "_passed_bytes", "_take",
                 "is_paused")  # fmt: skip

    def __init__(
        self,
        decide: Callable[[Data, int], Way],
        passed: Callable[[Data], None],
        kept: Callable[[bytes], None],
    ) -> None:
        self._decide, self._pass, self._take = decide, passed, kept
        self._head = b""  # of a frame that is not decided on
        self._passed_bytes = 0  # remaining bytes of a frame that is passed
        self._frame_bytes = 0  # size of the frame that is kept, 0 for none
        self._kept = bytearray()
        self.is_paused = False

    @property
    def is_between_frames(self) -> bool:
        """Whether the bytes so far end with a frame."""
        return not (self._head or self._passed_bytes or self._frame_bytes)

    @property
    def kept_bytes(self) -> int:
        """How many bytes of an incomplete frame are kept."""
        return len(self._kept)

    def forget(self) -> None:
        """Drop an incomplete frame: nothing more is fed. Its memory must not wait for the garbage collector."""
        self._head, self._kept = b"", bytearray()

    def feed(self, data: Data) -> Data:
        """Take the next bytes; returns those that remain when it is paused."""
        if self._head:
            data, self._head = self._head + bytes(data), b""
        elif len(data) >= LENGTH_BYTES and not self._passed_bytes and not self._frame_bytes and not self.is_paused:
            size = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "big", signed=True)
            if size == len(data):  # the usual case: one frame
                if self._decide(data, size) is Way.PASS:
                    self._pass(data)
                else:
                    self._take(bytes(data))
                return b""
        view = memoryview(data)
        pos, end = 0, len(view)
        while pos < end and not self.is_paused:
            if self._passed_bytes:
                size = min(self._passed_bytes, end - pos)
                self._passed_bytes -= size
                self._pass(view[pos : pos + size])
                pos += size
            elif self._frame_bytes:
                pos += self._keep(view[pos:])
            else:
                taken = self._start(view[pos:])
                if not taken:
                    self._head = bytes(view[pos:])
                    return b""
                pos += taken
        return view[pos:] if pos < end else b""

    def _start(self, view: memoryview) -> int:
        """Decide on the frame at the start; returns how many bytes were taken, 0 if more are needed to decide."""
        if len(view) < LENGTH_BYTES:
            return 0
        length = int.from_bytes(view[:LENGTH_BYTES], "big", signed=True)
        if length < 0:
            raise Malformed(f"frame of {length} bytes", 0)
        size = LENGTH_BYTES + length
        way = self._decide(view[:size], size)
        if way is Way.PEEK and len(view) < min(size, MAX_PEEK_BYTES):
            return 0
        if way is not Way.PASS:
            if length > MAX_FRAME_BYTES:
                raise Malformed(f"frame of {length} bytes, at most {MAX_FRAME_BYTES} are kept", 0)
            if len(view) >= size:
                self._take(bytes(view[:size]))
                return size
            self._frame_bytes = size
            return self._keep(view)
        # As much of it as there is goes on in one piece, with whole frames after it that are passed as well.
        taken = min(size, len(view))
        self._passed_bytes = size - taken
        self._pass(view[:taken])
        return taken

    def _keep(self, view: memoryview) -> int:
        """Add to the frame that is kept; returns how many bytes were taken."""
        size = min(self._frame_bytes - len(self._kept), len(view))
        self._kept += view[:size]  # one buffer: the pieces of a slow client may have a byte each
        if len(self._kept) == self._frame_bytes:
            frame = bytes(self._kept)
            self._kept, self._frame_bytes = bytearray(), 0
            self._take(frame)
        return size
