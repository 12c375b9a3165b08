"""Leader epochs of batches, which stand outside their checksums, held against leader-epoch-checkpoint.

Source: rules F-04, F-05, G-12; Kafka's LeaderEpochFileCache.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from kwire.log.checkpoints import LeaderEpoch
from kwire.log.damage import Kind
from kwire.log.verify.batches import Good, Odd

__all__ = ["LeaderEpochCheck"]


class LeaderEpochCheck:
    """entries: of the checkpoint; None where there is no file or it cannot be read, so that only order counts.

    newest: the largest epoch met, -1 before any. missing: epochs of batches that the checkpoint does not have.
    """

    def __init__(self, entries: Sequence[LeaderEpoch] | None) -> None:
        self._entries = entries
        self._starts = [entry.start_offset for entry in entries or ()]
        self.newest = -1
        self.missing: dict[int, int] = {}

    def good(self, good: Good) -> list[Odd]:
        """Follow these batches; returns those whose epoch cannot be."""
        rows = np.flatnonzero(good.leader_epoch >= 0)
        if not len(rows):
            return []
        epochs = good.leader_epoch[rows]
        found = []
        changes = np.flatnonzero(np.concatenate(([True], epochs[1:] != epochs[:-1])))
        for i in changes.tolist():
            row, epoch = int(rows[i]), int(epochs[i])
            offset = int(good.base[row])
            what = None
            said = self._epoch_at(offset)
            if epoch < self.newest:
                what = f"leader epoch {epoch} behind batches of epoch {self.newest}"
            elif said is not None and said != epoch and epoch in self._known and said > epoch:
                what = f"leader epoch {epoch}, which by the checkpoint had ended: it says {said} for offset {offset}"
            elif self._entries is not None and epoch not in self._known:
                following = int(epochs[i + 1]) if i + 1 < len(epochs) else epoch
                if following < epoch:
                    what = f"leader epoch {epoch}, and {following} behind it"
                else:
                    self.missing.setdefault(epoch, offset)
            if what:
                place = int(good.position[row]), int(good.size[row])
                found.append(Odd(*place, Kind.LEADER_EPOCHS, what, (offset, int(good.last[row]))))
            else:
                self.newest = epoch
        return found

    @property
    def _known(self) -> set[int]:
        return {entry.leader_epoch for entry in self._entries or ()}

    def _epoch_at(self, offset: int) -> int | None:
        """The epoch of an offset by the checkpoint."""
        i = bisect_right(self._starts, offset)
        return self._entries[i - 1].leader_epoch if i and self._entries else None
