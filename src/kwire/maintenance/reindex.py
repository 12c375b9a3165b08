"""The files beside a `.log`, built again from its batches: indexes, producer snapshots, leader epochs.

The batches are the truth; whatever else a partition's directory says about them can be counted again. Producer state
starts from the newest snapshot that stays, or from nothing at the start of the log.
Source: rules G-05, G-08, G-13, F-40 to F-43; Kafka's LogSegment.recover, ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kwire.errors import BrokerError, LogError, Malformed
from kwire.log.file_names import segment_file
from kwire.log.leader_epochs import LeaderEpochs
from kwire.log.log_config import LogConfig
from kwire.log.producer_state import ProducerStates
from kwire.log.recovery import OffsetOverflow, checked_batches, learn, recover_segment
from kwire.log.segment_writer import SegmentWriter
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
    """Build files of the partition in `directory` again, whose `.log` files are whole.

    bases: of all its segments, rising. indexes: of those whose .index, .timeindex and .txnindex are to be built.
    snapshots: bases at which a producer snapshot is to be written. leader_epochs: the checkpoint too.
    Raises LogError where a file cannot be read or written, or a batch turns out to be bad.
    """
    _Rebuild(file_system, directory, config or LogConfig()).run(bases, indexes, snapshots, leader_epochs)


class _Rebuild:
    def __init__(self, file_system: FileSystem, directory: str, config: LogConfig) -> None:
        self.file_system, self.directory, self.config = file_system, directory, config
        self.producers = self._nobody()

    def _nobody(self) -> ProducerStates:
        # nobody expires: who was known when a snapshot was taken is known in the one that takes its place
        return ProducerStates(self.directory, expiration_ms=1 << 62)

    def run(self, bases: Sequence[int], indexes: Collection[int], snapshots: Collection[int], epochs: bool) -> None:
        """All of it, segment by segment."""
        learned = LeaderEpochs(self.file_system, self.directory) if epochs else None
        if learned is not None:
            learned.discard()
        wanted = [base for base in bases if base in indexes or base in snapshots]
        first = self._start(bases, snapshots, wanted[0]) if wanted else None
        last = wanted[-1] if wanted else -1
        for base in bases:
            if learned is not None:
                self._learn_epochs(base, learned)
            if first is None or not first <= base <= last:
                continue
            if base in snapshots:
                self._take_snapshot(base)
            if base in indexes:
                self._indexes(base)
            elif base < last:
                self._follow(base)
        if learned is not None:
            learned.flush()

    def _path(self, base: int, kind: str) -> str:
        return f"{self.directory}/{segment_file(base, kind)}"

    def _start(self, bases: Sequence[int], snapshots: Collection[int], first: int) -> int:
        """The base at or below first from which producer state can be followed; loads it."""
        for base in reversed([base for base in bases if base <= first and base not in snapshots]):
            path = self._path(base, "snapshot")
            if self.file_system.exists(path):
                try:
                    self.producers.load(self.file_system.read_all(path), now_ms=0)
                except Malformed:
                    self.producers = self._nobody()
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
                what = "its offsets are too far from its base offset for an index; a starting broker splits the segment"
                raise LogError(what, segment.log.url) from None
            if cut:
                what = f"a batch at byte {size - cut} cannot be indexed: its offsets do not fit the segment"
                raise LogError(what, segment.log.url)
            segment.sync()
            segment.set_modified(modified_ms)
        finally:
            segment.close_files()

    def _recover(self, segment: SegmentWriter) -> int:
        try:
            return recover_segment(segment, self.producers, None)
        except BrokerError:  # a marker was lost, so the producer's next batches make no sense to its state
            self.producers = self._nobody()
            return recover_segment(segment, self.producers, None)

    def _follow(self, base: int) -> None:
        """Producer state goes on through a segment whose files stay."""
        with self.file_system.open(self._path(base, "log")) as log:
            for batch in checked_batches(log):
                try:
                    learn(self.producers, batch)
                except BrokerError:
                    self.producers = self._nobody()
                self.producers.end_offset = batch.last_offset + 1

    def _learn_epochs(self, base: int, epochs: LeaderEpochs) -> None:
        with self.file_system.open(self._path(base, "log")) as log:
            for header in HeaderWalk(log):
                if header.leader_epoch > (-1 if epochs.latest is None else epochs.latest):
                    epochs.assign(header.leader_epoch, header.stored_offset)
