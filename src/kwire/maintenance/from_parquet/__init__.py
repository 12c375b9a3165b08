"""Build log directories from Parquet files."""

from kwire.maintenance.from_parquet.directory import FromParquetOptions, restore_from_parquet
from kwire.maintenance.new_directory import WrittenPartition

__all__ = ["FromParquetOptions", "WrittenPartition", "restore_from_parquet"]
