"""Verify log directories: find damaged batches, indexes, snapshots and checkpoints."""

from kwire.log.verify.directory import DirectoryFindings, circumstances_of, verify_directory, verify_log
from kwire.log.verify.findings import PartitionFindings, SegmentFindings
from kwire.log.verify.judgement import Circumstances
from kwire.log.verify.partition import verify_partition

__all__ = [
    "Circumstances",
    "DirectoryFindings",
    "PartitionFindings",
    "SegmentFindings",
    "circumstances_of",
    "verify_directory",
    "verify_log",
    "verify_partition",
]
