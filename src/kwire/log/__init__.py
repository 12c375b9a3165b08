"""Kafka's log directories: segments, indexes, checkpoints, and the records in them."""

from kwire.log.damage import Damage, Severity
from kwire.log.file_names import Ignored
from kwire.log.log_config import LogConfig
from kwire.log.log_directory import LogDirectory, open_tiered
from kwire.log.log_manager import LogManager
from kwire.log.partition_log import PartitionLog
from kwire.log.partition_writer import Appended, PartitionWriter
from kwire.log.segment import Segment
from kwire.log.splits import Split, plan_splits, read_split
from kwire.log.time_lookup import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP, TimestampAndOffset
from kwire.log.transaction_index import AbortedTransaction
from kwire.storage.checkpoints import LeaderEpoch
from kwire.storage.file_system import FileSystem

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
