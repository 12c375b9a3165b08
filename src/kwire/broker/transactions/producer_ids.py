"""Producer ids: handed out one by one from blocks that are claimed, and thereby never handed out again, before use.

Source: org.apache.kafka.coordinator.transaction.ProducerIdManager, org.apache.kafka.server.common.ProducerIdsBlock.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["BLOCK_SIZE", "ProducerIds"]

BLOCK_SIZE = 1000
"""Producer ids a block; as many as a restart may skip."""


class ProducerIds:
    """claim_block: takes the size of a block, returns its first producer id once the claim is safe from a crash."""

    def __init__(self, claim_block: Callable[[int], int]) -> None:
        self._claim_block = claim_block
        self._next = self._end = 0

    def take(self) -> int:
        """A producer id that nobody had before. Raises what claim_block raises; nothing is lost then."""
        if self._next == self._end:
            self._next = self._claim_block(BLOCK_SIZE)
            self._end = self._next + BLOCK_SIZE
        self._next += 1
        return self._next - 1
