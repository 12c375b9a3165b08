"""Avro values that are truncated, changed or made to consume memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.compiled import needs_compiled_code
from tests.fuzz.avro import compare, run
from tests.schemas.avro.drawing import Drawing, expected, plain, written

from kwire import native
from kwire.errors import InvalidSchema, Malformed, OptionError, Truncated
from kwire.schemas.avro import Decoder, parse


def decoder(schema: Any, **settings: Any) -> Decoder:
    parsed = parse(json.dumps(schema))
    return Decoder([parsed], parsed, **settings)


def error(schema: Any, value: bytes) -> str:
    """Return the error of a value; checks that the row is null and its neighbours are not touched."""
    good = b"\0" * 64
    decoded = decoder(schema, allow_trailing=True).decode(pa.array([good, value, good], pa.binary()))
    decoded.array.validate(full=True)
    assert decoded.array[0] == decoded.array[2] != pa.scalar(None, decoded.array.type)
    assert decoded.array.is_null().to_pylist() == [False, True, False]
    assert decoded.errors.rows.tolist() == [1]
    return decoded.errors.message(0)


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


EMPTY = {"type": "record", "name": "Empty", "fields": [{"name": "n", "type": "null"}]}
BILLION = bytes.fromhex("80a8d6b907")


@pytest.fixture(params=["kernel", "plain Python"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain Python":
        monkeypatch.setattr(native, "LEVEL", None)
    elif native.LEVEL is None:
        pytest.skip("without compiled code")


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ("int", "", "int: the value ends early, at byte 0"),
        ("int", "80", "int: the value ends early, at byte 0"),
        ("int", "ffffffff10", "int: number above 32 bits, at byte 0"),
        ("int", "8080808080", "int: number above 32 bits, at byte 0"),
        ("long", "ffffffffffffffffff02", "long: number above 64 bits, at byte 0"),
        ("long", "80" * 11, "long: number above 64 bits, at byte 0"),
        ("boolean", "02", "boolean: expected a byte of 0 or 1, at byte 0"),
        ("string", "01", "string: negative length, at byte 0"),
        ("string", "0461", "string: length above the remaining bytes, at byte 0"),
        ("bytes", "feffffffffffffffff01", "bytes: length above the remaining bytes, at byte 0"),
        ("string", "04c328", "string: not UTF-8, at byte 0"),
        ("string", "06eda080", "string: not UTF-8, at byte 0"),  # a surrogate
        ("string", "04c080", "string: not UTF-8, at byte 0"),  # overlong
        ("string", "08f4908080", "string: not UTF-8, at byte 0"),  # above U+10FFFF
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "02", "enum E: no symbol has this index, at byte 0"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "01", "enum E: no symbol has this index, at byte 0"),
        (["int", "string"], "04", "union of int, string: no type of the union has this index, at byte 0"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, "0264", "not a number of this precision"),
        (array("int"), BILLION.hex() + "00", "array: more items than the remaining bytes can hold, at byte 0"),
        (array("int"), "ffffffffffffffffff01", "array: more items than the remaining bytes can hold, at byte 0"),
        (array("null"), BILLION.hex() + "00", "array: too many items that take no bytes, at byte 0"),
        (array(EMPTY), BILLION.hex() + "00", "array: too many items that take no bytes, at byte 0"),
        (array({"type": "fixed", "name": "F", "size": 0}), BILLION.hex() + "00", "too many items that take no bytes"),
        (array("int"), "0106020400", "array: the size of a block differs from its items, at byte 0"),
        (array("int"), "0120020400", "array: length above the remaining bytes, at byte 1"),
        (array("int"), "0101020400", "array: negative length, at byte 1"),
        ({"type": "map", "values": "null"}, BILLION.hex() + "00", "map: more items than the remaining bytes can hold"),
    ],
)
def test_errors_name_the_fault_and_its_position(schema: Any, value: str, message: str) -> None:
    if isinstance(schema, dict) and schema.get("logicalType") == "decimal":
        assert message in str(decoder(schema).decode(pa.array([bytes.fromhex(value)])).errors.message(0))
        return
    assert message in error(schema, bytes.fromhex(value))


@pytest.mark.usefixtures("path")
def test_errors_have_the_path_of_the_field_and_a_type() -> None:
    prices = {"type": "record", "name": "P", "fields": [{"name": "price", "type": "int"}]}
    schema = {"type": "record", "name": "R", "fields": [{"name": "items", "type": {"type": "map", "values": prices}}]}
    decoded = decoder(schema).decode(pa.array([bytes.fromhex("02026b"), bytes.fromhex("02026bffffffff7f00")]))
    first, second = decoded.errors
    assert isinstance(first, Truncated)
    assert str(second) == "items[].price: int: number above 32 bits, at byte 3"
    assert isinstance(second, Malformed)


@pytest.mark.usefixtures("path")
def test_remaining_bytes_are_an_error_unless_allowed() -> None:
    values = pa.array([b"\2", b"\2\0\0"])
    decoded = decoder("int").decode(values)
    assert decoded.array.to_pylist() == [1, None]
    assert decoded.errors.message(0).startswith("bytes remaining after the value")
    assert decoder("int", allow_trailing=True).decode(values).array.to_pylist() == [1, 1]


@pytest.mark.usefixtures("path")
def test_few_items_without_bytes_are_accepted() -> None:
    assert plain(decoder(array("null")).decode(pa.array([b"\x06\0"])).array) == [[None] * 3]
    (found,) = plain(decoder(array(EMPTY)).decode(pa.array([b"\x01\0\x02\0"])).array)
    assert found == [{"n": None}] * 2


@pytest.mark.slow
@needs_compiled_code
def test_a_value_cut_at_every_place_and_with_any_byte_changed() -> None:
    source = Random(7)
    for _ in range(12):
        drawing = Drawing(source, max_depth=4)
        drawn = drawing.record(fields=4)
        of_all = decoder(drawn)
        data = written(drawn, drawing.value(drawn))[:60]
        for cut in range(len(data)):
            compare(of_all, data[:cut])
            for byte in (0, 1, 0x7F, 0x80, 0xFF, data[cut] ^ 1):
                compare(of_all, data[:cut] + bytes([byte]) + data[cut + 1 :])


@pytest.mark.slow
@needs_compiled_code
def test_mutated_values_through_both_paths() -> None:
    run(4000, seed=11)


@pytest.mark.slow
@needs_compiled_code
def test_nothing_outside_of_buffers_is_touched() -> None:
    code = "from tests.fuzz.avro import run; run(1500, 12, True)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@needs_compiled_code
def test_a_bad_row_leaves_nothing_behind_in_any_column() -> None:
    source = Random(3)
    for _ in range(60):
        drawing = Drawing(source, max_depth=4)
        drawn = drawing.record(fields=4)
        values = [drawing.value(drawn) for _ in range(4)]
        data = [written(drawn, each) for each in values]
        bad = [each[: source.randrange(len(each))] if each else b"\0" for each in data]
        rows = [row for pair in zip(data, bad, strict=True) for row in pair]
        decoded = decoder(drawn).decode(pa.array(rows, pa.binary()))
        decoded.array.validate(full=True)
        assert plain(decoded.array)[::2] == [expected(drawn, each) for each in values]
        assert decoded.errors.rows.tolist() == [1, 3, 5, 7]


@pytest.mark.usefixtures("path")
def test_wide_and_deep_schemas() -> None:
    wide = {"type": "record", "name": "W", "fields": [{"name": f"f{i}", "type": "long"} for i in range(1000)]}
    decoded = decoder(wide).decode(pa.array([b"\2" * 1000] * 3))
    assert plain(decoded.array) == [{f"f{i}": 1 for i in range(1000)}] * 3
    some = decoder(wide, columns=["f999", "f0"]).decode(pa.array([b"\2" * 999 + b"\4"]))
    assert some.array.to_pylist() == [{"f0": 1, "f999": 2}]
    deep: Any = "int"
    for level in range(100):
        deep = {"type": "record", "name": f"L{level}", "fields": [{"name": "x", "type": deep}]}
    found: Any = plain(decoder(deep).decode(pa.array([b"\4"])).array)[0]
    for _ in range(100):
        found = found["x"]
    assert found == 2


def test_schemas_whose_columns_multiply_are_refused() -> None:
    types: list[Any] = []
    for level in range(30):
        inner = f"L{level - 1}" if level else "int"
        types.append(
            {
                "type": "record",
                "name": f"L{level}",
                "fields": [{"name": "a", "type": inner}, {"name": "b", "type": inner}],
            }
        )
    with pytest.raises(InvalidSchema, match="more than 100000 columns"):
        decoder([*types, "null"])


def test_only_columns_that_are_asked_for_are_decoded() -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "string"}]}
    fields = [{"name": "id", "type": "long"}, {"name": "items", "type": array(["null", inner])}]
    schema = {"type": "record", "name": "R", "fields": [*fields, {"name": "note", "type": "string"}]}
    some = decoder(schema, columns=["items.y", "id"])
    assert some.type == pa.struct(
        [("id", pa.int64()), ("items", pa.list_(pa.field("element", pa.struct([("y", pa.string())]))))]
    )
    value = bytes.fromhex("02 04 0206 0261 00 00 02ff".replace(" ", ""))  # the note is not UTF-8
    decoded = some.decode(pa.array([value]))
    assert plain(decoded.array) == [{"id": 1, "items": [{"y": "a"}, None]}]
    with pytest.raises(
        OptionError, match=r"unknown column 'z' in items\[\] \(did you mean|unknown column 'z' in items"
    ):
        decoder(schema, columns=["items.z"])
    with pytest.raises(OptionError, match=r"unknown column 'nota' \(did you mean 'note'\?\)"):
        decoder(schema, columns=["nota"])


@pytest.mark.usefixtures("path")
def test_each_row_is_decoded_with_its_writers_schema() -> None:
    one = parse('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}')
    two = parse(
        '{"type": "record", "name": "R", "fields": [{"name": "b", "type": "string", "default": "-"}, '
        '{"name": "a", "type": "long", "default": 0}]}'
    )
    values = pa.array([b"\0\0\0\0\1\2", None, b"\0\0\0\0\2\2x\4", b"short", b"\0\0\0\0\1\4"])
    decoded = Decoder([one, two], two).decode(values, skip=5, writer=[0, 0, 1, -1, 0])
    assert decoded.array.to_pylist() == [{"b": "-", "a": 1}, None, {"b": "x", "a": 2}, None, {"b": "-", "a": 2}]
    assert len(decoded.errors) == 0
    with pytest.raises(OptionError, match="writer: expected an index below 2"):
        Decoder([one, two], two).decode(values, writer=[2] * 5)
    with pytest.raises(OptionError, match="values are int64, expected binary"):
        Decoder([one], two).decode(pa.array([1]))
    with pytest.raises(OptionError, match="decode one chunk at a time"):
        Decoder([one], two).decode(pa.chunked_array([values]))
    for skip in (-1, [0, 1], [5, 5, 5, 5, -5]):
        with pytest.raises(OptionError, match="skip: expected a number of bytes"):
            Decoder([one], two).decode(values, skip=skip)
    assert Decoder([], two).decode(values, writer=[-1] * 5).array.null_count == 5
    assert len(Decoder([one], two).decode(values, skip=2**63 - 1).errors) == 4


@pytest.mark.usefixtures("path")
def test_arrays_may_be_slices_large_or_empty() -> None:
    values = pa.array([b"\2", b"\4", None, b"\6", b"x"], pa.large_binary())
    assert decoder("int").decode(values.slice(1, 3)).array.to_pylist() == [2, None, 3]
    assert decoder("int").decode(values.slice(2, 0)).array.to_pylist() == []
    assert decoder("int").decode(pa.array([], pa.binary())).array.type == pa.int32()
    assert decoder(EMPTY).decode(pa.array([b"", None], pa.binary())).array.to_pylist() == [{"n": None}, None]


@needs_compiled_code
def test_many_columns_of_items_grow_together() -> None:
    fields = [{"name": f"f{i}", "type": "long"} for i in range(1000)]
    schema = array(["null", {"type": "record", "name": "W", "fields": fields}])
    value = bytes.fromhex("a01f") + b"\0" * 2000 + b"\0"
    before = time.process_time()
    decoded = decoder(schema).decode(pa.array([value] * 3))
    assert decoded.array.values.null_count == 6000
    assert time.process_time() - before < 10  # a minute if each column stops the kernel


@needs_compiled_code
def test_columns_grow_as_needed() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "l", "type": array("string")}]}
    rows = [written(schema, {"l": ["x" * (i % 50)] * (i % 40)}) for i in range(3000)]
    rows[1000] = written(schema, {"l": ["long" * 100_000] * 3})
    decoded = decoder(schema).decode(pa.array(rows))
    decoded.array.validate(full=True)
    assert [len(each["l"]) for each in plain(decoded.array)] == [i % 40 if i != 1000 else 3 for i in range(3000)]
    bad = decoder(schema).decode(pa.array([b"\2"] * 10_000))
    assert bad.errors.rows.tolist() == list(range(10_000))
