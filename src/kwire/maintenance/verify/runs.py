"""Verify logs whose files cannot be seen, such as the logs of a running cluster: their batches, and nothing else.

The same checks as of a segment: checksums, records that decode, offsets, timestamps, sequences of producers, control
records, the order of leader epochs. Source: the rules of `partition`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kwire.errors import BrokerError, ConnectionFailed, CorruptBatch, LogError
from kwire.log.files.damage import Kind, Severity
from kwire.maintenance.verify.assessment import Assessment, assess_batch
from kwire.maintenance.verify.batch_findings import BatchFindings
from kwire.maintenance.verify.batches import SegmentScan
from kwire.maintenance.verify.epochs import LeaderEpochCheck
from kwire.maintenance.verify.findings import DirectoryFindings, PartitionFindings, SegmentFindings
from kwire.maintenance.verify.producers import Producers

if TYPE_CHECKING:
    from kwire.log.reading.readable_log import ReadableLog

__all__ = ["UNCHECKED", "verify_runs"]

UNCHECKED = "the other replicas, indexes, producer snapshots, checkpoints, and records above the high watermark"
REMEDY = "verify the log directories of the replicas: another one may have the batch intact"
UNREAD = Assessment(Severity.STOPS_CONSUMERS, "consumers fail there with an error, or wait", REMEDY)


def verify_runs(logs: Sequence[ReadableLog], *, advance: Callable[[int], None] | None = None) -> DirectoryFindings:
    """Verify the batches of logs. advance: called with bytes read.

    Damaged bytes do not raise, nor does a partition that cannot be read to its end: both are findings.
    """
    findings = DirectoryFindings(unchecked=UNCHECKED)
    for log in logs:
        findings.partitions.append(RunVerifier(log).run(advance))
        findings.damages += findings.partitions[-1].damages
    findings.damages.sort(key=lambda each: (-each.severity, each.file, each.offsets or (0, 0)))
    return findings


class RunVerifier(BatchFindings):
    """Verifies one log."""

    def run(self, advance: Callable[[int], None] | None) -> PartitionFindings:
        """Read the log once and return the findings."""
        try:
            self._runs(advance)
        except CorruptBatch as error:
            self.report(self.log.url, Kind.HEADER, UNREAD, error.what)
        except (LogError, BrokerError, ConnectionFailed) as error:
            if self.log.is_deleted:
                return PartitionFindings(log=self.log, segments=[], damages=[])
            self.report(self.log.url, Kind.UNREADABLE, UNREAD, str(error))
        self.report_further_suspects()
        return self.findings

    def _runs(self, advance: Callable[[int], None] | None) -> None:
        pinned = self.log.pin()
        self.findings.log_end_offset = pinned.start_offset
        self.producers = Producers(pinned.start_offset, is_compacted=False)
        self.epoch_check = LeaderEpochCheck(None, pinned.start_offset)
        for run in pinned.runs:
            segment = SegmentFindings(segment=run.segment, size_bytes=0, next_offset=run.start_offset)
            scan = SegmentScan(run.segment, advance=advance)
            for each in scan:
                self.take(run.segment, segment, each, None, None)
            self.producers.take_aborted()
            for damaged in segment.damaged:
                assessment = assess_batch(
                    damaged.kind,
                    recovered=False,
                    is_active=False,
                    is_tail=damaged.is_tail,
                    offsets_after=0,
                    known_lost=False,
                )
                self.report_range(self.log.url, damaged, assessment)
            self.findings.fetched_bytes += run.segment.size_bytes
            self.findings.log_end_offset = scan.next_offset
        self.wrong_epochs(self.epoch_check.finish())

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
        """Add a finding. Positions in a Fetch response mean nothing afterwards, and repair needs the files."""
        hint = REMEDY if "kwire log repair" in assessment.hint else assessment.hint
        super().report(file, kind, assessment._replace(hint=hint), cause, size_bytes=size_bytes, offsets=offsets)
