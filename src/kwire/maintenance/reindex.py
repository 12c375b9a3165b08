"""Rebuild of indexes, producer snapshots and leader epochs from the batches of a log.

Producer state starts from the newest snapshot that is kept, or empty at the start of the log.
Source: rules G-05, G-08, G-13, F-40 to F-43; Kafka's LogSegment.recover, ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kwire.errors import BrokerError, LogError, Malformed
from kwire.log.files.file_names import segment_file
from kwire.log.files.leader_epochs import LeaderEpochs
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.producer_state import ProducerStates
from kwire.log.writing.recovery import OffsetOverflow, apply_batch, checked_batches, recover_segment
from kwire.log.writing.segment_writer import SegmentWriter
from kwire.storage.file_system import FileSystem
from kwire.storage.header_walk import HeaderWalk

__all__ = ["rebuild_indexes"]


def rebuild_indexes(
    file_system: FileSystem,
    directory: str,
    bases: Sequence[int],
    *,
    indexes: Collection[int],
    snapshots: Collection[int],
    leader_epochs: bool,
    config: LogConfig | None = None,
) -> None:
    """Rebuild files of the partition in `directory`, whose `.log` files are valid.

    bases: base offsets of all segments, increasing. indexes: of the segments whose .index, .timeindex and .txnindex are
    rebuilt. snapshots: base offsets at which to write a producer snapshot. leader_epochs: rebuild the checkpoint too.
    Raises LogError if a file cannot be read or written, or a batch is invalid.
    """
    _Rebuild(file_system, directory, config or LogConfig()).run(bases, indexes, snapshots, leader_epochs)


class _Rebuild:
    def __init__(self, file_system: FileSystem, directory: str, config: LogConfig) -> None:
        self.file_system, self.directory, self.config = file_system, directory, config
        self.producers = self._no_producers()

    def _no_producers(self) -> ProducerStates:
        # no expiration: a rebuilt snapshot has all producers that the original had
        return ProducerStates(self.directory, expiration_ms=1 << 62)

    def run(self, bases: Sequence[int], indexes: Collection[int], snapshots: Collection[int], epochs: bool) -> None:
        """Rebuild everything, segment by segment."""
        epochs_found = LeaderEpochs(self.file_system, self.directory) if epochs else None
        if epochs_found is not None:
            epochs_found.discard()
        wanted = [base for base in bases if base in indexes or base in snapshots]
        first = self._start(bases, snapshots, wanted[0]) if wanted else None
        last = wanted[-1] if wanted else -1
        for base in bases:
            if epochs_found is not None:
                self._assign_epochs(base, epochs_found)
            if first is None or not first <= base <= last:
                continue
            if base in snapshots:
                self._take_snapshot(base)
            if base in indexes:
                self._indexes(base)
            elif base < last:
                self._follow(base)
        if epochs_found is not None:
            epochs_found.flush()

    def _path(self, base: int, kind: str) -> str:
        return f"{self.directory}/{segment_file(base, kind)}"

    def _start(self, bases: Sequence[int], snapshots: Collection[int], first: int) -> int:
        """Load the newest usable snapshot at or below `first`; returns its base offset."""
        for base in reversed([base for base in bases if base <= first and base not in snapshots]):
            path = self._path(base, "snapshot")
            if self.file_system.exists(path):
                try:
                    self.producers.load(self.file_system.read_all(path), now_ms=0)
                except Malformed:
                    self.producers = self._no_producers()
                    continue
                return base
        return bases[0]

    def _take_snapshot(self, base: int) -> None:
        self.file_system.write_atomically(self._path(base, "snapshot"), self.producers.snapshot())

    def _indexes(self, base: int) -> None:
        for kind in ("index", "timeindex", "txnindex"):
            self.file_system.remove(self._path(base, kind))
        segment = SegmentWriter(self.file_system, self.directory, base, self.config, now_ms=0)
        try:
            modified_ms = segment.log.modified_ms()
            size = segment.log.end
            try:
                cut = self._recover(segment)
            except OffsetOverflow:
                what = "offsets are too far from the base offset for an index; a starting broker splits the segment"
                raise LogError(what, segment.log.url) from None
            if cut:
                what = f"batch at byte {size - cut} cannot be indexed: its offsets are outside the segment"
                raise LogError(what, segment.log.url)
            segment.sync()
            segment.set_modified(modified_ms)
        finally:
            segment.close_files()

    def _recover(self, segment: SegmentWriter) -> int:
        try:
            return recover_segment(segment, self.producers, None)
        except BrokerError:  # a marker was lost, so the next batches contradict the producer state
            self.producers = self._no_producers()
            return recover_segment(segment, self.producers, None)

    def _follow(self, base: int) -> None:
        """Update the producer state with a segment whose files are kept."""
        with self.file_system.open(self._path(base, "log")) as log:
            for batch in checked_batches(log):
                try:
                    apply_batch(self.producers, batch)
                except BrokerError:
                    self.producers = self._no_producers()

    def _assign_epochs(self, base: int, epochs: LeaderEpochs) -> None:
        with self.file_system.open(self._path(base, "log")) as log:
            for header in HeaderWalk(log):
                if header.leader_epoch > (-1 if epochs.latest is None else epochs.latest):
                    epochs.assign(header.leader_epoch, header.stored_offset)
