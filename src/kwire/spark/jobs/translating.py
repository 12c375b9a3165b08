"""translate_offsets: committed offsets after a restore with new offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["translate_offsets"]

RUN = "_kwire_run"  # names of temporary columns
RUNS = "_kwire_runs"


def translate_offsets(spark: SparkSession, offsets: DataFrame, translation: DataFrame | str) -> DataFrame:
    """Add the column new_offset (bigint) to a DataFrame of offsets.

    offsets: topic, partition and offset, the next offset to read, as in `kafka-internal` with kind `offsets`.
    translation: the offset table of restore, or its path. An offset without a record becomes that of the next record;
    an offset after all records, the end of the new log. Null for a null offset, and for partitions that are not in the
    table. Raises OptionError for missing columns.
    """
    from pyspark.sql import functions as f

    table = spark.read.parquet(translation) if isinstance(translation, str) else translation
    check(offsets, ("topic", "partition", "offset"), "offsets")
    check(table, ("topic", "partition", "old_offset", "new_offset", "count"), "translation")
    if "new_offset" in offsets.columns:
        raise OptionError("offsets: already has a column new_offset; drop or rename it")
    runs = table.groupBy(f.col("topic").alias(f"{RUN}_topic"), f.col("partition").alias(f"{RUN}_partition")).agg(
        f.sort_array(f.collect_list(f.struct("old_offset", "new_offset", "count"))).alias(RUNS)
    )
    same = (f.col("topic") == f.col(f"{RUN}_topic")) & (f.col("partition") == f.col(f"{RUN}_partition"))
    # the first range that ends after the offset; old and new offsets rise together
    first = f.expr(f"get(filter({RUNS}, each -> each.old_offset + each.count > offset), 0)")
    last = f.expr(f"try_element_at({RUNS}, -1)")
    inside = f.col(f"{RUN}.new_offset") + f.greatest(f.col("offset") - f.col(f"{RUN}.old_offset"), f.lit(0))
    translated = offsets.join(runs, same, "left").withColumn(RUN, first)
    new = (
        f.when(f.col(RUNS).isNull() | f.col("offset").isNull(), f.lit(None))
        .when(f.col(RUN).isNull(), last["new_offset"] + last["count"])
        .otherwise(inside)
    )
    return translated.withColumn("new_offset", new.cast("bigint")).select(*offsets.columns, "new_offset")


def check(frame: DataFrame, columns: tuple[str, ...], name: str) -> None:
    """Raise OptionError for missing columns."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise OptionError(f"{name}: no column {', '.join(missing)}; available: {', '.join(frame.columns)[:300]}")
