"""The fixture kafka_spark: streaming queries of a test, on the session of the fixture `spark`; docs/testing.md."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kwire.errors import OptionError
from kwire.testing import SparkTest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


@pytest.mark.slow
def test_the_examples_of_the_page_run(kafka_spark: SparkTest) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    tests = [name for name in names if name.startswith("test_")]
    assert len(tests) == 2
    for name in tests:
        names[name](kafka_spark)


def values(stream: DataFrame) -> DataFrame:
    return stream.selectExpr("CAST(key AS string)", "CAST(value AS string)")


def test_a_stream_answers_and_continues_from_its_checkpoint(kafka_spark: SparkTest, spark: SparkSession) -> None:
    assert kafka_spark.session is spark
    kafka_spark.create_topic("orders", 2)
    stream = kafka_spark.start(values(kafka_spark.read("orders")))
    kafka_spark.add_data("orders", ("a", "1"), ("b", "2"))
    stream.process_all()
    stream.check_answer([("b", "2"), ("a", "1")])
    stream.stop()
    with pytest.raises(OptionError, match="the stream is stopped"):
        stream.process_all()
    kafka_spark.add_data("orders", ("c", "3"))
    stream.start()
    stream.process_all()
    stream.check_answer([("a", "1"), ("b", "2"), ("c", "3")])  # c only: the rest was processed before
    upper = values(kafka_spark.read("orders")).selectExpr("key", "concat('new ', value) AS value")
    stream.stop()
    stream.start(upper)  # the next release of the job
    kafka_spark.add_data("orders", ("d", "4"))
    stream.process_all()
    expected = spark.createDataFrame([("a", "1"), ("b", "2"), ("c", "3"), ("d", "new 4")], "key string, value string")
    stream.check_answer(expected)


@pytest.mark.slow
def test_state_survives_a_restart(kafka_spark: SparkTest) -> None:
    kafka_spark.create_topic("orders", 2)
    counts = values(kafka_spark.read("orders")).groupBy("key").count()
    stream = kafka_spark.start(counts, output_mode="complete")
    kafka_spark.add_data("orders", ("a", "1"), ("b", "2"), ("a", "3"))
    stream.process_all()
    stream.check_answer([("a", 2), ("b", 1)])
    stream.restart()
    kafka_spark.add_data("orders", ("a", "4"))
    stream.process_all()
    stream.check_answer([("a", 3), ("b", 1)])


@pytest.mark.slow
def test_each_test_has_clean_topics_and_records_as_they_were_added(kafka_spark: SparkTest) -> None:
    kafka_spark.create_topic("orders", 3)  # of the tests before it is gone
    read = kafka_spark.read("orders", includeHeaders=True)
    stream = kafka_spark.start(
        read.selectExpr("partition", "offset", "CAST(key AS string)", "value", "headers[0].value", "timestamp")
    )
    kafka_spark.add_data("orders", "x", b"\xff", None, headers=[("h", b"1")], timestamp_ms=1_760_000_000_000)
    kafka_spark.add_data("orders", "y", partition=2, timestamp_ms=1_760_000_000_000)
    kafka_spark.add_data("orders", ("key", None), ("key", "z"), timestamp_ms=1_760_000_000_000)
    stream.process_all()
    at = {row[5] for row in stream.rows}
    assert len(at) == 1
    rows = {row[:2]: tuple(row[2:5]) for row in stream.rows}
    key = next(place for place, row in rows.items() if row[0] == "key")[0]
    first = {0: 1, 1: 1, 2: 2}[key]
    assert rows == {
        (0, 0): (None, b"x", b"1"),
        (1, 0): (None, b"\xff", b"1"),
        (2, 0): (None, None, b"1"),
        (2, 1): (None, b"y", None),
        (key, first): ("key", None, None),
        (key, first + 1): ("key", b"z", None),
    }


@pytest.mark.slow
def test_differences_are_shown_by_kind(kafka_spark: SparkTest) -> None:
    kafka_spark.create_topic("orders")
    stream = kafka_spark.start(kafka_spark.read("orders").selectExpr("CAST(value AS string) AS word"))
    kafka_spark.add_data("orders", "one", "two", "three")
    stream.process_all()
    stream.check_answer(["three", "two", "one"])  # of one column: values
    stream.check_answer(["one", "two", "three"], in_order=True)
    with pytest.raises(AssertionError) as shown:
        stream.check_answer(["one", "two", "four"])
    assert str(shown.value) == (
        "columns word: the result has 3 rows, 3 rows expected\n"
        "1 missing, expected but not in the result:\n    ('four',)\n"
        "1 unexpected, in the result but not expected:\n    Row(word='three')"
    )
    with pytest.raises(AssertionError, match=r"2 in another order:\n    position 1: expected \('three',\)"):
        stream.check_answer(["one", "three", "two"], in_order=True)
    with pytest.raises(OptionError, match=r"expected rows have columns word, got \('one', 1\)"):
        stream.check_answer([("one", 1)])


@pytest.mark.slow
def test_a_query_with_its_own_sink(kafka_spark: SparkTest) -> None:
    kafka_spark.create_topic("in")
    kafka_spark.create_topic("out")

    def start(checkpoint: str) -> StreamingQuery:
        rows = kafka_spark.read("in").selectExpr("key", "upper(CAST(value AS string)) AS value")
        writer = rows.writeStream.format("kafka-live").option("topic", "out")
        writer = writer.option("kafka.bootstrap.servers", kafka_spark.bootstrap_servers)
        return writer.option("transactionalIdPrefix", "copy").option("checkpointLocation", checkpoint).start()

    stream = kafka_spark.start(start)
    kafka_spark.add_data("in", ("k", "a"), "b")
    stream.process_all()
    stream.restart()
    kafka_spark.add_data("in", "c")
    stream.process_all()
    kafka_spark.check_topic("out", ["A", "B", "C"])
    kafka_spark.check_topic("out", [("k", "A"), (None, "B"), "C"], in_order=True)
    with pytest.raises(AssertionError, match=r"topic 'out': .*\n1 unexpected.*\n    \('C',\)"):
        kafka_spark.check_topic("out", ["A", "B"])
    with pytest.raises(OptionError, match="own sink"):
        stream.check_answer([])


@pytest.mark.slow
def test_a_failing_query_fails_process_all(kafka_spark: SparkTest) -> None:
    from pyspark.errors import StreamingQueryException

    kafka_spark.create_topic("orders")
    failing = kafka_spark.read("orders").selectExpr("raise_error(CAST(value AS string))")
    stream = kafka_spark.start(failing)
    kafka_spark.add_data("orders", "no such order")
    with pytest.raises(StreamingQueryException, match="no such order"):
        stream.process_all()


def test_a_query_that_is_too_slow_is_an_error_with_its_status(kafka_spark: SparkTest) -> None:
    kafka_spark.create_topic("orders")
    stream = kafka_spark.start(kafka_spark.read("orders").selectExpr("value"))
    kafka_spark.broker.faults.fail("ListOffsets", "NOT_LEADER_OR_FOLLOWER", times=None)
    started = time.monotonic()
    with pytest.raises(AssertionError, match=r"not processed all records after 1 s; status: \{"):
        stream.process_all(timeout_s=1)
    assert time.monotonic() - started < 60
    kafka_spark.broker.faults.clear()


def test_mistakes_are_named(kafka_spark: SparkTest) -> None:
    kafka_spark.create_topic("orders", 2)
    with pytest.raises(OptionError, match="topic 'order' does not exist; create it with create_topic"):
        kafka_spark.add_data("order", "x")
    with pytest.raises(OptionError, match="topic 'order' does not exist"):
        kafka_spark.check_topic("order", [])
    with pytest.raises(OptionError, match=re.escape("partition 2 is out of range: topic 'orders' has 2")):
        kafka_spark.add_data("orders", "x", partition=2)
    with pytest.raises(OptionError, match="text, bytes or None, got dict"):
        kafka_spark.add_data("orders", {"a": 1})  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="unknown output_mode 'all'"):
        kafka_spark.start(kafka_spark.read("orders"), output_mode="all")
    with pytest.raises(OptionError, match="expected a streaming DataFrame"):
        kafka_spark.start(kafka_spark.session.range(1))
