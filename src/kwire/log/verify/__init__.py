"""Verify log directories: find damaged batches, indexes, snapshots and checkpoints."""

from kwire.log.verify.assessment import PartitionContext
from kwire.log.verify.directory import DirectoryFindings, context_of, verify_directory, verify_log
from kwire.log.verify.findings import PartitionFindings, SegmentFindings
from kwire.log.verify.partition import verify_partition

__all__ = [
    "DirectoryFindings",
    "PartitionContext",
    "PartitionFindings",
    "SegmentFindings",
    "context_of",
    "verify_directory",
    "verify_log",
    "verify_partition",
]
