"""Upper bound of a Python data source: decode an Arrow batch and pass it to Spark repeatedly."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa


class PrebuiltReader(DataSourceReader):
    """Returns rows in tasks and batches like kafka-log, with the content of a segment's start."""

    def __init__(self, segment: str, columns: tuple[str, ...], rows: int, tasks: int) -> None:
        self.segment, self.columns, self.rows, self.tasks = segment, columns, rows, tasks

    def partitions(self) -> list[InputPartition]:
        edges = [self.rows * task // self.tasks for task in range(self.tasks + 1)]
        return [InputPartition(high - low) for low, high in pairwise(edges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from kwire.records.columns.reader import ColumnReader

        with open(self.segment, "rb") as file:
            head = file.read(8 << 20)
        batch = next(ColumnReader(self.columns, topic="bench", partition=0).read(head))
        left = partition.value
        while left:
            piece = batch.slice(0, min(left, batch.num_rows))
            left -= piece.num_rows
            yield piece


class PrebuiltSource(DataSource):
    """Options: segment, columns, rows, tasks."""

    @classmethod
    def name(cls) -> str:
        return "prebuilt"

    def _columns(self) -> tuple[str, ...]:
        return tuple(self.options["columns"].split(","))

    def schema(self) -> str:
        from kwire.spark.schema import TYPES, render_schema

        return render_schema({name: TYPES[name] for name in self._columns()}, self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        return PrebuiltReader(
            self.options["segment"], self._columns(), int(self.options["rows"]), int(self.options["tasks"])
        )
