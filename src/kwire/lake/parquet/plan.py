"""How tasks write the data files of a directory of Parquet files."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kwire.lake.data_files import FilePlan, PartitionValues, WrittenFile

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

__all__ = ["ParquetPlan"]

TARGET_BYTES = 128 << 20


@dataclass(frozen=True, kw_only=True)
class ParquetPlan(FilePlan):
    """table: the directory. arrow: the columns. name: of the query and micro-batch, as part of file names."""

    table: str
    table_id: str
    arrow: pa.Schema
    compression: str
    name: str = ""
    target_bytes: int = TARGET_BYTES

    @property
    def schema(self) -> pa.Schema:
        return self.arrow

    @property
    def parquet_options(self) -> Mapping[str, Any]:
        # Spark reads no timestamps in nanoseconds; Arrow refuses those that microseconds cannot hold
        return {"compression": self.compression, "store_decimal_as_integer": True, "coerce_timestamps": "us"}

    def split(self, rows: pa.RecordBatch) -> Iterator[tuple[PartitionValues, pa.RecordBatch]]:
        yield (), rows

    def create(self, partition: PartitionValues, task: int) -> tuple[str, pa.NativeFile]:
        import pyarrow as pa

        path = os.path.join(self.table, f"part-{task:05d}-{self.name}-{uuid.uuid4()}.parquet")
        return path, pa.OSFile(path, "wb")

    def written(
        self, path: str, partition: PartitionValues, size_bytes: int, footer: parquet.FileMetaData
    ) -> WrittenFile:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # before the log has it
            modified_ms = os.fstat(descriptor).st_mtime_ns // 1_000_000
        finally:
            os.close(descriptor)
        return WrittenFile(path=path, size_bytes=size_bytes, rows=footer.num_rows, facts={"modified_ms": modified_ms})

    def delete(self, path: str) -> None:
        os.unlink(path)
