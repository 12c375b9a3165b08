"""Log directories from Parquet files."""

from kwire.maintenance.restore.directory import RestoredPartition, restore_directory

__all__ = ["RestoredPartition", "restore_directory"]
