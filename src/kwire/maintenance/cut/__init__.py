"""Restore log directories to a moment or to offsets."""

from kwire.maintenance.cut.changes import DividedTransaction
from kwire.maintenance.cut.offsets import ChangedOffset
from kwire.maintenance.cut.points import AtOffsets, AtTime, CutPoint, parse_offsets_file
from kwire.maintenance.cut.run import CutOptions, CutPartition, CutResult, cut_directory

__all__ = [
    "AtOffsets",
    "AtTime",
    "ChangedOffset",
    "CutOptions",
    "CutPartition",
    "CutPoint",
    "CutResult",
    "DividedTransaction",
    "cut_directory",
    "parse_offsets_file",
]
