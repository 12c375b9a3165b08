"""Leader epochs of batches, which stand outside their checksums, held against leader-epoch-checkpoint.

Source: rules F-04, F-05, G-12; Kafka's LeaderEpochFileCache.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from kwire.log.checkpoints import LeaderEpoch
from kwire.log.damage import Kind
from kwire.log.verify.batches import Good, Odd

__all__ = ["LeaderEpochCheck"]


class LeaderEpochCheck:
    """entries: of the checkpoint; None where there is no file or it cannot be read, so that only order counts.

    newest: the largest epoch met, -1 before any. missing: epoch -> first offset of batches that the checkpoint
    gives another epoch.
    """

    def __init__(self, entries: Sequence[LeaderEpoch] | None, log_start_offset: int) -> None:
        self._entries, self._log_start = entries, log_start_offset
        self._starts = [entry.start_offset for entry in entries or ()]
        self.newest = -1
        self.missing: dict[int, int] = {}

    def good(self, good: Good) -> list[Odd]:
        """Follow these batches; returns those whose epoch cannot be."""
        # below the log start the checkpoint knows nothing any more (F-04)
        rows = np.flatnonzero((good.leader_epoch >= 0) & (good.last >= self._log_start))
        if not len(rows):
            return []
        epochs = good.leader_epoch[rows]
        found = []
        changes = [*np.flatnonzero(epochs[1:] != epochs[:-1]) + 1]
        for i, end in itertools.pairwise([0, *map(int, changes), len(epochs)]):
            row, epoch = int(rows[i]), int(epochs[i])
            what = self._judge(good, row, epoch, following=int(epochs[end]) if end < len(epochs) else None)
            if what is None:
                self.newest = epoch
            else:
                place = int(good.position[row]), int(good.size[row])
                found.append(Odd(*place, Kind.LEADER_EPOCHS, what, (int(good.base[row]), int(good.last[row]))))
        return found

    def _judge(self, good: Good, row: int, epoch: int, following: int | None) -> str | None:
        """What is wrong with a run of batches of one epoch that begins at row; following: the epoch behind it.

        Epochs rise through a log, so what goes down is wrong in itself; otherwise the checkpoint is, and not the log.
        """
        offset = max(int(good.base[row]), self._log_start)
        if epoch < self.newest:
            return f"leader epoch {epoch} behind batches of epoch {self.newest}"
        if following is not None and following < epoch:
            return f"leader epoch {epoch}, and {following} behind it"
        if self._entries is not None and self._epoch_at(offset) != epoch:
            self.missing.setdefault(epoch, offset)
        return None

    def _epoch_at(self, offset: int) -> int | None:
        """The epoch of an offset by the checkpoint."""
        i = bisect_right(self._starts, offset)
        return self._entries[i - 1].leader_epoch if i and self._entries else None
