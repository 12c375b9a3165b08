"""A real registry: schemas are registered, found and resolved, and values come back as they were written."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from tools import apicurio

from kwire.errors import UnknownSchema
from kwire.schemas import Reference, Registry, decode_arrow, encode_arrow

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

MONEY = {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]}
ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "price", "type": "shop.Money"}],
}
NEWER = {
    **ORDER,
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": "shop.Money"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
PROTO = """
    syntax = "proto3"; package shop; import "sku.proto"; import "google/protobuf/timestamp.proto";
    message Line { Sku sku = 1; repeated int32 counts = 2; google.protobuf.Timestamp at = 3; }
"""
SKU = 'syntax = "proto3"; package shop; message Sku { string code = 1; }'


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with apicurio.running(tmp_path_factory.mktemp("apicurio") / "log") as url:
        yield Registry(url)


def test_avro_with_a_reference_in_two_versions(registry: Registry) -> None:
    registry.register("shop.Money", json.dumps(MONEY))
    uses = [Reference("shop.Money", "shop.Money", 1)]
    first = registry.register("orders-value", json.dumps(ORDER), references=uses)
    old = encode_arrow(pa.array([{"id": 1, "price": {"cents": 5}}]), registry, topic="orders")
    second = registry.register("orders-value", json.dumps(NEWER), references=uses)
    assert first.id != second.id
    assert registry.versions("orders-value") == [1, 2]
    new = encode_arrow(pa.array([{"id": 2, "price": {"cents": 7}, "note": "x"}]), registry, topic="orders")
    assert decode_arrow(pa.concat_arrays([old, new]), registry, topic="orders").to_pylist() == [
        {"id": 1, "price": {"cents": 5}, "note": None},
        {"id": 2, "price": {"cents": 7}, "note": "x"},
    ]


def test_protobuf_with_an_import(registry: Registry) -> None:
    registry.register("sku.proto", SKU, "PROTOBUF")
    registry.register("lines-value", PROTO, "PROTOBUF", [Reference("sku.proto", "sku.proto", 1)])
    rows = [{"sku": {"code": "tea"}, "counts": [1, -2], "at": None}, None]
    written = encode_arrow(pa.array(rows), registry, topic="lines")
    assert decode_arrow(written, registry, topic="lines").to_pylist() == rows


def test_json_schema(registry: Registry) -> None:
    registry.register("notes-value", '{"type": "object", "properties": {"text": {"type": "string"}}}', "JSON")
    written = encode_arrow(pa.array([{"text": "é"}]), registry, topic="notes")
    assert decode_arrow(written, registry, topic="notes").to_pylist() == [{"text": "é"}]


def test_what_it_does_not_know(registry: Registry) -> None:
    with pytest.raises(UnknownSchema, match="unknown schema id 9999"):
        registry.schema(9999)
    with pytest.raises(UnknownSchema, match="unknown subject 'nope'"):
        registry.latest("nope")
    with pytest.raises(UnknownSchema, match="unknown schema GUID"):
        registry.schema("8f2b3a74-1d5e-4c5f-9b7a-0123456789ab")
