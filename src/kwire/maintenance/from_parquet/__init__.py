"""Build log directories from Parquet files."""

from kwire.extras import needing
from kwire.maintenance.new_directory import WrittenPartition

with needing("restoring from Parquet files"):
    from kwire.maintenance.from_parquet.directory import FromParquetOptions, restore_from_parquet

__all__ = ["FromParquetOptions", "WrittenPartition", "restore_from_parquet"]
