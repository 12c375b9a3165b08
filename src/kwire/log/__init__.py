"""Kafka's log directories: segments, indexes, checkpoints, and the records in them.

Names import their modules on first access: reading a log needs neither the writers nor recovery.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.log.files.damage import Damage as Damage
    from kwire.log.files.damage import Severity as Severity
    from kwire.log.files.file_names import Ignored as Ignored
    from kwire.log.files.segment import Segment as Segment
    from kwire.log.files.time_lookup import EARLIEST_TIMESTAMP as EARLIEST_TIMESTAMP
    from kwire.log.files.time_lookup import LATEST_TIMESTAMP as LATEST_TIMESTAMP
    from kwire.log.files.time_lookup import MAX_TIMESTAMP as MAX_TIMESTAMP
    from kwire.log.files.time_lookup import TimestampAndOffset as TimestampAndOffset
    from kwire.log.files.transaction_index import AbortedTransaction as AbortedTransaction
    from kwire.log.reading.log_directory import LogDirectory as LogDirectory
    from kwire.log.reading.log_directory import open_tiered as open_tiered
    from kwire.log.reading.partition_log import PartitionLog as PartitionLog
    from kwire.log.reading.splits import Split as Split
    from kwire.log.reading.splits import plan_splits as plan_splits
    from kwire.log.reading.splits import read_split as read_split
    from kwire.log.writing.log_config import LogConfig as LogConfig
    from kwire.log.writing.log_manager import LogManager as LogManager
    from kwire.log.writing.partition_writer import Appended as Appended
    from kwire.log.writing.partition_writer import PartitionWriter as PartitionWriter
    from kwire.storage.checkpoints import LeaderEpoch as LeaderEpoch
    from kwire.storage.file_system import FileSystem as FileSystem

_HOMES = {
    "EARLIEST_TIMESTAMP": "kwire.log.files.time_lookup",
    "LATEST_TIMESTAMP": "kwire.log.files.time_lookup",
    "MAX_TIMESTAMP": "kwire.log.files.time_lookup",
    "AbortedTransaction": "kwire.log.files.transaction_index",
    "Appended": "kwire.log.writing.partition_writer",
    "Damage": "kwire.log.files.damage",
    "FileSystem": "kwire.storage.file_system",
    "Ignored": "kwire.log.files.file_names",
    "LeaderEpoch": "kwire.storage.checkpoints",
    "LogConfig": "kwire.log.writing.log_config",
    "LogDirectory": "kwire.log.reading.log_directory",
    "LogManager": "kwire.log.writing.log_manager",
    "PartitionLog": "kwire.log.reading.partition_log",
    "PartitionWriter": "kwire.log.writing.partition_writer",
    "Segment": "kwire.log.files.segment",
    "Severity": "kwire.log.files.damage",
    "Split": "kwire.log.reading.splits",
    "TimestampAndOffset": "kwire.log.files.time_lookup",
    "open_tiered": "kwire.log.reading.log_directory",
    "plan_splits": "kwire.log.reading.splits",
    "read_split": "kwire.log.reading.splits",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
