"""TCP reassembly: the segments of one direction of a connection as a stream of bytes.

Segments are put in order, and retransmissions are dropped. The result is a sequence of pieces of bytes without overlap,
and of holes where bytes were not captured. Positions in the stream do not wrap, unlike sequence numbers. Where a packet
was truncated to the snap length, the hole is certain. Elsewhere, missing bytes become a hole when the receiver
acknowledged bytes after them some time ago, when too much data waits for them, or when the capture ends.
Source: RFC 9293.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Hole", "Piece", "TcpStream"]

HALF, WHOLE = 1 << 31, 1 << 32
PATIENCE_NS = 2_000_000_000  # a packet may be captured after its acknowledgement, but not this long after
MAX_WAITING_BYTES = 16 << 20
MAX_WAITING_SEGMENTS = 1 << 16


class Piece(NamedTuple):
    """Bytes of the stream. position: of the first. is_segment_start: whether they start a segment."""

    position: int
    data: bytes
    time_ns: int
    is_segment_start: bool


class Hole(NamedTuple):
    """Bytes of the stream that were not captured."""

    position: int
    size_bytes: int


class TcpStream:
    """Converts segments, in capture order, to pieces and holes, in stream order."""

    __slots__ = ("_acknowledged", "_acknowledged_at_ns", "_base", "_starts", "_waiting", "_waiting_bytes", "position")

    def __init__(self) -> None:
        self.position: int | None = None  # of the next byte to return; None before the first segment
        self._base = 0
        self._starts: list[int] = []
        self._waiting: list[tuple[int, bytes, int]] = []  # (missing bytes after the data, data, time), as _starts
        self._waiting_bytes = 0
        self._acknowledged = -1
        self._acknowledged_at_ns = 0

    def start(self, sequence: int) -> None:
        """Start the stream after this SYN."""
        if self.position is None:
            self._base = (sequence + 1) % WHOLE
            self.position = 0

    def _position_of(self, sequence: int) -> int:
        """Return the position with this sequence number that is nearest to the next byte."""
        assert self.position is not None  # every caller has started the stream
        ahead = (sequence - self._base - self.position) % WHOLE
        return self.position + (ahead if ahead < HALF else ahead - WHOLE)

    def add(self, sequence: int, data: bytes, missing_bytes: int, time_ns: int) -> Iterator[Piece | Hole]:
        """Add a segment; yield the parts of the stream that are complete now."""
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
            self._waiting.insert(at, (missing_bytes, data, time_ns))
            self._waiting_bytes += len(data)
        yield from self._ready()
        if self._waiting_bytes > MAX_WAITING_BYTES or len(self._waiting) > MAX_WAITING_SEGMENTS:
            yield from self._give_up()

    def acknowledge(self, sequence: int, time_ns: int) -> Iterator[Piece | Hole]:
        """Note that the receiver has all bytes before sequence; yield parts, with holes that are certain now."""
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
        """Yield the rest at the end of the capture or connection."""
        while self._waiting:
            yield from self._give_up()

    def _give_up(self) -> Iterator[Piece | Hole]:
        """Make a hole of the bytes missing before the first waiting segment."""
        assert self.position is not None
        if self._starts[0] > self.position:
            yield Hole(self.position, self._starts[0] - self.position)
            self.position = self._starts[0]
        yield from self._ready()

    def _ready(self) -> Iterator[Piece | Hole]:
        """Yield the waiting segments that continue the stream."""
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
            upto = (
                min(end, self._starts[taken]) if taken < len(self._starts) else end
            )  # a retransmission may have the rest
            if upto > self.position:
                yield Hole(self.position, upto - self.position)
                self.position = upto
        del self._starts[:taken], self._waiting[:taken]
