"""from_registry and to_registry in Spark, with a registry over HTTP."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.schemas.registry_server import RegistryServer, serve

from kwire.errors import InvalidSchema, OptionError, RegistryError, UnknownSchema
from kwire.schemas import Registry
from kwire.spark.functions import from_registry, to_registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}
NEWER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}  # type: ignore[misc]
PROTO = 'syntax = "proto3"; message Item { string sku = 1; Kind kind = 2; } enum Kind { NONE = 0; BOOK = 1; }'


@pytest.fixture(scope="module")
def server() -> Iterator[RegistryServer]:
    with serve() as running:
        running.add("orders-value", json.dumps(ORDER))
        running.add("orders-value", json.dumps(NEWER))
        running.add("items-value", PROTO, "PROTOBUF")
        running.add("notes-value", '{"type": "object", "properties": {"text": {"type": "string"}}}', "JSON")
        yield running


OLD_ROW = b"\0\0\0\0\1" + b"\x02" + b"\xd0\x0f" + b"\x04\x04\xd2"
NEW_ROW = b"\0\0\0\0\2" + b"\x04" + b"\xd0\x0f" + b"\x04\x04\xd2" + b"\x02\x04hi"
COLUMNS = "id: bigint, at: timestamp, price: decimal(9,2), note: string"
AT = datetime.datetime.fromtimestamp(1)


def binary(spark: SparkSession, *values: bytes | None) -> DataFrame:
    rows = [("orders", 3, 100 + i, None if v is None else bytearray(v)) for i, v in enumerate(values)]
    return spark.createDataFrame(rows, "topic string, partition int, offset bigint, value binary").coalesce(1)


def test_rows_of_several_schemas_become_one_type(spark: SparkSession, server: RegistryServer) -> None:
    frame = binary(spark, OLD_ROW, NEW_ROW, None).select(from_registry("value", server.url, topic="orders").alias("o"))
    assert frame.schema["o"].dataType.simpleString() == "struct<id:bigint,at:timestamp,price:decimal(9,2),note:string>"
    first, second, third = (row.o for row in frame.collect())
    assert (first.id, first.at, str(first.price), first.note) == (1, AT, "12.34", None)
    assert (second.id, second.note) == (2, "hi")
    assert third is None


def test_columns_choose_the_fields(spark: SparkSession, server: RegistryServer) -> None:
    function = from_registry("value", server.url, topic="orders", columns=["note", "id"])
    frame = binary(spark, OLD_ROW, NEW_ROW, None).select(function.alias("o"))
    assert frame.schema["o"].dataType.simpleString() == "struct<id:bigint,note:string>"
    assert [None if row.o is None else tuple(row.o) for row in frame.collect()] == [(1, None), (2, "hi"), None]
    with pytest.raises(OptionError, match=r"unknown column 'nope'"):
        from_registry("value", server.url, topic="orders", columns=["nope"])


def test_the_reader_can_be_an_older_schema_or_the_union(spark: SparkSession, server: RegistryServer) -> None:
    frame = binary(spark, OLD_ROW, NEW_ROW)
    older = frame.select(from_registry("value", server.url, schema=1).alias("o"))
    assert older.schema["o"].dataType.fieldNames() == ["id", "at", "price"]  # type: ignore[attr-defined]
    assert [row.o.id for row in older.collect()] == [1, 2]
    union = frame.select(from_registry("value", server.url, topic="orders", schema="union").alias("o"))
    assert [row.o.note for row in union.collect()] == [None, "hi"]


def test_a_bad_value_fails_the_query_with_its_place(spark: SparkSession, server: RegistryServer) -> None:
    frame = binary(spark, OLD_ROW, NEW_ROW[:-1])
    decoded = from_registry("value", server.url, topic="orders", source=("topic", "partition", "offset"))
    with pytest.raises(Exception, match=r"orders-3, offset 101: schema id 2: note.*at byte"):
        frame.select(decoded).collect()


def test_bad_values_are_null_or_kept_with_their_reason(spark: SparkSession, server: RegistryServer) -> None:
    frame = binary(spark, OLD_ROW, b"plain", b"\0\0\0\0\x63x", None)
    permissive = from_registry("value", server.url, topic="orders", mode="permissive").alias("o")
    assert [row.o is None for row in frame.select(permissive).collect()] == [False, True, True, True]
    dead = from_registry("value", server.url, topic="orders", mode="deadletter").alias("o")
    rows = [row.o for row in frame.select(dead).collect()]
    assert [row.value is None for row in rows] == [False, True, True, True]
    assert rows[0].error is rows[3].error is None
    assert rows[1].error.startswith("no schema id: the value begins with 70 6c 61 69")
    assert "unknown schema id 99" in rows[2].error


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("topic", "value", "columns"),
    [
        ("orders", {"id": 5, "at": AT, "price": Decimal("1.50"), "note": None}, COLUMNS),
        ("items", {"sku": "x", "kind": "BOOK"}, "sku: string, kind: string"),
        ("notes", {"text": "hi"}, "text: string"),
    ],
)
def test_values_are_written_and_read_back(
    spark: SparkSession, server: RegistryServer, topic: str, value: dict[str, Any], columns: str
) -> None:
    frame = spark.createDataFrame([(value,), (None,)], f"v struct<{columns}>")
    written = frame.select(to_registry("v", server.url, topic=topic).alias("value"))
    assert written.schema["value"].dataType.simpleString() == "binary"
    read = written.select(from_registry("value", server.url, topic=topic).alias("v")).collect()
    assert [None if row.v is None else row.v.asDict() for row in read] == [value, None]


def test_a_folder_needs_no_registry_on_workers(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "orders-value.1.1.avsc").write_text(json.dumps(ORDER))
    decoded = from_registry("value", Registry(tmp_path), topic="orders").alias("o")
    (tmp_path / "orders-value.1.1.avsc").unlink()
    assert [row.o.id for row in binary(spark, OLD_ROW).select(decoded).collect()] == [1]


def test_ids_in_headers_are_found(spark: SparkSession, server: RegistryServer) -> None:
    frame = spark.sql(
        f"SELECT X'{NEW_ROW[5:].hex()}' AS value,"
        " array(named_struct('key', '__value_schema_id', 'value', X'0000000002')) AS headers"
    )
    read = frame.select(from_registry("value", server.url, topic="orders", headers="headers").alias("o"))
    assert [row.o.note for row in read.collect()] == ["hi"]


def test_strict_names_refuse_another_record(spark: SparkSession, server: RegistryServer) -> None:
    renamed = json.dumps({**NEWER, "name": "Refund"})
    frame = binary(spark, OLD_ROW, NEW_ROW)
    for names, expected in (("any", [False, False]), ("strict", [True, True])):
        function = from_registry("value", server.url, schema=renamed, mode="permissive", names=names)
        assert [row.o is None for row in frame.select(function.alias("o")).collect()] == expected
    function = from_registry("value", server.url, topic="orders", names="strict")
    assert [row.o.id for row in frame.select(function.alias("o")).collect()] == [1, 2]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, OptionError, "one of subject, topic and schema is required"),
        ({"topic": "none"}, UnknownSchema, "unknown subject 'none-value'"),
        ({"topic": "orders", "mode": "x"}, OptionError, "mode: expected one of failfast, permissive, deadletter"),
        ({"topic": "items", "names": "strict"}, OptionError, "names: strict is for Avro; a Protobuf message"),
        ({"topic": "items", "message": "Itm"}, InvalidSchema, "no message 'Itm' .did you mean 'Item'"),
        ({"topic": "orders", "source": ("offset",)}, OptionError, "source: expected the columns"),
        ({"schema": '{"type": "record"}'}, InvalidSchema, "schema given by the caller: name of a record missing"),
    ],
)
def test_faults_of_arguments_are_found_when_the_function_is_called(
    server: RegistryServer, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        from_registry("value", server.url, **options)


def test_a_registry_that_is_down_fails_the_query_in_every_mode(spark: SparkSession) -> None:
    with serve() as server:
        server.add("orders-value", json.dumps(ORDER))
        registry = Registry(server.url, retries=0)
        decoded = from_registry("value", registry, topic="orders", mode="permissive")
        frame = binary(spark, b"\0\0\0\0\x07x").select(decoded)
    with pytest.raises(Exception, match=r"RegistryError: .*cannot be used: .*Connection refused"):
        frame.collect()
    with pytest.raises(RegistryError, match="cannot be used"):
        from_registry("value", Registry(server.url, retries=0), topic="orders")


@pytest.mark.slow
def test_the_examples_of_the_page_run(spark: SparkSession) -> None:
    text = (Path(__file__).parents[2] / "docs" / "schemas.md").read_text("utf-8")
    names: dict[str, Any] = {"spark": spark}
    examples = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(examples) == 7
    for example in examples:
        exec(compile(example, "schemas.md", "exec"), names)
