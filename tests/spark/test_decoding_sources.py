"""Values and keys that the tasks of kafka-live and kafka-log decode, compared with from_registry."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.datasource")

from pyspark.sql.types import LongType, StructField, StructType
from tests.sampling import mostly_slow
from tests.schemas.registry_server import RegistryServer, serve
from tests.spark.test_schema import properties
from tests.waiting import until

from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.errors import InvalidSchema, OptionError, UnknownSchema
from kwire.messages import registry as messages
from kwire.records import ColumnWriter
from kwire.spark.live.source import KafkaLiveSource
from kwire.spark.options.decoding import parse_decoding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from tools.sail import SailEngine

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "lines", "type": {"type": "array", "items": {
            "type": "record", "name": "Line",
            "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
        }}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
    ],
}  # fmt: skip
NEWER: dict[str, Any] = {
    **ORDER,
    "fields": [*ORDER["fields"], {"name": "note", "type": ["null", "string"], "default": None}],  # type: ignore[misc]
}
PROTO = 'syntax = "proto3"; message Item { string sku = 1; repeated int32 sizes = 2; } message Other { int64 n = 1; }'
TEXT = '{"type": "object", "properties": {"text": {"type": "string"}, "size": {"type": "integer"}}}'
OLD_TYPE = "struct<id:bigint,at:timestamp,lines:array<struct<sku:string,count:int>>,tags:map<string,string>>"
NEW_TYPE = OLD_TYPE.removesuffix(">") + ",note:string>"


def avro(schema: dict[str, Any], schema_id: int, **more: Any) -> bytes:
    """Encode an order with fastavro."""
    out = io.BytesIO()
    order = {"id": schema_id, "at": 1_000, "lines": [{"sku": "a", "count": 2}], "tags": {"k": "v"}, **more}
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), order)
    return b"\0" + schema_id.to_bytes(4, "big") + out.getvalue()


class Topics:
    """A broker, with topics of good and bad values, and a registry."""

    def __init__(self, broker: Broker, server: RegistryServer, log_dir: Path) -> None:
        self.server, self.log_dir = server, log_dir
        self.options = {"kafka.bootstrap.servers": broker.bootstrap_servers}
        self.client = Client(broker.bootstrap_servers)
        self.old = server.add("orders-value", json.dumps(ORDER))["id"]
        self.new = server.add("orders-value", json.dumps(NEWER))["id"]
        self.item = server.add("items-value", PROTO, "PROTOBUF")["id"]
        self.note = server.add("notes-value", TEXT, "JSON")["id"]
        self.key = server.add("orders-key", '"string"')["id"]

    def create(self, name: str, partitions: int = 1) -> None:
        cls: Any = messages.get("CreateTopicsRequest")
        topic = cls.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        assert self.client.request(cls(topics=[topic], timeout_ms=10_000)).topics[0].error_code == 0

    def write(
        self, topic: str, values: list[bytes | None], *, key: bytes | None = None, header: bytes | None = None
    ) -> None:
        producer = Producer(self.client)
        headers = [] if header is None else [("__value_schema_id", header)]
        rows = pa.record_batch(
            {
                "key": pa.array([key] * len(values), pa.binary()),
                "value": pa.array(values, pa.binary()),
                "headers": pa.array(
                    [headers] * len(values), pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
                ),
            }
        )
        for piece in ColumnWriter(**producer.fields(topic, 0)).write(rows):
            producer.send(topic, 0, piece, len(values))


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    log_dir = tmp_path_factory.mktemp("log")
    with serve() as server, Broker(data_dir=log_dir) as broker:
        found = Topics(broker, server, log_dir)
        found.create("orders")
        order_key = b"\0" + found.key.to_bytes(4, "big") + b"\x04k1"
        good = [avro(ORDER, found.old), avro(NEWER, found.new, note="hi"), None, avro(ORDER, found.old, tags={})]
        found.write("orders", [*good], key=order_key)
        found.create("items")
        item = b"\0" + found.item.to_bytes(4, "big")
        found.write(
            "items", [item + b"\0\x0a\x01x\x12\x02\x05\x06", None, item + b"\x02\x02\x08\x07", item + b"\0\xff"]
        )
        found.create("notes")
        note = b"\0" + found.note.to_bytes(4, "big")
        found.write("notes", [note + b'{"text": "hi", "size": 3}', None, note + b'{"text": 5}', b"", b"plain"])
        found.create("faults")
        found.write("faults", [*good, good[0][:-1] if good[0] else None, b"\0\0\0\x0f\xffx", b"plain"])
        yield found
        found.client.close()


def load(spark: SparkSession, topics: Topics, topic: str, **options: Any) -> DataFrame:
    given = {**topics.options, "subscribe": topic, **{key.replace("_", "."): value for key, value in options.items()}}
    return spark.read.format("kafka-live").options(**given).load()


def both(spark: SparkSession, topics: Topics, topic: str, **options: Any) -> tuple[DataFrame, DataFrame]:
    """Return the decoded values of a topic: from the source, and from from_registry."""
    from kwire.spark.functions import from_registry

    given = {f"value_{name}": value for name, value in options.items() if value is not None}
    if "columns" in options:
        given["value_columns"] = ",".join(options["columns"])
    ours = load(spark, topics, topic, value_registry=topics.server.url, **given)
    named: dict[str, Any] = {} if "subject" in options else {"topic": topic}
    theirs = load(spark, topics, topic).select(
        from_registry("value", topics.server.url, **named, **options).alias("value"), "offset"
    )
    return ours.select("value", "offset"), theirs


@pytest.mark.parametrize(
    ("topic", "options"),
    mostly_slow(
        [
            ("orders", {}),
            ("orders", {"columns": ["note", "lines.sku"]}),
            ("faults", {"subject": "orders-value", "mode": "deadletter"}),
            ("items", {"mode": "permissive", "columns": ["sizes"]}),
            ("notes", {"mode": "deadletter"}),
            ("orders", {"schema": "union"}),
            ("orders", {"schema": 1}),
            ("orders", {"schema": json.dumps(ORDER)}),
            ("orders", {"mode": "deadletter", "names": "strict"}),
            ("faults", {"subject": "orders-value", "mode": "permissive"}),
            ("items", {"mode": "deadletter"}),
            ("items", {"mode": "deadletter", "message": "Other"}),
            ("notes", {"mode": "permissive", "columns": ["size"]}),
        ],
        quick=5,
    ),
)
def test_values_are_those_of_from_registry(
    spark: SparkSession, topics: Topics, topic: str, options: dict[str, Any]
) -> None:
    ours, theirs = both(spark, topics, topic, **options)
    assert ours.schema == theirs.schema
    found = ours.orderBy("offset").collect()
    assert found == theirs.orderBy("offset").collect()
    assert sum(row.value is not None for row in found) > 0


def test_values_are_those_of_fastavro(spark: SparkSession, topics: Topics) -> None:
    raw = [row.value for row in load(spark, topics, "orders").orderBy("offset").collect()]
    found = load(spark, topics, "orders", value_registry=topics.server.url, columns="offset,value").orderBy("offset")
    assert found.columns == ["offset", "value"]
    rows = [None if row.value is None else row.value.asDict(recursive=True) for row in found.collect()]
    writers = {topics.old: ORDER, topics.new: NEWER}
    expected: list[Any] = [
        None
        if value is None
        else fastavro.schemaless_reader(
            io.BytesIO(value[5:]), json.loads(json.dumps(writers[int.from_bytes(value[1:5], "big")])), NEWER
        )
        for value in raw
    ]
    for each in (*rows, *expected):
        if each is not None:
            each["at"] = each["at"].timestamp()
    assert rows == expected
    assert [None if row is None else row["note"] for row in rows] == [None, "hi", None, None]


def test_a_bad_value_fails_the_query_with_its_place(spark: SparkSession, topics: Topics) -> None:
    bad = load(spark, topics, "faults", value_registry=topics.server.url, value_subject="orders-value", columns="value")
    with pytest.raises(Exception, match=rf"faults-0, offset 4: schema id {topics.old}: tags.*at byte"):
        bad.collect()


def test_keys_are_decoded_beside_values_and_alone(spark: SparkSession, topics: Topics) -> None:
    url = topics.server.url
    frame = load(spark, topics, "orders", value_registry=url, key_registry=url)
    assert [frame.schema[name].dataType.simpleString() for name in ("key", "value")] == ["string", NEW_TYPE]
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert {row.key for row in frame.collect()} == {"k1"}
    alone = load(spark, topics, "orders", key_registry=url, columns="key,value")
    assert [type(row.value) for row in alone.where("value IS NOT NULL").collect()] == [bytes] * 3
    assert {row.key for row in alone.collect()} == {"k1"}


def test_ids_in_headers_are_found_if_asked(spark: SparkSession, topics: Topics) -> None:
    topics.create("headed")
    topics.server.add("headed-value", json.dumps(NEWER))
    body = avro(NEWER, topics.new, note="x")[5:]
    topics.write("headed", [body], header=b"\0" + topics.new.to_bytes(4, "big"))
    read = load(spark, topics, "headed", value_registry=topics.server.url, value_headers=True, columns="value")
    assert [row.value.note for row in read.collect()] == ["x"]
    without = load(spark, topics, "headed", value_registry=topics.server.url, value_mode="permissive")
    assert [row.value for row in without.collect()] == [None]


def test_a_log_directory_is_decoded_as_its_topic(spark: SparkSession, topics: Topics) -> None:
    given = {"subscribe": "orders", "value.registry": topics.server.url, "key.registry": topics.server.url}
    log_dir = str(topics.log_dir)
    found = spark.read.format("kafka-log").options(**given).load(log_dir)
    expected = load(spark, topics, "orders", value_registry=topics.server.url, key_registry=topics.server.url)
    assert found.schema == expected.schema
    assert found.orderBy("offset").collect() == expected.orderBy("offset").collect()
    given = {"subscribe": "orders,items", "value.registry": topics.server.url, "value.subject": "orders-value"}
    several = spark.read.format("kafka-log").options(**given).option("value.mode", "permissive").load(log_dir)
    assert several.where("value IS NOT NULL").select("topic").collect() == [("orders",)] * 3


def test_a_folder_is_read_on_the_driver(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    file = tmp_path / f"orders-value.1.{topics.old}.avsc"
    file.write_text(json.dumps(ORDER))
    frame = load(spark, topics, "orders", value_registry=str(tmp_path), value_mode="permissive", columns="value")
    file.unlink()
    assert [row.value is None for row in frame.collect()] == [False, True, True, False]


def test_names_of_fields_can_be_any_text(spark: SparkSession, topics: Topics) -> None:
    topics.create("odd")
    names = ["select", "a b", "c`d", "it's", "x,y:z", "é"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    entry = topics.server.add("odd-value", json.dumps(schema), "JSON")
    value = json.dumps(dict.fromkeys(names, "v")).encode()
    topics.write("odd", [b"\0" + entry["id"].to_bytes(4, "big") + value])
    (row,) = load(spark, topics, "odd", value_registry=topics.server.url, columns="value").collect()
    assert row.value.asDict() == dict.fromkeys(names, "v")


@pytest.mark.slow
def test_a_new_version_is_read_by_the_next_query(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topics.create("moving")
    first = topics.server.add("moving-value", json.dumps(ORDER))["id"]
    topics.write("moving", [avro(ORDER, first)])

    def start() -> Any:
        options = {**topics.options, "subscribe": "moving", "startingOffsets": "earliest"}
        options |= {"value.registry": topics.server.url, "columns": "value,offset"}
        frame = spark.readStream.format("kafka-live").options(**options).load()
        types.append(frame.schema["value"].dataType.simpleString())

        def keep(batch: DataFrame, number: int) -> None:
            rows.extend(row.value.asDict() for row in batch.orderBy("offset").collect())

        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(processingTime="100 milliseconds").start()

    rows: list[dict[str, Any]] = []
    types: list[str] = []
    query = start()
    try:
        until(lambda: len(rows) == 1 or query.exception())
        newer = topics.server.add("moving-value", json.dumps(NEWER))["id"]
        topics.write("moving", [avro(NEWER, newer, note="hi")])
        until(lambda: len(rows) == 2 or query.exception())
    finally:
        query.stop()
    assert query.exception() is None
    topics.write("moving", [avro(NEWER, newer, note="hi")])
    query = start()
    try:
        until(lambda: len(rows) == 3 or query.exception())
    finally:
        query.stop()
    assert types == [OLD_TYPE, NEW_TYPE]
    assert [(row["id"], row.get("note", "absent")) for row in rows] == [
        (first, "absent"),
        (newer, "absent"),
        (newer, "hi"),
    ]


def test_a_table_keeps_its_columns_when_the_subject_has_a_new_version(spark: SparkSession, topics: Topics) -> None:
    topics.create("kept")
    first = topics.server.add("kept-value", json.dumps(ORDER))["id"]
    topics.write("kept", [avro(ORDER, first)])
    given = {**topics.options, "subscribe": "kept", "value.registry": topics.server.url, "columns": "value,offset"}
    listed = ", ".join(f"`{name}` '{value}'" for name, value in given.items())
    spark.sql(f"CREATE TABLE kept USING `kafka-live` OPTIONS ({listed})")
    try:
        newer = topics.server.add("kept-value", json.dumps(NEWER))["id"]
        topics.write("kept", [avro(NEWER, newer, note="hi")])
        table = spark.table("kept")
        assert table.schema["value"].dataType.simpleString() == OLD_TYPE
        assert [row.value.id for row in table.orderBy("offset").collect()] == [first, newer]
    finally:
        spark.sql("DROP TABLE kept")


def test_a_table_does_not_store_credentials_of_a_registry(topics: Topics) -> None:
    for name in ("value.registry.basic.auth.user.info", "value.registry.bearer.auth.token"):
        given = {**topics.options, "subscribe": "orders", "value.registry": topics.server.url, name: "a:b"}
        source = KafkaLiveSource(properties(given, "kafka-live"))
        with pytest.raises(OptionError, match=f"'{name}' cannot be stored in a table"):
            source.schema()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"value.subject": "x"}, OptionError, r"'value\.subject': requires option 'value\.registry'"),
        ({"key.registry.retries": "1"}, OptionError, r"'key\.registry\.retries': requires option 'key\.registry'"),
        ({"value.regstry": "x"}, OptionError, r"Unknown option 'value\.regstry' \(did you mean 'value\.registry'"),
        ({"value.format": "xml"}, OptionError, r"'value\.format': expected one of json, csv, got 'xml'"),
        ({"value.format": "json"}, OptionError, r"'value\.\*': no JSON object with properties among 3 values"),
        ({"value.format": "json", "value.schema": "17"}, OptionError, r"'value\.schema': expected DDL, such as"),
        ({"value.format": "json", "value.schema": "a INTT"}, OptionError, r"'value\.\*': DDL: the type 'INTT'"),
        ({"value.format": "json", "value.schema": "a BINARY"}, OptionError, r"'a': binary cannot be decoded from JSON"),
        (
            {"value.format": "json", "value.registry": "URL"},
            OptionError,
            r"'value\.registry': does not apply to option",
        ),
        ({"headers.registry": "x"}, OptionError, r"Unknown option 'headers\.registry'"),
        ({"value.registry": " "}, OptionError, r"'value\.registry': expected a URL or a folder"),
        (
            {"value.registry": "http://a:b@c"},
            OptionError,
            r"holds a password.*registry\.basic\.auth\.user",
        ),
        ({"value.registry": "URL", "subscribe": "orders,items"}, OptionError, r"requires option 'value\.subject'"),
        ({"value.registry": "URL", "value.mode": "x"}, OptionError, r"'value\.mode': expected one of failfast, perm"),
        ({"value.registry": "URL", "columns": "key"}, OptionError, r"'value\.\*': require column 'value'"),
        ({"value.registry": "URL", "value.columns": "nope"}, OptionError, r"'value\.\*': .*unknown column 'nope'"),
        ({"value.registry": "URL", "value.schema": "lates"}, OptionError, r"'value\.\*': schema: expected 'latest'"),
        ({"value.registry": "URL", "value.registry.retry": "1"}, OptionError, r"'value\.\*': unknown setting.*'retry'"),
        ({"value.registry": "URL", "value.subject": "none"}, UnknownSchema, "unknown subject 'none'"),
        ({"value.registry": "URL", "subscribe": "items", "value.message": "Itm"}, InvalidSchema, "did you mean 'Item'"),
    ],
)
def test_faults_of_options_are_found_when_the_source_is_loaded(
    topics: Topics, options: dict[str, str], error: type[Exception], message: str
) -> None:
    given = {key: topics.server.url if value == "URL" else value for key, value in options.items()}
    with pytest.raises(error, match=message):
        KafkaLiveSource({"subscribe": "orders", **topics.options, **given}).schema()


def test_a_schema_of_the_user_has_the_type_of_the_registry(topics: Topics) -> None:
    given = {"subscribe": "orders", **topics.options, "value.registry": topics.server.url}
    order = StructType([StructField("id", LongType())])
    whole = StructType([StructField("offset", LongType()), StructField("value", order)])
    with pytest.raises(OptionError, match=r"column 'value' is of type struct<id:bigint,.*, not struct<id:bigint>"):
        KafkaLiveSource(given).reader(whole)
    reader: Any = KafkaLiveSource({**given, "value.columns": "id"}).reader(StructType(whole.fields[::-1]))
    assert reader.columns == ("value", "offset")


def test_reprs_hide_the_settings_of_a_registry() -> None:
    given = {"value.registry": "http://a", "value.registry.basic.auth.user.info": "alice:wonderland"}
    (found,) = parse_decoding(given)
    assert found.settings == {"basic.auth.user.info": "alice:wonderland"}
    assert "wonderland" not in repr(found)


def read_on_sail(spark: SparkSession, options: dict[str, str]) -> tuple[str, pa.Table]:
    """Return the schema and the rows, with Sail's session."""
    frame = spark.read.format("kafka-live").options(**options).load()
    return frame.schema.simpleString(), frame.orderBy("offset").toArrow()


@pytest.mark.slow
def test_sail_gets_the_same_values(spark: SparkSession, sail: SailEngine, topics: Topics) -> None:
    options = {**topics.options, "subscribe": "faults", "value.registry": topics.server.url, "columns": "value,offset"}
    options |= {"value.subject": "orders-value", "value.mode": "deadletter"}
    schema, rows = sail(read_on_sail, options)
    expected_schema, expected = read_on_sail(spark, options)
    assert schema == expected_schema
    assert rows.to_pylist() == expected.to_pylist()
