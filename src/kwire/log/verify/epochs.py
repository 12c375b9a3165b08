"""Leader epochs of batches, which stand outside their checksums, held against leader-epoch-checkpoint.

Source: rules F-04, F-05, G-12; Kafka's LeaderEpochFileCache.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kwire.log.damage import Kind
from kwire.log.verify.batches import Good, Odd
from kwire.storage.checkpoints import LeaderEpoch

__all__ = ["LeaderEpochCheck"]


class Run(NamedTuple):
    """Neighbouring batches of one epoch: how many, and where the first one is."""

    epoch: int
    batches: int
    position: int
    size: int
    base: int
    last: int


class LeaderEpochCheck:
    """entries: of the checkpoint; None where there is no file or it cannot be read, so that only order counts.

    newest: the largest epoch met, -1 before any. missing: epoch -> first offset of batches that the checkpoint
    gives another epoch.
    """

    def __init__(self, entries: Sequence[LeaderEpoch] | None, log_start_offset: int) -> None:
        self._entries, self._log_start = entries, log_start_offset
        self._starts = [entry.start_offset for entry in entries or ()]
        self._held: tuple[str, Run] | None = None  # the newest run, until what is behind it is known
        self.newest = -1
        self.missing: dict[int, int] = {}

    def good(self, good: Good, file: str) -> list[tuple[str, Odd]]:
        """Follow these batches of a file; returns those whose epoch cannot be, also of batches before, with their file.

        A batch is told when the one behind it is known.
        """
        # below the log start the checkpoint knows nothing any more (F-04)
        rows = np.flatnonzero((good.leader_epoch >= 0) & (good.last >= self._log_start))
        if not len(rows):
            return []
        epochs = good.leader_epoch[rows]
        borders = [0, *(np.flatnonzero(epochs[1:] != epochs[:-1]) + 1).tolist(), len(epochs)]
        found = []
        for i, end in itertools.pairwise(borders):
            row = int(rows[i])
            place = int(good.position[row]), int(good.size[row]), int(good.base[row]), int(good.last[row])
            run = Run(int(epochs[i]), end - i, *place)
            if self._held is not None and self._held[1].epoch == run.epoch:
                held_file, held = self._held
                self._held = held_file, held._replace(batches=held.batches + run.batches)
                continue
            found += self.finish(following=run.epoch)
            self._held = file, run
        return found

    def finish(self, following: int | None = None) -> list[tuple[str, Odd]]:
        """Judge what was held back. following: the epoch behind it, None at the end of the log."""
        if self._held is None:
            return []
        (file, run), self._held = self._held, None
        what = self._judge(run, following)
        if what is None:
            self.newest = run.epoch
            return []
        is_alone = run.batches == 1 and following is not None and self.newest in (-1, following)
        offsets = run.base, run.last
        odd = Odd(
            run.position, run.size, Kind.LEADER_EPOCHS, what, offsets, restored_epoch=following if is_alone else None
        )
        return [(file, odd)]

    def _judge(self, run: Run, following: int | None) -> str | None:
        """What is wrong with a run of batches; following: the epoch behind it.

        Epochs rise through a log, so what goes down is wrong in itself; otherwise the checkpoint is, and not the log.
        """
        offset = max(run.base, self._log_start)
        if run.epoch < self.newest:
            return f"leader epoch {run.epoch} behind batches of epoch {self.newest}"
        if following is not None and following < run.epoch:
            return f"leader epoch {run.epoch}, and {following} behind it"
        if self._entries is not None and self._epoch_at(offset) != run.epoch:
            self.missing.setdefault(run.epoch, offset)
        return None

    def _epoch_at(self, offset: int) -> int | None:
        """The epoch of an offset by the checkpoint."""
        i = bisect_right(self._starts, offset)
        return self._entries[i - 1].leader_epoch if i and self._entries else None
