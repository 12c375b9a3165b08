"""Lower bound of a Python sink: read the rows of each task as Arrow batches and discard them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa


class DiscardingWriter(DataSourceArrowWriter):
    """Reads all batches."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: object) -> None:
        pass

    def abort(self, messages: object) -> None:
        pass


class DiscardingSink(DataSource):
    """A sink without options."""

    @classmethod
    def name(cls) -> str:
        return "discard"

    def writer(self, schema: StructType, overwrite: bool) -> DiscardingWriter:
        return DiscardingWriter()
