"""Producer ids, allocated from blocks that the metadata log reserves, so that no id is used twice.

Source: org.apache.kafka.coordinator.transaction.ProducerIdManager, org.apache.kafka.server.common.ProducerIdsBlock.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["BLOCK_SIZE", "ProducerIds"]

BLOCK_SIZE = 1000
"""Producer ids a block; as many as a restart may skip."""


class ProducerIds:
    """An allocator of producer ids.

    claim_block: takes the size of a block and returns its first producer id, once the claim is durable.
    """

    def __init__(self, claim_block: Callable[[int], int]) -> None:
        self._claim_block = claim_block
        self._next = self._end = 0

    def take(self) -> int:
        """Return an unused producer id. Raises the errors of claim_block; no id is lost then."""
        if self._next == self._end:
            self._next = self._claim_block(BLOCK_SIZE)
            self._end = self._next + BLOCK_SIZE
        self._next += 1
        return self._next - 1
