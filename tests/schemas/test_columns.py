"""decode_arrow and encode_arrow over all formats: ids, readers, unions, errors."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from tests.schemas.registry_server import serve

from kwire.errors import EncodeError, InvalidSchema, KwireError, Malformed, OptionError, RegistryError, UnknownSchema
from kwire.schemas import (
    Registry,
    decode,
    decode_arrow,
    encode,
    encode_arrow,
    schema_type,
    union_type,
)
from kwire.schemas.avro import columns
from kwire.schemas.choice import SchemaChoice
from kwire.schemas.unions import conform, merge_types
from kwire.schemas.value_decoder import ValueDecoder

GUID = UUID("8f2b3a74-1d5e-4c5f-9b7a-0123456789ab")


def record(*fields: tuple[str, Any], name: str = "O") -> str:
    described = [{"name": f, "type": t} | ({"default": None} if isinstance(t, list) else {}) for f, t in fields]
    return json.dumps({"type": "record", "name": name, "fields": described})


PROTO = """
    syntax = "proto3"; package p;
    message A { int32 x = 1; message N { string s = 1; } }
    message B { int64 y = 1; }
"""
ENTRIES = [
    {"subject": "o-value", "version": 1, "id": 1, "schema": record(("id", "int"))},
    {"subject": "o-value", "version": 2, "id": 2, "schema": record(("id", "long"), ("n", ["null", "string"]))},
    {"subject": "bad-value", "version": 1, "id": 4, "schema": record(("id", "string"))},
    {"subject": "p-value", "version": 1, "id": 5, "schemaType": "PROTOBUF", "schema": PROTO},
    {
        "subject": "j-value",
        "version": 1,
        "id": 6,
        "schemaType": "JSON",
        "schema": '{"properties": {"a": {"type": "integer"}}}',
    },
    {"subject": "broken-value", "version": 1, "id": 7, "schema": "{"},
    {"subject": "g-value", "version": 1, "id": 8, "guid": str(GUID), "schema": record(("id", "long"))},
    {
        "subject": "r-value",
        "version": 1,
        "id": 9,
        "schema": '{"type": "record", "name": "R", "fields": [{"name": "o", "type": "O"}]}',
        "references": [{"name": "O", "subject": "o-value", "version": 2}],
    },
    {
        "subject": "lost-value",
        "version": 1,
        "id": 10,
        "schema": '{"type": "record", "name": "R", "fields": [{"name": "o", "type": "O"}]}',
        "references": [{"name": "O", "subject": "nowhere", "version": 2}],
    },
]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    folder = tmp_path_factory.mktemp("registry")
    (folder / "all.json").write_text(json.dumps(ENTRIES))
    return Registry(folder)


def prefixed(number: int, body: bytes) -> bytes:
    return b"\0" + struct.pack(">i", number) + body


TWO_ROW = {"id": 2, "n": "x"}
ONE, TWO = prefixed(1, b"\x02"), prefixed(2, b"\x04\x02\x02x")


def test_each_value_is_read_by_its_writers_schema(registry: Registry) -> None:
    for values in (pa.array([ONE, None, TWO, ONE]), pa.array([b"-", ONE, None, TWO, ONE], pa.large_binary()).slice(1)):
        found = decode_arrow(values, registry, topic="o")
        assert found.type == pa.struct([("id", pa.int64()), ("n", pa.string())])
        assert found.to_pylist() == [{"id": 1, "n": None}, None, {"id": 2, "n": "x"}, {"id": 1, "n": None}]
    chunked = pa.chunked_array([[ONE], [TWO]])
    assert decode_arrow(chunked, registry, topic="o", columns=["n"]).to_pylist() == [{"n": None}, {"n": "x"}]
    assert decode_arrow(pa.array([], pa.binary()), registry, topic="o").to_pylist() == []


def test_the_reader_is_the_latest_a_given_one_or_the_union(registry: Registry) -> None:
    values = pa.array([ONE, TWO])
    wide = pa.struct([("id", pa.int64()), ("n", pa.string())])
    assert decode_arrow(values, registry, subject="o-value", schema="latest").type == wide
    assert decode_arrow(values, registry, schema=record(("id", "double"))).to_pylist() == [{"id": 1.0}, {"id": 2.0}]
    assert decode_arrow(values, registry, topic="o", schema="union").type == wide
    assert decode_arrow(values, registry).to_pylist() == [{"id": 1, "n": None}, {"id": 2, "n": "x"}]
    assert decode_arrow(values.slice(0, 1), registry).to_pylist() == [{"id": 1}]
    assert decode_arrow(pa.array([None], pa.binary()), registry).type == pa.null()
    assert schema_type(registry, topic="o") == union_type(registry, [1, 2]) == wide
    assert schema_type(registry, schema=1) == union_type(registry, [1]) == pa.struct([("id", pa.int32())])


def test_references_are_resolved(registry: Registry) -> None:
    assert decode(prefixed(9, b"\x04\x02\x02x"), registry) == {"o": {"id": 2, "n": "x"}}


def test_guids_are_ids_too(registry: Registry) -> None:
    values = pa.array([b"\1" + GUID.bytes + b"\x06", prefixed(8, b"\x08"), b"\1" + bytes(16) + b"\x06"])
    found = decode_arrow(values, registry, topic="g", mode="deadletter").to_pylist()
    assert [row["value"] for row in found] == [{"id": 3}, {"id": 4}, None]
    assert f"unknown schema id {UUID(int=0)}" in found[2]["error"]


def test_ids_in_headers_take_precedence(registry: Registry) -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    value, key = "__value_schema_id", "__key_schema_id"
    headers = pa.array(
        [
            [{"key": value, "value": prefixed(2, b"")}],
            [{"key": value, "value": b"\1" + GUID.bytes}],
            [{"key": key, "value": prefixed(1, b"")}],
            None,
        ],
        kind,
    )
    values = pa.array([TWO[5:], b"\x06", TWO, None])
    found = decode_arrow(values, registry, topic="o", headers=headers, mode="permissive").to_pylist()
    assert found == [{"id": 2, "n": "x"}, {"id": 3, "n": None}, {"id": 2, "n": "x"}, None]
    keys = decode_arrow(pa.array([b"\x02"] * 4), registry, schema=1, key=True, headers=headers, mode="permissive")
    assert keys.to_pylist() == [None, None, {"id": 1}, None]


def test_message_indexes_choose_the_message(registry: Registry) -> None:
    inner = encode({"s": "q"}, registry, topic="p", message="N")
    second = encode({"y": 5}, registry, topic="p", message="p.B")
    assert inner == prefixed(5, b"\x04\0\0" + b"\x0a\x01q")
    assert second == prefixed(5, b"\x02\x02" + b"\x08\x05")
    first = prefixed(5, b"\0" + b"\x08\x01")
    values = pa.array([first, inner, None, second, first])
    union = decode_arrow(values, registry)
    assert union.to_pylist() == [
        {"x": 1, "s": None, "y": None},
        {"x": None, "s": "q", "y": None},
        None,
        {"x": None, "s": None, "y": 5},
        {"x": 1, "s": None, "y": None},
    ]
    found = decode_arrow(values, registry, topic="p", mode="deadletter").to_pylist()
    assert [row["value"] for row in found] == [{"x": 1}, None, None, None, {"x": 1}]
    assert "message 'p.A.N', expected 'p.A'" in found[1]["error"]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[{"key": "__value_schema_id", "value": prefixed(5, b"\x02\x02")}]], kind)
    whole = decode_arrow(pa.array([b"\x08\x05"]), registry, topic="p", message="B", headers=headers)
    assert whole.to_pylist() == [{"y": 5}]


FAULTS = [
    (b"plain", "no schema id: the value begins with 70 6c 61 69, 5 bytes; expected byte 0 and an id", 0),
    (b"", "no schema id: the value is empty", 0),
    (b"\0\0\0", "no schema id: the value begins with 00 00 00, 3 bytes", 0),
    (prefixed(99, b"x"), "unknown schema id 99", 0),
    (prefixed(-1, b"x"), "unknown schema id -1", 0),
    (prefixed(7, b"x"), "schema id 7 of 'broken-value' version 1: ", 0),
    (prefixed(10, b"x"), "unknown subject 'nowhere'", 0),
    (prefixed(4, b"\x02a"), "schema id 4: id: ", 5),
    (prefixed(6, b"{}"), "schema id 6: JSON cannot be read as AVRO of schema id 2 of 'o-value' version 2", 5),
    (prefixed(5, b"\0"), "schema id 5: PROTOBUF cannot be read as AVRO", 6),
    (prefixed(5, b""), "schema id 5: message indexes are truncated", 5),
    (prefixed(5, b"\x02\x04"), "schema id 5: no message with the indexes [2]", 7),  # it has two
    (TWO[:-1], "schema id 2: n", 7),
    (TWO + b"!", "schema id 2: ", 9),
]


@pytest.mark.parametrize(("value", "message", "position"), FAULTS, ids=lambda value: repr(value)[:24])
def test_bad_values_are_errors_of_their_rows(registry: Registry, value: bytes, message: str, position: int) -> None:
    values = pa.array([ONE, value, TWO])
    found = decode_arrow(values, registry, topic="o", mode="deadletter").to_pylist()
    assert [row["value"] is None for row in found] == [False, True, False]
    assert [row["error"] is None for row in found] == [True, False, True]
    assert message in found[1]["error"]
    assert found[1]["error"].endswith(f", at byte {position}")
    assert decode_arrow(values, registry, topic="o", mode="permissive").is_null().to_pylist() == [False, True, False]
    with pytest.raises(Malformed, match=r"^row 1: ") as caught:
        decode_arrow(values, registry, topic="o")
    assert caught.value.position == position


def test_the_first_of_many_errors_fails(registry: Registry) -> None:
    rows = [value for value, _, _ in FAULTS]
    found = decode_arrow(pa.array([*rows, ONE]), registry, topic="o", mode="deadletter")
    assert found.field("error").is_valid().to_pylist() == [True] * len(rows) + [False]
    for start in range(len(rows)):
        with pytest.raises(Malformed, match=r"^row 0: "):
            decode_arrow(pa.array(rows[start:]), registry, topic="o")


def test_schemas_without_a_common_type_are_an_error(registry: Registry) -> None:
    values = pa.array([ONE, prefixed(4, b"\x02a")])
    with pytest.raises(InvalidSchema, match="id: int32 in one schema and string in another have no common type"):
        decode_arrow(values, registry)
    with pytest.raises(InvalidSchema, match="no common type"):
        union_type(registry, [1, 4])


def test_a_schema_newer_than_the_unions_type_is_an_error_of_its_rows() -> None:
    with serve() as server:
        server.add("o-value", record(("id", "int")))
        registry = Registry(server.url, retries=0)
        choice = SchemaChoice(registry=registry, schema="union", topic="o", mode="deadletter")
        decoder = ValueDecoder(choice.resolve())
        server.add("o-value", record(("id", "int"), ("n", ["null", "string"])))
        found = decoder.decode(pa.array([ONE, TWO])).to_pylist()
        assert found[0]["value"] == {"id": 1}
        assert "the field 'n' is not in the column's type, which is older than the schema" in found[1]["error"]


def test_a_registry_that_is_down_is_not_an_error_of_rows() -> None:
    with serve() as server:
        server.add("o-value", record(("id", "int")))
        server.add("o-value", record(("id", "int"), ("x", "int")))
        registry = Registry(server.url, retries=0)
        decode_arrow(pa.array([ONE]), registry, schema=1)
    assert decode_arrow(pa.array([ONE]), registry, schema=1).to_pylist() == [{"id": 1}]  # known schemas are kept
    with pytest.raises(RegistryError, match="cannot be used") as caught:
        decode_arrow(pa.array([ONE, TWO]), registry, schema=1, mode="permissive")
    assert not isinstance(caught.value, UnknownSchema)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schema": "latest"}, "schema: 'latest' requires subject or topic"),
        (
            {"schema": "unoin"},
            "expected 'latest', 'union', an id or the text of a schema, got 'unoin' .did you mean 'union'",
        ),
        ({"schema": " "}, "schema: empty"),
        ({"schema": "{"}, "not JSON"),
        ({"topic": "o", "subject": "o-value"}, "subject and topic are mutually exclusive"),
        ({"topic": "o", "mode": "FAIL"}, "mode: expected one of failfast, permissive, deadletter, got 'FAIL'"),
        ({"topic": "nope"}, "unknown subject 'nope-value'"),
        ({"topic": "o", "key": True}, "unknown subject 'o-key'"),
        ({"schema": 55}, "unknown schema id 55"),
        ({"topic": "broken"}, "schema id 7 of 'broken-value' version 1"),
        ({"topic": "p", "message": "C"}, "no message 'C'"),
        ({"topic": "o", "columns": ["nn"]}, "nn"),
        ({"columns": ["n"]}, "columns requires the schema of a reader, not a union"),
        ({"topic": "o", "names": "all"}, "names: expected one of any, strict, got 'all'"),
        ({"names": "strict"}, "names: strict requires the schema of a reader, not a union"),
        ({"topic": "o", "schema": "union", "names": "strict"}, "names: strict requires the schema of a reader"),
        (
            {"topic": "p", "names": "strict"},
            "names: strict is for Avro; a Protobuf message of another name is always a",
        ),
        ({"topic": "j", "names": "strict"}, "names: strict is for Avro; types of JSON Schema have no names"),
    ],
)
def test_faults_of_arguments_are_named(registry: Registry, options: dict[str, Any], message: str) -> None:
    with pytest.raises(KwireError, match=message):
        decode_arrow(pa.array([ONE]), registry, **options)


def test_values_that_are_not_binary_are_an_error(registry: Registry) -> None:
    with pytest.raises(OptionError, match="messages are int64, not binary"):
        decode_arrow(pa.array([1]), registry, topic="o")


def test_values_are_encoded_with_the_id_of_a_registered_schema(registry: Registry) -> None:
    rows = pa.array([{"a": 5}, None])
    text = '{"properties": {"a": {"type": "integer"}}}'
    for options in ({"topic": "j"}, {"subject": "j-value"}, {"schema": 6}, {"topic": "j", "schema": text}):
        chosen: Any = options
        assert encode_arrow(rows, registry, **chosen).to_pylist() == [prefixed(6, b'{"a":5}'), None]
    with pytest.raises(EncodeError, match="row 1: a: 'x' is not"):
        encode_arrow(pa.array([{"a": None}, {"a": "x"}]), registry, topic="j")
    with pytest.raises(UnknownSchema, match="is not registered under 'j-value'"):
        encode_arrow(rows, registry, topic="j", schema='{"properties": {"b": {}}}')
    with pytest.raises(OptionError, match="one of subject and topic is required"):
        encode_arrow(rows, registry, schema=text)
    with pytest.raises(OptionError, match="'union' is for decoding"):
        encode_arrow(rows, registry, topic="j", schema="union")


def test_avro_values_are_encoded_as_they_are_decoded(registry: Registry) -> None:
    rows = pa.array([{"n": "x", "id": 2}, None, {"n": None, "id": -1}])
    written = encode_arrow(rows, registry, topic="o")
    assert written.to_pylist() == [TWO, None, prefixed(2, b"\x01\0")]
    assert decode_arrow(written, registry, topic="o").to_pylist() == [TWO_ROW, None, {"id": -1, "n": None}]
    with pytest.raises(EncodeError, match="row 1: id"):
        encode_arrow(pa.array([{"id": 1}, {"id": None}]), registry, schema=1)


def test_a_type_of_several_schemas_has_all_fields() -> None:
    one = pa.struct([("a", pa.int32()), ("s", pa.struct([("x", pa.float32())])), ("l", pa.list_(pa.int32()))])
    two = pa.struct(
        [("s", pa.struct([("y", pa.string()), ("x", pa.float64())])), ("l", pa.list_(pa.int64())), ("a", pa.float64())]
    )
    merged = merge_types([one, two])
    assert [field.name for field in merged] == ["a", "s", "l"]
    assert merged.field("a").type == pa.float64()
    assert merged.field("s").type == pa.struct([("x", pa.float64()), ("y", pa.string())])
    assert merged.field("l").type.value_type == pa.int64()
    assert merge_types([pa.decimal128(5, 2), pa.decimal128(9, 1)]) == pa.decimal128(10, 2)


@pytest.mark.parametrize(
    "slicing",
    [lambda array: array, lambda array: array.slice(1), lambda array: array.slice(1, 2)],
    ids=["whole", "tail", "middle"],
)
def test_arrays_take_the_type_of_several_schemas(slicing: Callable[[pa.Array], pa.Array]) -> None:
    kind = pa.struct(
        [("a", pa.int32()), ("l", pa.list_(pa.field("element", pa.int32()))), ("m", pa.map_(pa.string(), pa.int32()))]
    )
    rows = [
        {"a": 1, "l": [1, None], "m": [("k", 1)]},
        None,
        {"a": None, "l": None, "m": None},
        {"a": 2, "l": [], "m": []},
        {"a": 3, "l": [7], "m": [("x", None), ("y", 2)]},
    ]
    wanted = pa.struct(
        [
            ("new", pa.string()),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("l", pa.list_(pa.field("element", pa.int64()))),
            ("a", pa.int64()),
        ]
    )
    array = slicing(pa.array(rows, kind))
    found = conform(array, wanted)
    found.validate(full=True)
    assert found.type == wanted
    assert found.to_pylist() == [None if row is None else {"new": None, **row} for row in array.to_pylist()]


def test_other_columns_of_an_avro_record_that_contains_itself_are_read(tmp_path: Path) -> None:
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    fields = [{"name": "id", "type": "int"}, {"name": "tree", "type": node}, {"name": "name", "type": "string"}]
    later = [*fields, {"name": "more", "type": "int", "default": 0}]
    for number, each in ((1, fields), (2, later)):
        text = json.dumps({"type": "record", "name": "Top", "fields": each})
        (tmp_path / f"t-value.{number}.{number}.avsc").write_text(text)
    values = pa.array([prefixed(1, b"\x02\x02\x02\x00\x02a"), prefixed(2, b"\x04\x00\x02b\x06")])
    with pytest.raises(
        InvalidSchema, match="contains itself; Arrow has no such type: name the other fields in columns"
    ):
        decode_arrow(values, tmp_path, topic="t")
    for mode in ("failfast", "permissive"):
        found = decode_arrow(values, tmp_path, topic="t", mode=mode, columns=["name", "id"])
        assert found.to_pylist() == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    with pytest.raises(InvalidSchema, match="contains itself"):
        decode_arrow(values, tmp_path, topic="t", columns=["tree"])


def test_with_strict_names_another_record_of_the_topic_is_a_bad_value(tmp_path: Path) -> None:
    """Values of several types in one topic (RecordNameStrategy), as fastavro writes them."""
    fastavro = pytest.importorskip("fastavro")
    fields = [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": "-"}]
    order = {"type": "record", "name": "shop.Order", "fields": fields, "aliases": ["Purchase"]}
    kinds = [
        order,
        *({**order, "name": name, "aliases": []} for name in ("shop.Payment", "shop.Purchase", "web.Order")),
    ]
    values: list[bytes | None] = [None]
    for number, kind in enumerate(kinds, 1):
        (tmp_path / f"{kind['name']}.1.{number}.avsc").write_text(json.dumps(kind))
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(kind), {"id": number, "note": "n"})
        values.append(prefixed(number, out.getvalue()))
    array, reader = pa.array(values), {"registry": tmp_path, "subject": "shop.Order"}
    rows = [None, *({"id": number, "note": "n"} for number in (1, 2, 3, 4))]
    assert decode_arrow(array, **reader).to_pylist() == decode_arrow(array, **reader, names="any").to_pylist() == rows
    strict: dict[str, Any] = {**reader, "names": "strict"}
    read = [None, rows[1], None, rows[3], None]
    assert decode_arrow(array, **strict, mode="permissive").to_pylist() == read
    assert decode_arrow(array, **strict, mode="permissive", columns=["id"])[3].as_py() == {"id": 3}
    dead = decode_arrow(array, **strict, mode="deadletter").to_pylist()
    assert [row["value"] for row in dead] == read
    assert [row["error"] is None for row in dead] == [True, True, False, True, False]
    what = "the writer's record shop.Payment has another name than the reader's record shop.Order; add an alias to the"
    assert dead[2]["error"].startswith(f"schema id 2: {what}")
    with pytest.raises(Malformed, match=f"row 2: schema id 2: {what}"):
        decode_arrow(array, **strict)
    assert decode_arrow(array.slice(0, 2), **strict).to_pylist() == rows[:2]


def test_decoders_agree_with_rows_decoded_alone(registry: Registry) -> None:
    rng = np.random.default_rng(5)
    kinds = [ONE, TWO, None, b"bad", prefixed(4, b"\x02a"), prefixed(99, b"")]
    values = [kinds[i] for i in rng.integers(0, len(kinds), 500)]
    together = decode_arrow(pa.array(values, pa.binary()), registry, topic="o", mode="permissive").to_pylist()
    assert together == [decode(value, registry, topic="o", mode="permissive") for value in values]


NODE = {
    "type": "record",
    "name": "Node",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "next", "type": ["null", "Node"]},
        {"name": "children", "type": {"type": "array", "items": "Node"}},
        {"name": "either", "type": {"type": "map", "values": ["null", "string", "Node"]}},
        {"name": "name", "type": "string"},
    ],
}


def node(depth: int) -> dict[str, Any]:
    """Return a value whose deepest record is at a depth."""
    inner = [node(depth - 1)] if depth > 1 else []
    either = {**({"a": inner[0]} if inner else {}), "b": "text", "c": None}
    return {
        "id": depth,
        "next": inner[0] if inner else None,
        "children": inner * 2,
        "either": either,
        "name": f"n{depth}",
    }


def cut(value: dict[str, Any], depth: int) -> dict[str, Any]:
    """Return the value as it is decoded with a depth."""
    found: dict[str, Any] = {"id": value["id"], "name": value["name"]}
    either: dict[str, Any] = {
        key: None if each is None else {"member0": each if isinstance(each, str) else None}
        for key, each in value["either"].items()
    }
    if depth > 1:
        for key, each in value["either"].items():
            if (union := either[key]) is not None:
                union["member1"] = cut(each, depth - 1) if isinstance(each, dict) else None
        found["next"] = None if value["next"] is None else cut(value["next"], depth - 1)
        found["children"] = [cut(each, depth - 1) for each in value["children"]]
    return found | {"either": list(either.items())}


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_avro_records_inside_of_themselves_are_decoded_up_to_a_depth(tmp_path: Path, depth: int) -> None:
    fastavro = pytest.importorskip("fastavro")
    (tmp_path / "t-value.1.1.avsc").write_text(json.dumps(NODE))
    written = [node(each) for each in (1, 2, 3, 5)]
    values = []
    for each in written:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, fastavro.parse_schema(NODE), each)
        values.append(prefixed(1, stream.getvalue()))
    array = pa.array([*values, values[-1][:-1]])  # the last one is read by plain Python, for its error
    found = decode_arrow(array, tmp_path, topic="t", recursive_field_max_depth=depth, mode="deadletter").to_pylist()
    assert [each["value"] for each in found] == [*(cut(each, depth) for each in written), None]
    assert "length above the remaining bytes" in found[-1]["error"]


def test_a_depth_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t-value.1.1.avsc").write_text(json.dumps(NODE))
    empty = pa.array([], pa.binary())
    for depth in (-1, 16):
        with pytest.raises(OptionError, match=rf"max_depth: expected a number from 0 to 15, got {depth}"):
            decode_arrow(empty, tmp_path, topic="t", recursive_field_max_depth=depth)
    monkeypatch.setattr(columns, "MAX_COLUMNS", 1000)
    with pytest.raises(InvalidSchema, match="more than 1000 columns"):
        decode_arrow(empty, tmp_path, topic="t", recursive_field_max_depth=15)
    found = decode_arrow(empty, tmp_path, topic="t", recursive_field_max_depth=15, columns=["id", "name"])
    assert str(found.type) == "struct<id: int32, name: string>"
    with pytest.raises(OptionError, match="requires an Avro schema of a reader, not a union"):
        decode_arrow(empty, tmp_path, topic="t", recursive_field_max_depth=2, schema="union")


def test_a_union_of_versions_has_one_protobuf_message(tmp_path: Path) -> None:
    """A message of another name became a row of the first one if that has all of its fields."""
    for number, more in ((1, ""), (2, " int32 more = 4;")):
        messages = f"message Order {{ int64 id = 1; bool b = 2;{more} }} message Payment {{ int64 id = 1; }}"
        (tmp_path / f"t-value.{number}.{number}.proto").write_text(f'syntax = "proto3"; package a; {messages}')
    order, payment = b"\0\x08\x05", b"\2\2\x08\x06"  # message indexes, id
    values = pa.array([prefixed(1, order), prefixed(1, payment), prefixed(2, order), prefixed(2, payment)])
    found = decode_arrow(values, tmp_path, topic="t", schema="union", mode="deadletter").to_pylist()
    row = {"id": 5, "b": False}
    assert [each["value"] for each in found] == [row | {"more": None}, None, row | {"more": 0}, None]
    assert found[1]["error"].startswith("schema id 1: message 'a.Payment', expected 'a.Order'")
    found = decode_arrow(values, tmp_path, topic="t", schema="union", mode="permissive", message="Payment").to_pylist()
    assert found == [None, {"id": 6}, None, {"id": 6}]
    with pytest.raises(Malformed, match=r"row 1: schema id 1: message 'a\.Payment', expected 'a\.Order'"):
        decode_arrow(values, tmp_path, topic="t", schema="union")
