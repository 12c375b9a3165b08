"""Restore log directories to a moment or to offsets."""

from kwire.maintenance.restore.changes import DividedTransaction
from kwire.maintenance.restore.offsets import ChangedOffset
from kwire.maintenance.restore.points import AtOffsets, AtTime, RestorePoint, parse_offsets_file
from kwire.maintenance.restore.run import RestoredPartition, RestoreOptions, RestoreResult, restore_directory

__all__ = [
    "AtOffsets",
    "AtTime",
    "ChangedOffset",
    "DividedTransaction",
    "RestoreOptions",
    "RestorePoint",
    "RestoreResult",
    "RestoredPartition",
    "parse_offsets_file",
    "restore_directory",
]
