"""translate_offsets: where committed offsets point after a restore that gave offsets anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["translate_offsets"]

RUN = "_kwire_run"  # of columns that are there for a moment
RUNS = "_kwire_runs"


def translate_offsets(spark: SparkSession, offsets: DataFrame, translation: DataFrame | str) -> DataFrame:
    """The rows of offsets with another column, new_offset (bigint).

    offsets: has topic, partition and offset, the next one to read, as kafka-internal's kind `offsets` has them.
    translation: the table that restore made, or its path. An offset that no longer has a record goes to the next one
    that has; one behind all records to the new log's end. Null where the partition is not in the table, or offset is
    null. Raises OptionError for columns that are missing.
    """
    from pyspark.sql import functions as f

    table = spark.read.parquet(translation) if isinstance(translation, str) else translation
    check(offsets, ("topic", "partition", "offset"), "offsets")
    check(table, ("topic", "partition", "old_offset", "new_offset", "count"), "translation")
    if "new_offset" in offsets.columns:
        raise OptionError("offsets: has a column new_offset already")
    runs = table.groupBy(f.col("topic").alias(f"{RUN}_topic"), f.col("partition").alias(f"{RUN}_partition")).agg(
        f.sort_array(f.collect_list(f.struct("old_offset", "new_offset", "count"))).alias(RUNS)
    )
    same = (f.col("topic") == f.col(f"{RUN}_topic")) & (f.col("partition") == f.col(f"{RUN}_partition"))
    # the first run that ends behind the offset; sorted by old offset, new ones rise with them
    first = f.expr(f"get(filter({RUNS}, each -> each.old_offset + each.count > offset), 0)")
    last = f.expr(f"try_element_at({RUNS}, -1)")
    inside = f.col(f"{RUN}.new_offset") + f.greatest(f.col("offset") - f.col(f"{RUN}.old_offset"), f.lit(0))
    found = offsets.join(runs, same, "left").withColumn(RUN, first)
    new = (
        f.when(f.col(RUNS).isNull() | f.col("offset").isNull(), f.lit(None))
        .when(f.col(RUN).isNull(), last["new_offset"] + last["count"])
        .otherwise(inside)
    )
    return found.withColumn("new_offset", new.cast("bigint")).select(*offsets.columns, "new_offset")


def check(frame: DataFrame, columns: tuple[str, ...], name: str) -> None:
    """Raise OptionError where a column is missing."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise OptionError(f"{name}: no column {', '.join(missing)}; it has {', '.join(frame.columns)[:300]}")
