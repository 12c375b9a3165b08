"""Responses that are sent slowly, for tests of clients on slow networks."""

from __future__ import annotations

__all__ = ["SlowBytes"]

PIECES_PER_SECOND = 20


class SlowBytes:
    """What remains of a response that is sent at a rate. data: the bytes."""

    __slots__ = ("_rate", "_size", "data")

    def __init__(self, data: memoryview, bytes_per_second: int) -> None:
        self.data, self._rate = data, bytes_per_second
        self._size = max(1, bytes_per_second // PIECES_PER_SECOND)

    @property
    def pause_ms(self) -> float:
        """Milliseconds between two pieces."""
        return 1000 * self._size / self._rate

    def next_piece(self) -> memoryview:
        """Remove and return the next piece."""
        piece, self.data = self.data[: self._size], self.data[self._size :]
        return piece
