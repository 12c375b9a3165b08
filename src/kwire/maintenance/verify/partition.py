"""Verify one partition: batches, indexes, snapshots and checkpoints, against each other.

Each segment is read once; files that refer to its batches are checked in the same pass.
Source: rules F-04 to F-44, F-64, G-02 to G-13.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from kwire.errors import LogError, Malformed
from kwire.identifiers import MAX_OFFSET
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.files.damage import Kind, Severity
from kwire.log.files.file_names import SEGMENT_FILE, segment_file
from kwire.log.files.producer_snapshot import parse_producer_snapshot
from kwire.log.files.segment import Segment
from kwire.log.files.transaction_index import ENTRY as TRANSACTION_ENTRY
from kwire.log.files.transaction_index import TransactionIndexEntry, parse_transaction_index
from kwire.maintenance.verify.assessment import (
    EPOCHS_CORRUPT,
    EPOCHS_WRONG,
    LEFTOVER,
    METADATA_CORRUPT,
    MISSING,
    NOT_A_NUMBER,
    REBUILD,
    SHORT_NUMBER,
    SNAPSHOT_CORRUPT,
    SNAPSHOT_MISSING,
    SNAPSHOT_WRONG,
    UNREACHABLE_END,
    Assessment,
    PartitionContext,
    assess_batch,
    assess_index,
    assess_unreadable,
)
from kwire.maintenance.verify.batch_findings import BatchFindings
from kwire.maintenance.verify.batches import DamagedRange, SegmentScan, SuspectBatch
from kwire.maintenance.verify.epochs import LeaderEpochCheck
from kwire.maintenance.verify.findings import PartitionFindings, SegmentFindings
from kwire.maintenance.verify.indexes import IndexFault, OffsetIndexCheck, TimeIndexCheck
from kwire.maintenance.verify.layout import Layout, lay_out
from kwire.maintenance.verify.placement import gap_findings, layout_findings
from kwire.maintenance.verify.producers import Producers
from kwire.maintenance.verify.root_files import claims_above
from kwire.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    LeaderEpoch,
    parse_leader_epochs,
    parse_partition_metadata,
)

if TYPE_CHECKING:
    from kwire.log.reading.partition_log import PartitionLog

__all__ = ["verify_partition"]

T = TypeVar("T")

SEGMENT_ENDINGS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


def verify_partition(
    log: PartitionLog, context: PartitionContext, *, advance: Callable[[int], None] | None = None
) -> PartitionFindings:
    """Verify one partition's directory. advance: called with bytes of `.log` files read.

    Damaged bytes do not raise; an unreadable file is a finding.
    """
    return _Verifier(log, context, advance).run()


class _Verifier(BatchFindings):
    log: PartitionLog

    def __init__(self, log: PartitionLog, context: PartitionContext, advance: Callable[[int], None] | None) -> None:
        super().__init__(log)
        self.context, self.advance = context, advance

    def run(self) -> PartitionFindings:
        try:
            self.log.segments  # noqa: B018 - list the directory
        except LogError as error:
            self.report(self.log.url, Kind.UNREADABLE, assess_unreadable(error), error.what)
            return self.findings
        epochs = self._leader_epochs()
        segments = self._layout(epochs).segments
        self._partition_metadata()
        base = segments[0].base_offset if segments else 0
        self.producers = Producers(base, is_compacted=self.context.is_compacted)
        self.epoch_check = LeaderEpochCheck(epochs, self.log.log_start_offset)
        for i, segment in enumerate(segments):
            if i:
                self._snapshot(segment.base_offset)
            self._segment(segment)
        alone = self.log.only_base_offset is not None  # a single segment, whose neighbours are unknown
        if segments:
            self.findings.log_end_offset = self.findings.segments[-1].next_offset
            if not alone:
                self._snapshots_otherwise(segments)
                self._log_end(epochs)
                self._gaps()
                self._unreachable_end()
        else:
            self.findings.log_end_offset = self.log.log_start_offset
            self._log_end(epochs)
        self.wrong_epochs(self.epoch_check.finish())
        self._epochs_otherwise()
        self._other_files()
        self.report_further_suspects()
        self.findings.is_compacted = self.context.is_compacted or self.producers.has_holes
        self.damages.sort(key=lambda each: (each.file, each.position or 0))
        return self.findings

    # ---- files

    def _parse(self, name: str, parse: Callable[[bytes], T], kind: Kind, assessment: Assessment) -> T | None:
        """Parse a small file of the partition; report it and return None if that fails."""
        try:
            return parse(self.log.read_file(name))
        except LogError as error:
            self.report(self.log.url_of(name), Kind.UNREADABLE, assess_unreadable(error), error.what)
        except Malformed as error:
            position = None if kind is Kind.METADATA else error.position  # partition.metadata is replaced as a whole
            self.report(self.log.url_of(name), kind, assessment, error.what, position=position)
        return None

    def _layout(self, epochs: list[LeaderEpoch] | None) -> Layout:
        """Assign files to segments, by name if they cannot be read."""
        start = min((entry.start_offset for entry in epochs or ()), default=MAX_OFFSET)
        known = start, self._known_end(0)
        try:
            self.findings.layout = lay_out(self.log, known=known, is_compacted=self._is_compacted)
        except LogError:
            self.findings.layout = Layout(
                segments=self.log.segments
            )  # the scan of the segment reports unreadable files
        self.damages += layout_findings(self.log, self.findings.layout)
        return self.findings.layout

    def _is_compacted(self) -> bool | None:
        return True if self.context.is_compacted else self.context.is_compacted_topic

    def _gaps(self) -> None:
        """Report offsets that are in no segment."""
        segments = self.findings.segments
        borders = itertools.pairwise(segments)
        if all(before.next_offset >= after.segment.base_offset for before, after in borders):
            return
        is_compacted = self._is_compacted()
        if is_compacted:
            return
        may_compact = None if self.has_inner_holes else is_compacted
        self.damages += gap_findings(self.log, self.findings.layout, segments, may_compact=may_compact)

    # ---- segments

    def _segment(self, segment: Segment) -> None:
        findings = SegmentFindings(segment=segment, size_bytes=segment.size_bytes, next_offset=segment.base_offset)
        findings.magic = self.findings.segments[-1].magic if self.findings.segments else findings.magic
        self.findings.segments.append(findings)
        with ExitStack() as files:
            offset_index = time_index = None
            try:
                if "index" in segment.has and self._has_own_indexes(segment):
                    file = files.enter_context(self.log.store.open(segment.path_of("index")))
                    offset_index = OffsetIndexCheck(file, segment.base_offset)
                if "timeindex" in segment.has and self._has_own_indexes(segment):
                    file = files.enter_context(self.log.store.open(segment.path_of("timeindex")))
                    time_index = TimeIndexCheck(file, segment.base_offset)
            except LogError as error:
                self.report(error.file or segment.url, Kind.UNREADABLE, assess_unreadable(error), error.what)
            self.producers.take_aborted()
            scan = SegmentScan(segment, advance=self.advance)
            try:
                for each in scan:
                    self.take(segment, findings, each, offset_index, time_index)
            except LogError as error:
                self.report(error.file or segment.url, Kind.UNREADABLE, assess_unreadable(error), error.what)
                self.producers.lost()
                findings.is_unreadable = True
            findings.next_offset = scan.next_offset
            findings.size_bytes = max(scan.position, findings.end)
            self._fill(findings)
            self._report_damaged(segment, findings)
            if findings.is_unreadable or not self._has_own_indexes(segment):
                return
            self._offset_index(segment, findings, offset_index)
            self._time_index(segment, time_index)
        self._transaction_index(segment, findings)

    def restore_epoch(self, file: str, suspect: SuspectBatch) -> None:
        """Keep a batch whose leader epoch repair can restore."""
        next(each for each in self.findings.segments if each.segment.url == file).epochs.append(suspect)

    def _report_damaged(self, segment: Segment, findings: SegmentFindings) -> None:
        """Report the damage of a segment; a tail of the log includes the records that other files imply after it."""
        if not findings.damaged:
            return
        if segment.is_active and findings.damaged[-1].is_tail:
            known_end = self._known_end(findings.next_offset)
            if known_end > findings.next_offset:
                last = findings.damaged[-1]
                first = last.offsets[0] if last.offsets else findings.next_offset
                end = max(known_end - 1, last.offsets[1] if last.offsets else 0)
                findings.damaged[-1] = replace(last, offsets=(first, end))
        end_of_log = self.log.log_end_offset if self._recovers(segment) else 0
        for damaged in _runs(findings.damaged):
            known_lost = damaged.offsets is not None and self._known_end(findings.next_offset) > damaged.offsets[0]
            offsets_after = max(end_of_log - damaged.offsets[1] - 1, 0) if damaged.offsets else 0
            assessment = assess_batch(
                damaged.kind,
                recovered=self._recovers(segment),
                is_active=segment.is_active,
                is_tail=damaged.is_tail,
                offsets_after=offsets_after,
                known_lost=known_lost,
            )
            self.report_range(segment.url, damaged, assessment)

    def _fill(self, findings: SegmentFindings) -> None:
        """Search copies and loose files for the batches lost to damage."""
        for damaged in findings.damaged:
            if damaged.offsets is None or damaged.restored_offset is not None:
                continue
            for spare in self.findings.layout.spares:
                try:
                    pieces = spare.pieces(*damaged.offsets)
                except LogError:
                    continue
                if pieces:
                    findings.fills[damaged.position] = pieces
                    findings.next_offset = max(findings.next_offset, pieces[-1].offsets[1] + 1)
                    break

    def _recovers(self, segment: Segment) -> bool | None:
        """Return whether a starting broker checks every batch of a segment; without an offset index it does (G-05)."""
        is_new = "index" not in segment.has and self._has_own_indexes(segment)
        return is_new or self.context.recovers(segment)

    def _has_own_indexes(self, segment: Segment) -> bool:
        """Return whether a segment's indexes belong to it: indexes of a misnamed segment are ignored."""
        return segment.base_offset not in self.findings.layout.misnamed

    # ---- indexes

    def _index_fault(self, segment: Segment, kind: Kind, suffix: str, fault: IndexFault | None) -> None:
        """Report the fault of an index; None: the file is missing."""
        assessment = assess_index(
            kind,
            recovered=self._recovers(segment),
            is_missing=fault is None,
            is_tail=fault is not None and fault.is_tail,
            is_active=segment.is_active,
        )
        if fault is not None and fault.is_slow:
            assessment = Assessment(
                Severity.RECOVERS, "brokers read its complete entries; lookups take longer", REBUILD
            )
        if fault is None:
            is_new = self.context.is_clean is False or segment.size_bytes == 0
            if segment.is_active and is_new and kind in (Kind.OFFSET_INDEX, Kind.TIME_INDEX):
                return  # a broker creates the indexes of a new segment with their first entries
            file = self.log.url_of(segment_file(segment.base_offset, suffix))
            self.report(file, kind, assessment, "the file is missing")
            return
        if assessment.severity is Severity.NOTE:
            kind = Kind.UNCLEAN_STOP
            if self.log.topic == METADATA_TOPIC:
                return  # brokers never close it
        file = self.log.store.url_of(segment.path_of(suffix))
        self.report(file, kind, assessment, fault.cause, position=fault.position, size_bytes=fault.size_bytes)

    def _offset_index(self, segment: Segment, findings: SegmentFindings, check: OffsetIndexCheck | None) -> None:
        if "index" not in segment.has:
            self._index_fault(segment, Kind.OFFSET_INDEX, "index", None)
        for fault in check.finish(findings.size_bytes) if check else ():
            self._index_fault(segment, Kind.OFFSET_INDEX, "index", fault)

    def _time_index(self, segment: Segment, check: TimeIndexCheck | None) -> None:
        if "timeindex" not in segment.has:
            self._index_fault(segment, Kind.TIME_INDEX, "timeindex", None)
        is_closed = not segment.is_active or self.context.is_clean is True
        for fault in check.finish(is_closed=is_closed) if check else ():
            self._index_fault(segment, Kind.TIME_INDEX, "timeindex", fault)

    def _transaction_index(self, segment: Segment, findings: SegmentFindings) -> None:
        """Check the file against the aborted transactions found in the log."""
        aborted = self.producers.take_aborted()
        if "txnindex" not in segment.has:
            if aborted:
                self._index_fault(segment, Kind.TRANSACTION_INDEX, "txnindex", None)
            return
        try:
            data = self.log.store.read_all(segment.path_of("txnindex"))
        except LogError as error:
            self.report(error.file or segment.url, Kind.UNREADABLE, assess_unreadable(error), error.what)
            return
        left = len(data) % TRANSACTION_ENTRY.size
        entries = parse_transaction_index(data[: len(data) - left], segment.base_offset, segment.next_base)
        if left:
            what = f"its size is not a multiple of {TRANSACTION_ENTRY.size}: {left} bytes remain"
            fault = IndexFault(len(data) - left, left, what)
            self._index_fault(segment, Kind.TRANSACTION_INDEX, "txnindex", fault)
        if entries is None:
            fault = IndexFault(0, len(data), "an entry has an unknown version, a negative number, or is out of order")
            self._index_fault(segment, Kind.TRANSACTION_INDEX, "txnindex", fault)
            return
        for row, what in self._wrong_aborts(entries, aborted):
            at = row * TRANSACTION_ENTRY.size
            assessment = assess_index(
                Kind.TRANSACTION_INDEX,
                recovered=self._recovers(segment),
                is_missing=True,  # brokers do not check complete entries
                is_tail=False,
                is_active=segment.is_active,
            )
            file = self.log.store.url_of(segment.path_of("txnindex"))
            size = TRANSACTION_ENTRY.size if row < len(entries) else 0
            self.report(file, Kind.TRANSACTION_INDEX, assessment, what, position=at, size_bytes=size)

    def _wrong_aborts(
        self, entries: list[TransactionIndexEntry], aborted: list[TransactionIndexEntry]
    ) -> list[tuple[int, str]]:
        """Return (row, cause) of each wrong entry; a missing entry has the row after the last one."""
        wrong = []
        by_marker = {entry.last_offset: entry for entry in aborted}
        listed = {entry.last_offset for entry in entries}
        for row, entry in enumerate(entries):
            log = by_marker.get(entry.last_offset)
            if log == entry:
                continue
            if log is not None:
                if self.producers.has_holes and log.producer_id == entry.producer_id:
                    continue  # compaction removed the first batches of this transaction or of another one
                wrong.append((row, f"entry: {_abort_text(entry)}; log: {_abort_text(log)}"))
            elif not self.producers.has_holes and self.producers.saw_all_since(entry.first_offset):
                wrong.append((row, f"entry without a transaction in the log: {_abort_text(entry)}"))
        wrong += [
            (len(entries), f"missing entry: {_abort_text(entry)}")
            for entry in aborted
            if entry.last_offset not in listed
        ]
        return wrong

    # ---- snapshots

    def _snapshot(self, offset: int) -> None:
        """Check the producer snapshot at an offset against the log before it."""
        name = self.log.snapshots.get(offset)
        if name is None:
            return
        producers = self._parse(name, parse_producer_snapshot, Kind.SNAPSHOT, SNAPSHOT_CORRUPT)
        for what in () if producers is None else self.producers.disagreements(producers, offset)[:5]:
            self.report(self.log.url_of(name), Kind.SNAPSHOT, SNAPSHOT_WRONG, what)

    def _snapshots_otherwise(self, segments: list[Segment]) -> None:
        """Check snapshots that are not at a segment's start, and report missing ones."""
        starts = {segment.base_offset for segment in segments[1:]}
        end = self.findings.log_end_offset
        for offset, name in self.log.snapshots.items():
            if offset == end and offset not in starts:
                self._snapshot(offset)
            elif offset not in starts:
                self._parse(name, parse_producer_snapshot, Kind.SNAPSHOT, SNAPSHOT_CORRUPT)
        has = sorted(self.log.snapshots)
        if self.context.is_clean is False and "index" not in segments[-1].has:
            starts.discard(segments[-1].base_offset)  # a running broker is about to create it
        for start in sorted(starts):
            if has and start not in self.log.snapshots and has[0] < start:
                file = self.log.url_of(segment_file(start, "snapshot"))
                self.report(file, Kind.SNAPSHOT, SNAPSHOT_MISSING, "the file is missing")

    # ---- checkpoints and metadata

    def _leader_epochs(self) -> list[LeaderEpoch] | None:
        if not self.log.has_file(LEADER_EPOCHS):
            return None
        return self._parse(LEADER_EPOCHS, parse_leader_epochs, Kind.LEADER_EPOCHS, EPOCHS_CORRUPT)

    def _epochs_otherwise(self) -> None:
        url = self.log.url_of(LEADER_EPOCHS)
        for epoch, offset in sorted(self.epoch_check.missing.items()):
            what = f"the batch at offset {offset} has leader epoch {epoch}, the checkpoint has another"
            self.report(url, Kind.LEADER_EPOCHS, EPOCHS_WRONG, what)

    def _partition_metadata(self) -> None:
        if self.log.has_file(PARTITION_METADATA):
            self._parse(PARTITION_METADATA, parse_partition_metadata, Kind.METADATA, METADATA_CORRUPT)

    def _known_end(self, log_end: int) -> int:
        """Return the highest log end offset that other files imply."""
        if self.log.only_base_offset is not None:
            return log_end
        return max(log_end, self.log.high_watermark or 0, self.context.recovery_point or 0, *self.log.snapshots)

    def _log_end(self, epochs: list[LeaderEpoch] | None) -> None:
        """Report files that imply records above the log end offset, or a log start offset above it (G-09)."""
        end = self.findings.log_end_offset
        last = self.findings.segments[-1] if self.findings.segments else None
        if last is not None:
            start = self.log.log_start_offset
            if start > max(end, self.findings.segments[0].segment.base_offset) and not last.is_unreadable:
                what = f"the log start checkpoint has {start}, the log ends at {end}"
                effect = "a starting broker deletes every segment and continues at the log start"
                assessment = Assessment(Severity.LOSES_RECORDS, effect, "correct log-start-offset-checkpoint")
                self.report(last.segment.url, Kind.MISSING_RECORDS, assessment, what, offsets=(end, start - 1))
                return
            if last.is_unreadable or (last.damaged and last.damaged[-1].is_tail):
                return
        claims = claims_above(end, self.log, recovery_point=self.context.recovery_point, epochs=epochs or ())
        if not claims:
            return
        where = (
            "the log ends at offset" if last is not None else "the directory has no .log file, the log ends at offset"
        )
        self.report(
            self.log.url if last is None else last.segment.url,
            Kind.MISSING_RECORDS,
            MISSING,
            f"{where} {end}; {', '.join(each.text for each in claims)}",
            position=None if last is None else last.size_bytes,
            size_bytes=None if last is None else 0,
            offsets=(end, max(each.offset for each in claims) - 1),
        )

    def _unreachable_end(self) -> None:
        """Report a log that ends after offsets without a batch: a fetch there returns nothing, whatever is waited."""
        end, last = self.findings.log_end_offset, self.findings.segments[-1]
        held = [each for each in self.findings.segments if each.end or each.damaged or each.is_unreadable]
        if held and (held[-1].damaged or held[-1].is_unreadable):
            return  # it is not known which offsets follow
        first = max(self.log.log_start_offset, held[-1].next_offset if held else 0)
        if first < end:
            what = f"the log ends at offset {end}, and no batch has offsets {first} to {end - 1}"
            self.report(last.segment.url, Kind.OFFSETS, UNREACHABLE_END, what, offsets=(first, end - 1))

    def _other_files(self) -> None:
        layout = self.findings.layout
        for each in self.log.ignored:
            match = SEGMENT_FILE.fullmatch(each.name)
            if match is not None and int(match["base"]) in layout.misnamed:
                continue  # an index of a misnamed segment, which is reported itself
            url = self.log.url_of(each.name)
            self.report(url, Kind.LEFTOVER, LEFTOVER, each.reason)
        reported = {each.name for each in layout.loose} | set(layout.misnamed.values())
        for name in self.log.file_names:
            if name in reported or not name.endswith(SEGMENT_ENDINGS) or SEGMENT_FILE.fullmatch(name) is not None:
                continue
            url = self.log.url_of(name)
            if name.partition(".")[0].isdecimal():
                self.report(url, Kind.LEFTOVER, SHORT_NUMBER, "the offset in its name does not have 20 digits")
            else:
                self.report(url, Kind.LEFTOVER, NOT_A_NUMBER, "the name of a segment file without an offset")


def _runs(damaged: list[DamagedRange]) -> Iterator[DamagedRange]:
    """Merge consecutive batches with wrong offsets into one finding each."""
    held: DamagedRange | None = None
    count = 1
    for each in [*damaged, None]:
        together = (
            held is not None
            and each is not None
            and held.kind is each.kind is Kind.OFFSETS
            and held.restored_offset is None
            and each.restored_offset is None
            and held.end == each.position
        )
        if held is not None and each is not None and together:
            count += 1
            spans = [span for span in (held.offsets, each.offsets) if span is not None]
            offsets = (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None
            size = held.size_bytes + each.size_bytes
            held = replace(held, size_bytes=size, offsets=offsets, is_tail=each.is_tail)
            continue
        if held is not None:
            yield held if count == 1 else replace(held, cause=f"{count} batches, the first: {held.cause}")
        held, count = each, 1


def _abort_text(entry: TransactionIndexEntry) -> str:
    return (
        f"producer {entry.producer_id} aborted offsets {entry.first_offset} to {entry.last_offset} "
        f"(last stable offset {entry.last_stable_offset})"
    )
