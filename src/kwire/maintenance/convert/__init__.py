"""Conversion of logs to another record format (magic 0, 1 or 2) or codec."""

from kwire.maintenance.convert.batch_format import Loss, TargetFormat
from kwire.maintenance.convert.directory import LossRefused, convert_directory, examine
from kwire.maintenance.convert.in_place import convert_in_place
from kwire.maintenance.convert.partition import ConvertedPartition

__all__ = [
    "ConvertedPartition",
    "Loss",
    "LossRefused",
    "TargetFormat",
    "convert_directory",
    "convert_in_place",
    "examine",
]
