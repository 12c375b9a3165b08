"""Memory of the frames that all connections of a tap hold in one direction until they are complete.

A frame takes memory as its bytes arrive, as a request of the broker does: at the limit, connections that need more wait
and are not read from, and one connection at a time may exceed it. So peers that send halves of large frames stop each
other, and not the machine. Small frames are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.broker.network.memory import RequestMemory
from kwire.broker.network.server import STALLED_S

if TYPE_CHECKING:
    from kwire.broker.clock import Timers
    from kwire.tap.frames import FrameSplitter

__all__ = ["FrameMemory", "HeldFrame"]

LIMIT_BYTES = 256 << 20
"""The broker's default of queued.max.request.bytes."""
SMALL_BYTES = 64 * 1024


class FrameMemory:
    """The memory of frames in one direction. timers: call what ends peers that pause while others wait."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._holders: set[HeldFrame] = set()
        self._is_checking = False
        self.pool: RequestMemory[HeldFrame] = RequestMemory(LIMIT_BYTES, HeldFrame.count)

    def take(self, owner: HeldFrame, size_bytes: int) -> bool:
        """Take memory; returns False if the owner has to wait, see RequestMemory."""
        self._holders.add(owner)
        is_taken = self.pool.take(owner, size_bytes)
        if not is_taken and not self._is_checking:
            self._is_checking = True
            self._timers.call_later(STALLED_S * 1000, self._end_stalled)
        return is_taken

    def release(self, owner: HeldFrame) -> None:
        """Release all memory of an owner."""
        if owner in self._holders:
            self._holders.discard(owner)
            self.pool.release(owner)

    def _end_stalled(self) -> None:
        """End the connections that have sent nothing since the last call."""
        self._is_checking = False
        for owner in list(self._holders):
            if self.pool.is_short and self.pool.holds(owner) and not owner.has_grown:
                owner.stalled()
            owner.has_grown = False
        if self.pool.is_short:
            self._is_checking = True
            self._timers.call_later(STALLED_S * 1000, self._end_stalled)


class HeldFrame:
    """What one connection holds of a frame. pause, resume: stop and start reading from the peer; stalled: end it."""

    def __init__(
        self,
        memory: FrameMemory,
        frames: FrameSplitter,
        pause: Callable[[], None],
        resume: Callable[[], None],
        stalled: Callable[[], None],
    ) -> None:
        self._memory, self._frames = memory, frames
        self._pause, self._resume, self.stalled = pause, resume, stalled
        self._counted_bytes = 0
        self.has_grown = False

    def count(self) -> None:
        """Take memory for what has arrived, or release it once the frame is complete."""
        kept_bytes = self._frames.kept_bytes
        if kept_bytes < self._counted_bytes:  # it was completed
            self.release()
            self._resume()
        if kept_bytes > max(SMALL_BYTES, self._counted_bytes):
            if self._memory.take(self, kept_bytes - self._counted_bytes):
                self._counted_bytes = kept_bytes
                self.has_grown = True
                self._resume()
            else:
                self._pause()

    def release(self) -> None:
        """Release the memory."""
        self._counted_bytes = 0
        self._memory.release(self)
