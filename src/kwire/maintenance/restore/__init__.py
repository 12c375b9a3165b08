"""Build log directories from Parquet files."""

from kwire.maintenance.restore.directory import RestoredPartition, RestoreOptions, restore_directory

__all__ = ["RestoreOptions", "RestoredPartition", "restore_directory"]
