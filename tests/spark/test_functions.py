"""from_kafka, to_kafka and Confluent's prefix of payloads."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from kwire.capture import read_capture
from kwire.errors import KwireError, Malformed, OptionError, SchemaError, Truncated, UnsupportedVersion
from kwire.messages import registry
from kwire.plan.nested_columns import message_bounds, version_type
from kwire.plan.nested_versions import PrefixedReader, VersionsReader
from kwire.protocol.record_values import write_prefixed
from kwire.spark.functions import from_kafka, schema_registry_id, schema_registry_payload, to_kafka
from kwire.spark.message_types import struct_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Metadata: Any = registry.get("MetadataResponse")
Commit: Any = registry.get("OffsetCommitValue")

ORDER = """
{ "type": "data", "name": "Order", "validVersions": "0-1", "flexibleVersions": "1+", "fields": [
  { "name": "Id", "type": "uuid", "versions": "0+" },
  { "name": "Amount", "type": "uint32", "versions": "0+" },
  { "name": "Lines", "type": "[]Line", "versions": "0+", "nullableVersions": "0+", "fields": [
    { "name": "Sku", "type": "string", "versions": "0+" },
    { "name": "Count", "type": "int32", "versions": "0+", "default": "1" } ] },
  { "name": "Note", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" } ] }
"""


def metadata(name: str = "orders") -> Any:
    partitions = [Metadata.MetadataResponsePartition(partition_index=i, replica_nodes=[1, 2]) for i in range(3)]
    return Metadata(controller_id=1, topics=[Metadata.MetadataResponseTopic(name=name, partitions=partitions)])


def binary(spark: SparkSession, values: list[bytes | None]) -> Any:
    return spark.createDataFrame(
        [(i, None if v is None else bytearray(v)) for i, v in enumerate(values)], "i int, value binary"
    )


def test_spark_has_the_types_of_the_reader() -> None:
    from pyspark.sql.pandas.types import to_arrow_type

    for name in registry.names():
        spec = registry.get(name).SPEC
        for version in (None, *spec.valid):
            kind: Any = struct_type(spec, version)
            assert to_arrow_type(kind, timezone="UTC") == version_type(spec, version), f"{name} {version}"


@pytest.mark.slow
def test_messages_round_trip_as_structs(spark: SparkSession) -> None:
    from pyspark.sql.functions import col

    wires = [metadata(f"t{i}").encode(version=9) for i in range(50)]
    frame = binary(spark, [*wires, None])
    read = frame.withColumn("m", from_kafka(col("value"), "MetadataResponse", 9))
    rows = read.orderBy("i").collect()
    assert [row.m.topics[0].name for row in rows[:-1]] == [f"t{i}" for i in range(50)]
    assert rows[-1].m is None
    assert rows[0].m.topics[0].partitions[2].asDict(recursive=True) == {
        "error_code": 0, "partition_index": 2, "leader_id": 0, "leader_epoch": -1,
        "replica_nodes": [1, 2], "isr_nodes": [], "offline_replicas": [],
    }  # fmt: skip
    assert read.selectExpr("explode(m.topics.partitions[0])").count() == 150
    again = read.select("i", to_kafka("m", "MetadataResponse", 9).alias("again")).orderBy("i").collect()
    assert [row.again and bytes(row.again) for row in again] == [*wires, None]


def test_custom_definitions_are_read_from_files_and_text(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "Order.json").write_text(ORDER)
    orders = spark.sql(
        "SELECT named_struct('id', 'AAAAAAAAAAAAAAAAAAAABQ', 'amount', 4000000000L, 'lines',"
        " array(named_struct('sku', 'a'), named_struct('sku', 'b'))) AS o"
    )
    wire = orders.select(to_kafka("o", str(tmp_path / "Order.json"), 1).alias("value"))
    (row,) = wire.select(from_kafka("value", ORDER, 1).alias("o")).select("o.*").collect()
    assert (row.id, row.amount, row.note) == ("AAAAAAAAAAAAAAAAAAAABQ", 4000000000, "")
    assert [(line.sku, line["count"]) for line in row.lines] == [("a", 1), ("b", 1)]


def test_undecodable_values_fail_the_query_or_are_null(spark: SparkSession) -> None:
    frame = binary(spark, [metadata().encode(version=9), b"\0\0\0\0\x01", b""]).coalesce(1)
    with pytest.raises(Exception, match=r"in row 1 of MetadataResponse version 9") as caught:
        frame.select(from_kafka("value", "MetadataResponse", 9)).collect()
    assert "brokers" in str(caught.value) or "cluster_id" in str(caught.value)
    rows = frame.select(from_kafka("value", "MetadataResponse", 9, {"mode": "permissive"}).alias("m")).collect()
    assert [row.m is None for row in rows] == [False, True, True]
    bad = spark.sql("SELECT named_struct('topics', array(named_struct('name', CAST(NULL AS STRING)))) AS m")
    with pytest.raises(Exception, match=r"topics\[0\].name: .*MetadataResponse version 9\), in row 0"):
        bad.select(to_kafka("m", "MetadataResponse", 9)).collect()


def test_frames_of_a_capture_are_decoded_with_their_header(spark: SparkSession, kafka_logs: dict[str, Path]) -> None:
    path = next(kafka_logs["wire"].rglob("k391.clean.pcap"))
    exchanges = [each for each in read_capture(str(path)) if each.api_name == "Fetch"]
    version = exchanges[0].api_version
    assert version is not None
    frame = spark.read.format("kafka-capture").options(apis="Fetch", bodies="bytes").load(str(path))
    read = frame.where(f"api_version = {version}").select(
        from_kafka("request", "FetchRequest", version, {"header": True}).alias("request"),
        from_kafka("response", "FetchResponse", version, {"header": "true", "mode": "PERMISSIVE"}).alias("response"),
    )
    rows = read.collect()
    expected = [each.request_message() for each in exchanges if each.api_version == version]
    assert sorted(row.request.max_wait_ms for row in rows) == sorted(each.max_wait_ms for each in expected)
    found = {
        bytes(p.records or b"") for row in rows if row.response for t in row.response.responses for p in t.partitions
    }
    answers = [each.response_message() for each in exchanges if each.api_version == version and each.response]
    assert found == {p.records or b"" for answer in answers for t in answer.responses for p in t.partitions}


def commits() -> list[tuple[Any, int]]:
    return [(Commit(offset=100 + v, metadata=f"m{v}"), v) for v in Commit.VALID_VERSIONS]


def test_records_of_internal_topics_contain_their_version(spark: SparkSession) -> None:
    frame = binary(spark, [*(write_prefixed(value, version) for value, version in commits()), None])
    read = frame.select("i", from_kafka("value", "OffsetCommitValue", None, {"prefixed": True}).alias("c"))
    rows = read.orderBy("i").collect()
    assert [(row.c.offset, row.c.metadata) for row in rows[:-1]] == [(v.offset, v.metadata) for v, _ in commits()]
    assert rows[-1].c is None
    assert rows[0].c.leader_epoch is None  # version 0 has none
    assert rows[3].c.leader_epoch == -1
    assert rows[3].c.expire_timestamp is None


def test_an_unexpected_prefix_is_an_error_with_its_row() -> None:
    key = registry.get("OffsetCommitKey")
    assert key.SPEC.kind == "coordinator-key"
    number = key.API_KEY
    wire = write_prefixed(key(group="g", topic="t", partition=3), 0)
    data = pa.array([wire, b"\0\7" + wire[2:], b"\0", b"\xff\xff"], pa.binary())

    for version in (None, 0):
        reader = PrefixedReader(key.SPEC, version)
        read = reader.read_bounds(*message_bounds(data), permissive=True)
        assert read.to_pylist() == [{"group": "g", "topic": "t", "partition": 3}, None, None, None]
        with pytest.raises(Truncated, match="in row 2 of OffsetCommitKey"):
            reader.read_bounds(*message_bounds(data))
        with pytest.raises(Malformed, match=f"number 7, not {number}, in row 1 of OffsetCommitKey"):
            reader.read_bounds(*message_bounds(data.slice(0, 2)))
    with pytest.raises(UnsupportedVersion, match=r"OffsetCommitValue: no version -1, in row 0; versions are 0-"):
        PrefixedReader(Commit.SPEC, None).read_bounds(*message_bounds(data.slice(3)))


def test_values_of_several_versions_keep_the_order_of_the_rows() -> None:
    """All versions of a nested message, shuffled, with nulls and garbage."""

    draw = random.Random(3)
    rows: list[tuple[int, bytes | None, str | None]] = []
    for i in range(300):
        version = draw.choice(list(Metadata.VALID_VERSIONS))
        message = metadata(f"t{i}")
        if version == 0:
            message.controller_id = Metadata().controller_id
        wire = message.encode(version=version)
        kind = draw.choice(["good", "good", "cut", "null"])
        rows.append(
            (version, {"good": wire, "cut": wire[:-1], "null": None}[kind], f"t{i}" if kind == "good" else None)
        )
    data, bounds = message_bounds(pa.array([wire for _, wire, _ in rows], pa.binary()))

    versions = np.array([version for version, _, _ in rows], np.int64)
    array = VersionsReader(Metadata.SPEC).read_bounds(data, bounds, versions, permissive=True)
    array.validate(full=True)
    assert array.type == version_type(Metadata.SPEC, None)
    for value, (version, _, name) in zip(array.to_pylist(), rows, strict=True):
        assert (value is None) == (name is None)
        if value is not None:
            assert value["topics"][0]["name"] == name
            assert (value["topics"][0]["topic_id"] is None) == (version < 10)
            assert len(value["topics"][0]["partitions"]) == 3
            assert (value["topics"][0]["partitions"][0]["leader_epoch"] is None) == (version < 7)


def test_the_registry_functions_run_in_spark(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT X'000000002A70' AS value, X'6B' AS key, array(named_struct('key', '__key_schema_id', 'value',"
        " X'0000000009')) AS headers"
    )
    (row,) = frame.select(
        schema_registry_id("value").alias("a"),
        schema_registry_payload("value").alias("b"),
        schema_registry_id("key", "headers", key=True).alias("c"),
        schema_registry_payload("key", "headers", key=True).alias("d"),
    ).collect()
    assert (row.a, bytes(row.b), row.c, bytes(row.d)) == ("42", b"p", "9", b"k")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("MetadataRespons", 9), OptionError, "did you mean 'MetadataResponse'"),
        (("MetadataResponse", 99), UnsupportedVersion, "MetadataResponse: no version 99; versions are 0-13"),
        (("MetadataResponse", None), OptionError, "requires option 'prefixed'"),
        (("missing.json", 1), OptionError, "missing.json': cannot read the file"),
        (('{ "type": "data" }', 1), SchemaError, "definition"),
        (("MetadataResponse", 9, {"mod": "x"}), OptionError, "did you mean 'mode'"),
        (("MetadataResponse", 9, {"mode": "x"}), OptionError, "Option 'mode': expected one of FAILFAST, PERMISSIVE"),
        (("OffsetCommitValue", 1, {"header": True}), OptionError, "is not a request or response"),
        (("MetadataResponse", 9, {"header": True, "prefixed": True}), OptionError, "Only one of"),
    ],
)
def test_invalid_arguments_are_rejected_immediately(arguments: Any, error: type[KwireError], message: str) -> None:
    with pytest.raises(error, match=message):
        from_kafka("value", *arguments)


def test_json_definitions_give_the_same_result(spark: SparkSession) -> None:
    """The struct as JSON equals Kafka's own JSON form, except for the spelling of names."""
    message = metadata()
    (row,) = (
        binary(spark, [message.encode(version=9)])
        .selectExpr("value")
        .select(from_kafka("value", "MetadataResponse", 9).alias("m"))
        .selectExpr("to_json(m, map('ignoreNullFields', 'false')) AS j")
        .collect()
    )
    theirs = json.dumps(message.to_json(version=9))
    camel = json.loads(row.j, object_pairs_hook=lambda pairs: {_camel(k): v for k, v in pairs})
    assert camel == json.loads(theirs)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


@pytest.mark.slow
def test_the_examples_of_the_page_run(spark: SparkSession) -> None:
    text = (Path(__file__).parents[2] / "docs" / "functions.md").read_text("utf-8")
    names: dict[str, Any] = {"spark": spark}
    examples = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(examples) == 4
    for example in examples:
        exec(compile(example, "functions.md", "exec"), names)
