"""Log directories from Parquet files."""

from kwire.log.restore.directory import RestoredPartition, restore_directory

__all__ = ["RestoredPartition", "restore_directory"]
