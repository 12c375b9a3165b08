"""Kafka's log directories: segments, indexes, checkpoints, and the records in them.

Names import their modules on first access: reading a log needs neither the writers nor recovery.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.log.damage import Damage as Damage
    from kwire.log.damage import Severity as Severity
    from kwire.log.file_names import Ignored as Ignored
    from kwire.log.log_config import LogConfig as LogConfig
    from kwire.log.log_directory import LogDirectory as LogDirectory
    from kwire.log.log_directory import open_tiered as open_tiered
    from kwire.log.log_manager import LogManager as LogManager
    from kwire.log.partition_log import PartitionLog as PartitionLog
    from kwire.log.partition_writer import Appended as Appended
    from kwire.log.partition_writer import PartitionWriter as PartitionWriter
    from kwire.log.segment import Segment as Segment
    from kwire.log.splits import Split as Split
    from kwire.log.splits import plan_splits as plan_splits
    from kwire.log.splits import read_split as read_split
    from kwire.log.time_lookup import EARLIEST_TIMESTAMP as EARLIEST_TIMESTAMP
    from kwire.log.time_lookup import LATEST_TIMESTAMP as LATEST_TIMESTAMP
    from kwire.log.time_lookup import MAX_TIMESTAMP as MAX_TIMESTAMP
    from kwire.log.time_lookup import TimestampAndOffset as TimestampAndOffset
    from kwire.log.transaction_index import AbortedTransaction as AbortedTransaction
    from kwire.storage.checkpoints import LeaderEpoch as LeaderEpoch
    from kwire.storage.file_system import FileSystem as FileSystem

_HOMES = {
    "EARLIEST_TIMESTAMP": "kwire.log.time_lookup",
    "LATEST_TIMESTAMP": "kwire.log.time_lookup",
    "MAX_TIMESTAMP": "kwire.log.time_lookup",
    "AbortedTransaction": "kwire.log.transaction_index",
    "Appended": "kwire.log.partition_writer",
    "Damage": "kwire.log.damage",
    "FileSystem": "kwire.storage.file_system",
    "Ignored": "kwire.log.file_names",
    "LeaderEpoch": "kwire.storage.checkpoints",
    "LogConfig": "kwire.log.log_config",
    "LogDirectory": "kwire.log.log_directory",
    "LogManager": "kwire.log.log_manager",
    "PartitionLog": "kwire.log.partition_log",
    "PartitionWriter": "kwire.log.partition_writer",
    "Segment": "kwire.log.segment",
    "Severity": "kwire.log.damage",
    "Split": "kwire.log.splits",
    "TimestampAndOffset": "kwire.log.time_lookup",
    "open_tiered": "kwire.log.log_directory",
    "plan_splits": "kwire.log.splits",
    "read_split": "kwire.log.splits",
}

__all__ = [
    "EARLIEST_TIMESTAMP",
    "LATEST_TIMESTAMP",
    "MAX_TIMESTAMP",
    "AbortedTransaction",
    "Appended",
    "Damage",
    "FileSystem",
    "Ignored",
    "LeaderEpoch",
    "LogConfig",
    "LogDirectory",
    "LogManager",
    "PartitionLog",
    "PartitionWriter",
    "Segment",
    "Severity",
    "Split",
    "TimestampAndOffset",
    "open_tiered",
    "plan_splits",
    "read_split",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
