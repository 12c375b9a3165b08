"""Findings about the batches of one log, whether they are in files or were fetched from a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.errors import counted
from kwire.log.files.damage import Damage, Kind
from kwire.maintenance.verify.assessment import Assessment, assess_suspect
from kwire.maintenance.verify.batches import DamagedRange, ScanResult, SuspectBatch, ValidBatches
from kwire.maintenance.verify.epochs import LeaderEpochCheck
from kwire.maintenance.verify.findings import PartitionFindings, SegmentFindings
from kwire.maintenance.verify.indexes import OffsetIndexCheck, TimeIndexCheck
from kwire.maintenance.verify.producers import Producers

if TYPE_CHECKING:
    from kwire.log.files.segment import Segment
    from kwire.log.reading.readable_log import ReadableLog

__all__ = ["BatchFindings"]

MAX_SUSPECT_FINDINGS = 100  # per partition and kind; further ones are counted in one finding


class BatchFindings:
    """Collects findings; producers and epoch_check are set before the first batch."""

    producers: Producers
    epoch_check: LeaderEpochCheck

    def __init__(self, log: ReadableLog) -> None:
        self.log = log
        self.damages: list[Damage] = []
        self.suspect_counts: dict[Kind, int] = {}
        self.has_inner_holes = False  # offsets missing inside a segment, as compaction leaves them
        self.findings = PartitionFindings(log=log, segments=[], damages=self.damages)

    def report(
        self,
        file: str,
        kind: Kind,
        assessment: Assessment,
        cause: str,
        *,
        position: int | None = None,
        size_bytes: int | None = None,
        offsets: tuple[int, int] | None = None,
    ) -> None:
        """Add a finding."""
        damage = assessment.damage(
            self.log, file, kind, cause, position=position, size_bytes=size_bytes, offsets=offsets
        )
        self.damages.append(damage)

    def report_range(self, file: str, damaged: DamagedRange | SuspectBatch, assessment: Assessment) -> None:
        """Add a finding about bytes of a segment."""
        place = {"position": damaged.position, "size_bytes": damaged.size_bytes}
        self.report(file, damaged.kind, assessment, damaged.cause, offsets=damaged.offsets, **place)

    def take(
        self,
        segment: Segment,
        findings: SegmentFindings,
        each: ScanResult,
        offset_index: OffsetIndexCheck | None,
        time_index: TimeIndexCheck | None,
    ) -> None:
        """Check a result of a scan; findings collects the damage of the segment, the indexes are checked if given."""
        if isinstance(each, ValidBatches):
            self.has_inner_holes |= each.has_holes(findings.end_offset)
            findings.end_offset = int(each.last[-1]) + 1
            findings.magic = int(each.magic[-1])
            findings.end = int(each.position[-1] + each.size[-1])
            if offset_index:
                offset_index.add(each)
            if time_index:
                time_index.add(each)
            for suspect in self.producers.add(each):
                self.report_suspect(segment.url, suspect)
            self.wrong_epochs(self.epoch_check.add(each, segment.url))
        elif isinstance(each, DamagedRange):
            findings.damaged.append(each)
            findings.end_offset = None
            if offset_index:
                offset_index.add_damage()
            if time_index:
                time_index.add_damage()
            if each.kind not in (Kind.CUT, Kind.ZEROS):
                self.producers.lost()
        else:
            self.report_suspect(segment.url, each)

    def wrong_epochs(self, suspects: list[tuple[str, SuspectBatch]]) -> None:
        """Report batches with a wrong leader epoch, which may be of the previous segment."""
        for file, suspect in suspects:
            self.report_suspect(file, suspect)
            if suspect.restored_epoch is not None:
                self.restore_epoch(file, suspect)

    def restore_epoch(self, file: str, suspect: SuspectBatch) -> None:
        """Handle a batch with a wrong leader epoch whose right one is known."""

    def report_suspect(self, file: str, suspect: SuspectBatch) -> None:
        """Add a finding about a readable batch that no broker would have written."""
        self.suspect_counts[suspect.kind] = self.suspect_counts.get(suspect.kind, 0) + 1
        if self.suspect_counts[suspect.kind] <= MAX_SUSPECT_FINDINGS:
            place = {"position": suspect.position, "size_bytes": suspect.size_bytes}
            self.report(
                file, suspect.kind, assess_suspect(suspect.kind), suspect.cause, offsets=suspect.offsets, **place
            )

    def report_further_suspects(self) -> None:
        """Add one finding for the suspect batches of each kind above the limit."""
        for kind, n in self.suspect_counts.items():
            if n > MAX_SUSPECT_FINDINGS:
                what = f"{counted(n - MAX_SUSPECT_FINDINGS, 'more batch', 'more batches')} of this kind"
                self.report(self.log.url, kind, assess_suspect(kind), what)
