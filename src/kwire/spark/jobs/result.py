"""The results of jobs: one row per partition, also as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.spark.arrow_types import arrow_type
from kwire.spark.jobs.journal import Row
from kwire.spark.jobs.runner import JobRun, raise_failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["JobResult", "create_frame", "partition_rows", "result_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The result of a job.

    rows: a dict per partition with the keys of `columns`, sorted by topic and partition; for a failed partition, all
    values except topic, partition and problem are None. resumed: number of partitions that an earlier run completed.
    seconds: duration of the Spark job. columns: Spark types.
    """

    rows: tuple[Row, ...]
    resumed: int
    seconds: float
    columns: Mapping[str, str] = field(repr=False)
    session: SparkSession = field(repr=False)

    @property
    def partitions(self) -> DataFrame:
        """The rows as a DataFrame."""
        return create_frame(self.session, self.rows, self.columns)

    def total(self, column: str) -> int:
        """Return the sum of a numeric column over the successful partitions."""
        return sum(row[column] or 0 for row in self.rows)


def result_of(spark: SparkSession, job: str, run: JobRun, columns: Mapping[str, str], hint: str) -> JobResult:
    """Return the result of a run; raises JobFailed, with this result, if items have failed."""
    result = JobResult(
        rows=partition_rows(run, columns), resumed=run.resumed, seconds=run.seconds, columns=columns, session=spark
    )
    raise_failures(job, run, result, hint)
    return result


def partition_rows(run: JobRun, columns: Mapping[str, str]) -> tuple[Row, ...]:
    """Return a row per item; names of items end with topic and partition (`orders-0`)."""
    rows = []
    for each in run.outcomes:
        topic, _, partition = each.item.name.rpartition("-")
        row = {"topic": topic, "partition": int(partition)} | (each.row or {"problem": each.problem})
        rows.append({name: row.get(name) for name in columns})
    return tuple(sorted(rows, key=lambda row: (row["topic"], row["partition"])))


def create_frame(spark: SparkSession, rows: Sequence[Row], columns: Mapping[str, str]) -> DataFrame:
    """Create a DataFrame with these columns."""
    import pyarrow as pa

    schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema))
