"""Verify log directories: find damaged batches, indexes, snapshots and checkpoints.

Names import their modules on first access: reading a log needs the context of a partition, but not numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kwire.extras import needing

if TYPE_CHECKING:
    from kwire.log.verify.assessment import PartitionContext as PartitionContext
    from kwire.log.verify.batches import DamagedRange as DamagedRange
    from kwire.log.verify.batches import SuspectBatch as SuspectBatch
    from kwire.log.verify.directory import DirectoryFindings as DirectoryFindings
    from kwire.log.verify.directory import verify_directory as verify_directory
    from kwire.log.verify.directory import verify_log as verify_log
    from kwire.log.verify.findings import PartitionFindings as PartitionFindings
    from kwire.log.verify.findings import SegmentFindings as SegmentFindings
    from kwire.log.verify.partition import verify_partition as verify_partition
    from kwire.log.verify.root_files import context_of as context_of

_HOMES = {
    "DamagedRange": "kwire.log.verify.batches",
    "DirectoryFindings": "kwire.log.verify.directory",
    "PartitionContext": "kwire.log.verify.assessment",
    "PartitionFindings": "kwire.log.verify.findings",
    "SegmentFindings": "kwire.log.verify.findings",
    "SuspectBatch": "kwire.log.verify.batches",
    "context_of": "kwire.log.verify.root_files",
    "verify_directory": "kwire.log.verify.directory",
    "verify_log": "kwire.log.verify.directory",
    "verify_partition": "kwire.log.verify.partition",
}

__all__ = [
    "DamagedRange",
    "DirectoryFindings",
    "PartitionContext",
    "PartitionFindings",
    "SegmentFindings",
    "SuspectBatch",
    "context_of",
    "verify_directory",
    "verify_log",
    "verify_partition",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("verification of logs"):
        module = import_module(_HOMES[name])
    value = globals()[name] = getattr(module, name)
    return value
