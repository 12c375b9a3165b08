"""Build log directories from Parquet files."""

from kwire.maintenance.new_directory import RestoredPartition
from kwire.maintenance.restore.directory import RestoreOptions, restore_directory

__all__ = ["RestoreOptions", "RestoredPartition", "restore_directory"]
