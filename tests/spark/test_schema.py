"""Options that Spark adds to a query or omits: names of queries, tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark.sql.datasource")

from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from kwire.broker import Broker
from kwire.errors import OptionError
from kwire.spark.capture.options import parse_options as parse_capture
from kwire.spark.capture.source import KafkaCaptureSource
from kwire.spark.internal.options import parse_options as parse_internal
from kwire.spark.live.options import parse_options as parse_live
from kwire.spark.live.source import KafkaLiveSource
from kwire.spark.live.write_options import parse_write_options as parse_live_write
from kwire.spark.log.options import parse_options as parse_log
from kwire.spark.log.source import KafkaLogSource
from kwire.spark.log.write_options import parse_write_options as parse_log_write
from kwire.spark.options.option import user_options
from kwire.spark.schema import effective_options, render_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SERVERS = "localhost:9092"
LOG = {"path": "/logs", "subscribe": "orders"}
LIVE = {"kafka.bootstrap.servers": SERVERS, "subscribe": "orders"}
PARSERS: list[tuple[Callable[[Mapping[str, str]], object], dict[str, str]]] = [
    (parse_log, LOG),
    (lambda given: parse_log(given, "stream"), LOG),
    (parse_log_write, {"path": "/logs", "topic": "orders"}),
    (lambda given: parse_live(given, "batch"), LIVE),
    (lambda given: parse_live(given, "stream"), LIVE),
    (parse_live_write, {"kafka.bootstrap.servers": SERVERS, "topic": "orders"}),
    (parse_capture, {"path": "/captures"}),
    (parse_internal, {"path": "/logs", "kind": "groups"}),
]


def properties(options: Mapping[str, str], provider: str) -> dict[str, str]:
    """Return the options that Spark 4.1 to 4.3 pass when a table is created, without the path."""
    twice = {f"option.{name}": value for name, value in options.items() if name != "path"}
    of_table = {
        "provider": provider,
        "owner": "me",
        "comment": "what came in",
        "team": "x",
        "is_managed_location": "true",
    }
    if "path" in options:
        of_table |= {"location": f"file:{options['path']}", "path": f"file:{options['path']}"}
    return {name: value for name, value in options.items() if name != "path"} | twice | of_table


@pytest.mark.parametrize(("parse", "given"), PARSERS)
def test_options_added_by_spark_are_ignored(
    parse: Callable[[Mapping[str, str]], object], given: dict[str, str]
) -> None:
    plain = parse(given)
    assert parse({**given, "queryname": "copy", "checkpointlocation": "/checkpoints/copy"}) == plain
    assert parse(properties(given, "kafka-log")) == plain
    with pytest.raises(OptionError, match="Unknown option 'team'"):
        parse({**given, "team": "x"})


def test_invalid_table_options_are_rejected_as_in_a_query() -> None:
    with pytest.raises(OptionError, match=r"'subscribee' \(did you mean 'subscribe'\?\)"):
        parse_log(properties({**LOG, "subscribee": "x"}, "kafka-log"))


def test_the_path_of_a_table_is_unchanged() -> None:
    for written in ("/logs", "/tmp/{a,b}/x-*"):
        assert user_options(properties({"path": written}, "kafka-log")) == {"path": written}
    for url in ("s3://bucket/back up/x%20y", "zip://*::/tmp/logs.zip", "logs/data"):
        given = {"provider": "kafka-log", "owner": "me", "location": url, "path": url}
        assert user_options(given) == {"path": url}


@pytest.mark.parametrize("value", ["orders,x", '{"t":{"0":23}}', "it's", "a\\b", "a&b=c+d%20 e", "é\n", ""])
def test_the_schema_of_a_table_keeps_its_options(value: str) -> None:
    ddl = render_schema({"key": "binary", "topic": "string"}, properties({**LOG, "subscribe": value}, "kafka-log"))
    first, _, second = ddl.rpartition(", ")
    assert second == "topic string"
    comment = first.removeprefix("key binary COMMENT '").removesuffix("'")
    assert "'" not in comment
    assert "\\" not in comment
    schema = StructType(
        [StructField("key", BinaryType(), metadata={"comment": comment}), StructField("topic", StringType())]
    )
    assert effective_options({}, schema) == {**LOG, "subscribe": value}
    assert effective_options({"Subscribe": "u", "mode": "FAILFAST"}, schema) == {
        **LOG, "subscribe": "u", "mode": "FAILFAST",
    }  # fmt: skip


def test_other_schema_comments_are_not_options() -> None:
    assert render_schema({"key": "binary", "topic": "string"}, LOG) == "key binary, topic string"
    schema = StructType([StructField("key", BinaryType(), metadata={"comment": "the customer"})])
    assert effective_options(LOG, schema) == LOG


@pytest.mark.parametrize(
    "name",
    ["storage.secret", "storage.key", "storage.account_key", "storage.client_kwargs", "kafka.sasl.jaas.config",
     "kafka.sasl.password", "kafka.ssl.keystore.key", "kafka.ssl.truststore.password"],
)  # fmt: skip
def test_secrets_are_rejected_in_tables_without_showing_them(name: str) -> None:
    given = properties({"path": "/logs", name: "hunter2"}, "kafka-log")
    with pytest.raises(OptionError, match=f"'{name}' cannot be stored in a table") as caught:
        render_schema({"key": "binary"}, given)
    assert "hunter2" not in str(caught.value)


def test_a_query_without_options_gets_an_error_about_table_options() -> None:
    schema = StructType([StructField("value", BinaryType())])
    rows = StructType([StructField("value", BinaryType()), StructField("topic", StringType())])
    for source in (KafkaLogSource, KafkaLiveSource):
        with pytest.raises(OptionError, match=r"none of a table's to a Python source: create the table without"):
            source({}).reader(schema)
        with pytest.raises(OptionError, match=r"none of a table's to a Python source: use df\.writeTo"):
            source({}).writer(rows, overwrite=False)
    with pytest.raises(OptionError, match=r"none of a table's"):
        KafkaCaptureSource({}).reader(schema)
    with pytest.raises(OptionError, match="Option 'path' must be specified"):  # what load() without anything says
        KafkaLogSource({}).schema()


@pytest.fixture
def tables(spark: SparkSession) -> Iterator[Callable[[str], object]]:
    made: list[str] = []

    def create(statement: str) -> None:
        name = f"kafka_{len(made)}"
        made.append(name)
        spark.sql(f"CREATE TABLE {name} {statement}")

    yield create
    for name in made:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.slow
def test_tables_over_a_log_directory_are_read_as_batches_and_streams(
    spark: SparkSession, kafka_logs: dict[str, Path], tables: Callable[[str], object], tmp_path: Path
) -> None:
    path = kafka_logs["modern"] / "data"
    tables(f"USING `kafka-log` OPTIONS (path '{path}', subscribe 'txn', startingOffsets 'earliest') COMMENT 'it''s'")
    tables(f"USING `kafka-log` OPTIONS (subscribe 'txn', `kafka.isolation.level` 'read_committed') LOCATION '{path}'")
    assert spark.sql("SELECT * FROM kafka_0").count() == 626 + 639
    assert spark.sql('SELECT * FROM kafka_0 WITH (`endingOffsets` \'{"txn":{"0":12,"1":0}}\')').count() == 12
    assert spark.table("kafka_1").where("partition = 0").count() == 488
    assert spark.read.option("kafka.isolation.level", "read_uncommitted").table("kafka_1").count() == 626 + 639
    query = spark.readStream.table("kafka_0").writeStream.format("noop").queryName("grown")
    run = query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    run.awaitTermination()
    assert sum(each.numInputRows for each in run.recentProgress) == 626 + 639


@pytest.mark.slow
def test_tables_over_a_topic_are_read_and_written(
    spark: SparkSession, tables: Callable[[str], object], tmp_path: Path
) -> None:
    with Broker() as broker:
        broker.call(lambda node: node.controller.create_topic("t", 1))
        servers = f"`kafka.bootstrap.servers` '{broker.bootstrap_servers}'"
        tables(f"USING `kafka-live` OPTIONS ({servers}, subscribe 't') TBLPROPERTIES ('team' = 'x')")
        assert spark.table("kafka_0").count() == 0
        spark.sql(
            f"INSERT INTO kafka_0 WITH ({servers}, topic 't') (value) SELECT to_binary('ab', 'utf-8') FROM range(5)"
        )
        assert spark.table("kafka_0").count() == 5
        query = (
            spark.readStream.table("kafka_0")
            .writeStream.format("kafka-live")
            .queryName("copy")
            .option("kafka.bootstrap.servers", broker.bootstrap_servers)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
        )
        run = query.start()
        run.awaitTermination()
        assert run.name == "copy"
