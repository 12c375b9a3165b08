"""Check the leader epochs of batches, which their checksums do not cover, against leader-epoch-checkpoint.

Source: rules F-04, F-05, G-12; Kafka's LeaderEpochFileCache.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kwire.log.files.damage import Kind
from kwire.maintenance.verify.batches import SuspectBatch, ValidBatches
from kwire.storage.checkpoints import LeaderEpoch

__all__ = ["LeaderEpochCheck"]


class Run(NamedTuple):
    """Consecutive batches with the same epoch: their number, and the position and offsets of the first."""

    epoch: int
    batches: int
    position: int
    size: int
    base: int
    last: int


class LeaderEpochCheck:
    """entries: of the checkpoint; None if it is missing or unreadable: then only the order is checked.

    newest: the largest epoch seen, initially -1. missing: epoch -> first offset of batches with another epoch in the
    checkpoint.
    """

    def __init__(self, entries: Sequence[LeaderEpoch] | None, log_start_offset: int) -> None:
        self._entries, self._log_start = entries, log_start_offset
        self._starts = [entry.start_offset for entry in entries or ()]
        self._held: tuple[str, Run] | None = None  # the last run, until the next one is known
        self.newest = -1
        self.missing: dict[int, int] = {}

    def add(self, batches: ValidBatches, file: str) -> list[tuple[str, SuspectBatch]]:
        """Track these batches; return those with an impossible epoch, with their file.

        A batch is reported once the next one is known, so they may belong to the previous file.
        """
        # the checkpoint has no entries below the log start offset (F-04)
        rows = np.flatnonzero((batches.leader_epoch >= 0) & (batches.last >= self._log_start))
        if not len(rows):
            return []
        epochs = batches.leader_epoch[rows]
        borders = [0, *(np.flatnonzero(epochs[1:] != epochs[:-1]) + 1).tolist(), len(epochs)]
        suspects = []
        for i, end in itertools.pairwise(borders):
            row = int(rows[i])
            place = int(batches.position[row]), int(batches.size[row]), int(batches.base[row]), int(batches.last[row])
            run = Run(int(epochs[i]), end - i, *place)
            if self._held is not None and self._held[1].epoch == run.epoch:
                held_file, held = self._held
                self._held = held_file, held._replace(batches=held.batches + run.batches)
                continue
            suspects += self.finish(following=run.epoch)
            self._held = file, run
        return suspects

    def finish(self, following: int | None = None) -> list[tuple[str, SuspectBatch]]:
        """Check the last run. following: the next epoch, None at the end of the log."""
        if self._held is None:
            return []
        (file, run), self._held = self._held, None
        what = self._fault_of(run, following)
        if what is None:
            self.newest = run.epoch
            return []
        is_alone = run.batches == 1 and following is not None and self.newest in (-1, following)
        offsets = run.base, run.last
        suspect = SuspectBatch(
            run.position, run.size, Kind.LEADER_EPOCHS, what, offsets, restored_epoch=following if is_alone else None
        )
        return [(file, suspect)]

    def _fault_of(self, run: Run, following: int | None) -> str | None:
        """Return the fault of a run of batches. following: the next epoch.

        Epochs never decrease in a log, so a lower one is wrong; in other cases the checkpoint is wrong.
        """
        offset = max(run.base, self._log_start)
        if run.epoch < self.newest:
            return f"leader epoch {run.epoch} after batches of epoch {self.newest}"
        if following is not None and following < run.epoch:
            return f"leader epoch {run.epoch}, followed by {following}"
        if self._entries is not None and self._epoch_at(offset) != run.epoch:
            self.missing.setdefault(run.epoch, offset)
        return None

    def _epoch_at(self, offset: int) -> int | None:
        """Return the epoch of an offset by the checkpoint."""
        i = bisect_right(self._starts, offset)
        return self._entries[i - 1].leader_epoch if i and self._entries else None
