"""What jobs return: a row a partition, and DataFrames of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.spark.arrow_types import arrow_type
from kwire.spark.jobs.journal import Row
from kwire.spark.jobs.runner import Done

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["JobResult", "frame_of", "rows_of"]

PARTITION = {"topic": "string", "partition": "int"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """What a job did. rows: one a partition, dicts with the keys of `columns`, in order of topic and partition; of one
    that failed all but topic, partition and problem is None.

    resumed: how many of them an earlier run had done. seconds: of the Spark job. columns: their types in Spark.
    """

    rows: tuple[Row, ...]
    resumed: int
    seconds: float
    columns: Mapping[str, str] = field(repr=False)
    session: SparkSession = field(repr=False)

    @property
    def partitions(self) -> DataFrame:
        """The rows as a DataFrame."""
        return frame_of(self.session, self.rows, self.columns)

    def total(self, column: str) -> int:
        """The sum of a column of numbers over the partitions that were done."""
        return sum(row[column] or 0 for row in self.rows)


def rows_of(done: Done, columns: Mapping[str, str]) -> tuple[Row, ...]:
    """A row for each item whose subject names topic and partition by its name's end (`orders-0`)."""
    rows = []
    for each in done.outcomes:
        topic, _, partition = each.item.name.rpartition("-")
        row = {"topic": topic, "partition": int(partition)} | (each.row or {"problem": each.problem})
        rows.append({name: row.get(name) for name in columns})
    return tuple(sorted(rows, key=lambda row: (row["topic"], row["partition"])))


def frame_of(spark: SparkSession, rows: Sequence[Row], columns: Mapping[str, str]) -> DataFrame:
    """Rows as a DataFrame with these columns."""
    import pyarrow as pa

    schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema))
