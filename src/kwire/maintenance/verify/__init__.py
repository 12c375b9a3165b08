"""Verify logs: find damaged batches, indexes, snapshots and checkpoints.

Names import their modules on first access: plans of restores need what checkpoints say of logs, but not numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kwire.extras import needing

if TYPE_CHECKING:
    from kwire.maintenance.verify.assessment import PartitionContext as PartitionContext
    from kwire.maintenance.verify.batches import DamagedRange as DamagedRange
    from kwire.maintenance.verify.batches import SuspectBatch as SuspectBatch
    from kwire.maintenance.verify.directory import verify_directory as verify_directory
    from kwire.maintenance.verify.directory import verify_log as verify_log
    from kwire.maintenance.verify.findings import DirectoryFindings as DirectoryFindings
    from kwire.maintenance.verify.findings import PartitionFindings as PartitionFindings
    from kwire.maintenance.verify.findings import SegmentFindings as SegmentFindings
    from kwire.maintenance.verify.logs import verify_logs as verify_logs
    from kwire.maintenance.verify.partition import verify_partition as verify_partition
    from kwire.maintenance.verify.root_files import context_of as context_of

_HOMES = {
    "DamagedRange": "kwire.maintenance.verify.batches",
    "DirectoryFindings": "kwire.maintenance.verify.findings",
    "PartitionContext": "kwire.maintenance.verify.assessment",
    "PartitionFindings": "kwire.maintenance.verify.findings",
    "SegmentFindings": "kwire.maintenance.verify.findings",
    "SuspectBatch": "kwire.maintenance.verify.batches",
    "context_of": "kwire.maintenance.verify.root_files",
    "verify_directory": "kwire.maintenance.verify.directory",
    "verify_log": "kwire.maintenance.verify.directory",
    "verify_logs": "kwire.maintenance.verify.logs",
    "verify_partition": "kwire.maintenance.verify.partition",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("verification of logs"):
        module = import_module(_HOMES[name])
    value = globals()[name] = getattr(module, name)
    return value
