"""The tasks that write `kafka-log`: Arrow batches in, a Parquet file with topic and partition out.

The driver converts the files to logs (kwire.maintenance.restore), which knows these columns.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from kwire.errors import LogError, OptionError
from kwire.log.file_names import LARGEST_PARTITION
from kwire.maintenance.restore.parquet_input import TAKEN
from kwire.spark.live.writing import rows_by_topic
from kwire.spark.log.write_options import LogWriteOptions
from kwire.spark.partitioner import RowPartitioner
from kwire.storage.driver_errors import cause

__all__ = ["write_rows"]

STICKY_BYTES = 128 << 10  # rows without key and partition that go to one partition before the next


def write_rows(batches: Iterable[pa.RecordBatch], columns: tuple[str, ...], options: LogWriteOptions, path: str) -> int:
    """Write the rows of one task and return their number. Without rows no file is created.

    columns: the columns to write. Raises OptionError for invalid rows, LogError for a failed write.
    """
    writer: parquet.ParquetWriter | None = None
    partitioners: dict[str, RowPartitioner] = {}
    records = 0
    try:
        for batch in batches:
            for rows in _partitioned(batch.select(columns), options, partitioners):
                if writer is None:
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    writer = parquet.ParquetWriter(path, rows.schema, compression="lz4", use_dictionary=["topic"])
                writer.write_batch(rows)
                records += len(rows)
    except (OSError, pa.ArrowException) as error:
        raise LogError(f"cannot be written: {cause(error)}", path) from error
    finally:
        if writer is not None:
            writer.close()
    return records


def _partitioned(
    batch: pa.RecordBatch, options: LogWriteOptions, partitioners: dict[str, RowPartitioner]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with topic, partition and timestamp, a batch per topic. Raises OptionError."""
    if not len(batch):
        return
    for topic, rows in rows_by_topic(batch, options.topic):
        if topic not in partitioners:
            partitioners[topic] = RowPartitioner(
                topic, options.partitions, batch_bytes=STICKY_BYTES, named_below=LARGEST_PARTITION + 1, seed=0
            )
        columns = {name: rows.column(name) for name in ("offset", *TAKEN) if name in rows.schema.names}
        if "offset" in columns and columns["offset"].null_count:
            raise OptionError("Column 'offset': null values are not allowed; drop the column to number records from 0")
        if "timestamp" not in columns:
            now = np.full(len(rows), time.time_ns() // 1_000_000, np.int64)
            columns["timestamp"] = pa.array(now, pa.timestamp("ms", "UTC"))
        columns["topic"] = pa.repeat(pa.scalar(topic, pa.string()), len(rows))
        columns["partition"] = pa.array(partitioners[topic].choose(rows), pa.int32())
        yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
