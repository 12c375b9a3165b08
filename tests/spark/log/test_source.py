"""`kafka-log` through Spark: found by name, schema, projection, damage."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kwire.log import LogDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def load(spark: SparkSession, path: Path | str | list[str], **options: object) -> DataFrame:
    texts = {key: str(value) for key, value in options.items()}
    return spark.read.format("kafka-log").options(**texts).load(path if isinstance(path, list) else str(path))


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


def test_columns_equal_those_of_sparks_kafka_source(spark: SparkSession, modern: Path) -> None:
    from pyspark.sql.types import (
        ArrayType,
        BinaryType,
        IntegerType,
        LongType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

    seven = StructType(
        [
            StructField("key", BinaryType()),
            StructField("value", BinaryType()),
            StructField("topic", StringType()),
            StructField("partition", IntegerType()),
            StructField("offset", LongType()),
            StructField("timestamp", TimestampType()),
            StructField("timestampType", IntegerType()),
        ]
    )
    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    assert load(spark, modern).schema == seven
    assert load(spark, modern, includeHeaders=True).schema == StructType(
        [*seven.fields, StructField("headers", ArrayType(header))]
    )
    assert load(spark, modern, mode="PERMISSIVE").schema == StructType(
        [*seven.fields, StructField("_corrupt", StringType())]
    )


def test_a_schema_or_columns_select_and_order_columns(spark: SparkSession, modern: Path) -> None:
    whole = load(spark, modern, subscribe="ids", includeHeaders=True)
    table = whole.toArrow()
    for wanted in (["offset", "partition"], ["headers", "timestamp", "key"], ["topic"]):
        ddl = ", ".join(f"{name} {whole.schema[name].dataType.simpleString()}" for name in wanted)
        by_schema = spark.read.format("kafka-log").schema(ddl).option("subscribe", "ids").load(str(modern))
        by_option = load(spark, modern, subscribe="ids", columns=",".join(wanted))
        assert by_schema.columns == by_option.columns == wanted
        assert by_schema.toArrow().equals(table.select(wanted))
        assert by_option.toArrow().equals(table.select(wanted))


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("offest long", "unknown column 'offest' (did you mean 'offset'?)"),
        ("OFFSET long", "unknown column 'OFFSET' (did you mean 'offset'?)"),
        ("offset int", "column 'offset' is of type bigint, not int"),
        ("key string", "column 'key' is of type binary, not string"),
        ("offset long NOT NULL", "column 'offset' and its fields are nullable"),
        ("headers array<struct<key:string NOT NULL,value:binary>>", "column 'headers' and its fields are nullable"),
    ],
)
def test_an_invalid_schema_is_rejected(spark: SparkSession, modern: Path, ddl: str, message: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as caught:
        spark.read.format("kafka-log").schema(ddl).load(str(modern)).collect()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribed": "x"}, "Unknown option 'subscribed' (did you mean 'subscribe'?)"),
        ({"kafka.bootstrap.servers": "x"}, "Option 'kafka.bootstrap.servers' is not supported"),
        ({"columns": "offset,value,ofset"}, "unknown column 'ofset' (did you mean 'offset'?)"),
        ({"columns": "offset,offset"}, "duplicate column in offset, offset"),
        ({"columns": "offset", "mode": "PERMISSIVE"}, "PERMISSIVE requires column '_corrupt'"),
    ],
)
def test_invalid_options_fail_at_load_without_showing_secrets(
    spark: SparkSession, modern: Path, options: dict[str, str], message: str
) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as caught:
        load(spark, modern, **{"storage.secret": "hunter2"}, **options)
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_stream_only_options_fail_when_a_batch_is_planned(spark: SparkSession, modern: Path) -> None:
    """At load Spark requests the schema, before it is known whether the query is a batch."""
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="starting offset can't be latest"):
        load(spark, modern, startingOffsets="latest").collect()


def test_columns_and_a_schema_must_agree(spark: SparkSession, modern: Path) -> None:
    from pyspark.errors import AnalysisException

    reader = spark.read.format("kafka-log").schema("offset long").option("columns", "partition")
    with pytest.raises(AnalysisException, match="'columns': differs from the schema"):
        reader.load(str(modern)).collect()


def test_plans_hide_secrets(spark: SparkSession, modern: Path) -> None:
    frame = load(spark, modern, **{"storage.secret": "hunter2", "storage.client_kwargs": '{"token": "hunter2"}'})
    assert frame.where("offset = 1").count() > 0
    execution = frame._jdf.queryExecution()
    text = execution.toString() + execution.logical().prettyJson() + execution.executedPlan().prettyJson()
    assert "kafka-log" in text
    assert "hunter2" not in text


def test_an_empty_selection_is_an_empty_dataframe(spark: SparkSession, modern: Path) -> None:
    assert rows(load(spark, modern, subscribe="empty")) == []
    assert load(spark, modern, subscribe="gone", failOnDataLoss=False).count() == 0


def test_several_paths_make_one_dataframe(spark: SparkSession, modern: Path) -> None:
    both = load(spark, [str(modern / "ids-0"), str(modern / "ids-1")])
    assert rows(both) == rows(load(spark, modern, subscribe="ids"))


def test_sql_reads_log_directories(spark: SparkSession, modern: Path) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW ids USING `kafka-log` OPTIONS (path '{modern}', subscribe 'ids')")
    assert spark.sql("SELECT count(*), max(offset) FROM ids WHERE partition = 1").collect()[0][:] == (764, 763)


def test_min_partitions_sets_the_number_of_spark_tasks(spark: SparkSession, modern: Path) -> None:
    assert load(spark, modern, subscribe="orders").rdd.getNumPartitions() == 1
    assert load(spark, modern, subscribe="orders", minPartitions=6).rdd.getNumPartitions() >= 6


# ---- damage


@pytest.fixture
def damaged(modern: Path, tmp_path: Path) -> tuple[Path, Any]:
    """A log with one flipped byte, and the header of the batch it is in."""
    shutil.copytree(modern / "ids-1", tmp_path / "ids-1")
    segment = LogDirectory(tmp_path)[("ids", 1)].segments[0]
    batch = list(segment.headers())[2]
    data = bytearray(Path(segment.url).read_bytes())
    data[batch.position + 70] ^= 4
    Path(segment.url).write_bytes(data)
    return tmp_path, batch


def test_failfast_reports_file_position_and_offsets(spark: SparkSession, damaged: tuple[Path, Any]) -> None:
    from pyspark.errors import PythonException

    path, batch = damaged
    with pytest.raises(PythonException) as caught:
        load(spark, path).write.format("noop").mode("overwrite").save()
    for part in (
        "kwire.errors.CorruptBatch",
        f"{path}/ids-1/00000000000000000000.log",
        f"in the batch at byte {batch.position}",
        f"(offsets {batch.stored_offset} to {batch.last_offset})",
    ):
        assert part in str(caught.value)


def test_dropmalformed_and_permissive_continue_after_damage(
    spark: SparkSession, modern: Path, damaged: tuple[Path, Any]
) -> None:
    path, batch = damaged
    lost = f"offset BETWEEN {batch.stored_offset} AND {batch.last_offset}"
    kept = rows(load(spark, modern / "ids-1", columns="offset,value").where(f"NOT ({lost})"))
    assert rows(load(spark, path, columns="offset,value", mode="dropmalformed")) == kept
    permissive = load(spark, path, mode="PERMISSIVE")
    assert rows(permissive.where("_corrupt IS NULL").select("offset", "value")) == kept
    (row,) = permissive.where("_corrupt IS NOT NULL").collect()
    assert (row.topic, row.partition, row.offset) == ("ids", 1, batch.stored_offset)
    assert (row.key, row.value, row.timestamp, row.timestampType) == (None, None, None, None)
    assert f"byte {batch.position}" in row._corrupt


@pytest.mark.slow
def test_real_damage_fails_the_query_or_is_reported(spark: SparkSession, kafka_logs: dict[str, Path]) -> None:
    """tests/data/logs/README.md (unclean) describes the damage."""
    from pyspark.errors import PythonException

    logs = kafka_logs["unclean"] / "damaged" / "data"
    for topic, partition in (("u-plain", 1), ("u-plain", 4)):
        with pytest.raises(PythonException, match=f"{topic}-{partition}/"):
            load(spark, logs / f"{topic}-{partition}").write.format("noop").mode("overwrite").save()
    found = load(spark, logs, mode="PERMISSIVE", columns="topic,partition,_corrupt").where("_corrupt IS NOT NULL")
    assert {row[:2] for row in rows(found)} == {("u-plain", 1), ("u-plain", 4)}


def test_a_missing_file_fails_the_query_and_is_reported(spark: SparkSession, modern: Path, tmp_path: Path) -> None:
    from pyspark.errors import PythonException

    shutil.copytree(modern / "ids-0", tmp_path / "ids-0")
    strict, lenient = load(spark, tmp_path), load(spark, tmp_path, failOnDataLoss=False)
    planned = [frame.rdd for frame in (strict, lenient)]
    assert [rdd.getNumPartitions() for rdd in planned] == [1, 1]
    first = min((tmp_path / "ids-0").glob("*.log"))
    first.unlink()
    with pytest.raises(Exception, match=r"LogError.*cannot be opened: No such file") as caught:
        planned[0].count()
    assert first.name in str(caught.value)
    assert not isinstance(caught.value, PythonException) or "LogError" in str(caught.value)
    assert 0 < planned[1].count() < 736
