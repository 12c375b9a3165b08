"""One direction of a TCP connection as a stream of bytes: order restored, repeats dropped, holes told.

Positions count the bytes of the stream without end, so a sequence number that wraps is no matter. What comes out is in
order and without overlap: pieces of bytes, and holes where bytes were never captured. A hole is certain where a packet
was cut to the snap length; elsewhere it is believed when the receiver has acknowledged bytes behind it for a while,
when too much waits for it, or when the capture ends.
Source: RFC 9293.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Hole", "Piece", "TcpStream"]

HALF, WHOLE = 1 << 31, 1 << 32
PATIENCE_NS = 2_000_000_000  # a captured packet may stand behind its acknowledgement, not for this long
MAX_WAITING_BYTES = 16 << 20
MAX_WAITING_SEGMENTS = 1 << 16


class Piece(NamedTuple):
    """Bytes of the stream. position: of the first. time_ns: when they came. is_segment_start: whether a packet did."""

    position: int
    data: bytes
    time_ns: int
    is_segment_start: bool


class Hole(NamedTuple):
    """size_bytes of the stream from position on that were never captured."""

    position: int
    size_bytes: int


class TcpStream:
    """Takes segments in capture order; gives pieces and holes in stream order."""

    __slots__ = ("_acknowledged", "_acknowledged_at_ns", "_base", "_starts", "_waiting", "_waiting_bytes", "position")

    def __init__(self) -> None:
        self.position: int | None = None  # of the next byte to give; None before the first segment
        self._base = 0
        self._starts: list[int] = []
        self._waiting: list[tuple[int, bytes, int]] = []  # (bytes missing behind, data, time), by _starts
        self._waiting_bytes = 0
        self._acknowledged = -1
        self._acknowledged_at_ns = 0

    def start(self, sequence: int) -> None:
        """The stream begins behind this SYN."""
        if self.position is None:
            self._base = (sequence + 1) % WHOLE
            self.position = 0

    def _position_of(self, sequence: int) -> int:
        """The position nearest to the next one that has this sequence number."""
        assert self.position is not None  # every caller has started the stream
        ahead = (sequence - self._base - self.position) % WHOLE
        return self.position + (ahead if ahead < HALF else ahead - WHOLE)

    def add(self, sequence: int, data: bytes, missing_bytes: int, time_ns: int) -> Iterator[Piece | Hole]:
        """Take a segment; what is complete by now."""
        if self.position is None:
            self._base, self.position = sequence, 0
        start = self._position_of(sequence)
        if start < self.position:
            known = self.position - start
            if known < len(data):
                data, start = data[known:], self.position
            else:
                missing_bytes -= known - len(data)
                data, start = b"", self.position
        if data or missing_bytes > 0:
            at = bisect_left(self._starts, start)
            self._starts.insert(at, start)
            self._waiting.insert(at, (max(0, missing_bytes), data, time_ns))
            self._waiting_bytes += len(data)
        yield from self._ready()
        if self._waiting_bytes > MAX_WAITING_BYTES or len(self._waiting) > MAX_WAITING_SEGMENTS:
            yield from self._give_up()

    def acknowledge(self, sequence: int, time_ns: int) -> Iterator[Piece | Hole]:
        """The receiver has everything below sequence; what can be given up for lost now."""
        if self.position is None:
            return
        position = self._position_of(sequence)
        if position > self._acknowledged:
            if self._acknowledged <= self.position:
                self._acknowledged_at_ns = time_ns
            self._acknowledged = position
        if self._waiting and self._acknowledged > self.position and time_ns - self._acknowledged_at_ns > PATIENCE_NS:
            yield from self._give_up()

    def finish(self) -> Iterator[Piece | Hole]:
        """Everything that still waits, at the end of the capture or connection."""
        while self._waiting:
            yield from self._give_up()

    def _give_up(self) -> Iterator[Piece | Hole]:
        """Call what is missing before the first waiting segment a hole."""
        assert self.position is not None
        if self._starts[0] > self.position:
            yield Hole(self.position, self._starts[0] - self.position)
            self.position = self._starts[0]
        yield from self._ready()

    def _ready(self) -> Iterator[Piece | Hole]:
        """Take what joins on to the position out of the waiting segments."""
        assert self.position is not None
        taken = 0
        for start, (missing, data, time_ns) in zip(self._starts, self._waiting, strict=True):
            if start > self.position:
                break
            taken += 1
            self._waiting_bytes -= len(data)
            known = self.position - start
            if known < len(data):
                yield Piece(self.position, data[known:] if known else data, time_ns, known == 0)
                self.position = start + len(data)
            end = start + len(data) + missing
            upto = min(end, self._starts[taken]) if taken < len(self._starts) else end  # a repeat may have the rest
            if upto > self.position:
                yield Hole(self.position, upto - self.position)
                self.position = upto
        del self._starts[:taken], self._waiting[:taken]
