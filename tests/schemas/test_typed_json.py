"""JSON values without a registry: types given and inferred."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import DecodeError, OptionError
from kwire.schemas import ddl_of, decode_json, infer_json, parse_ddl
from kwire.schemas.typed_json import JsonColumn, JsonDecoder

UTC = dt.UTC


def binary(*values: object) -> pa.Array:
    return pa.array(
        [each if isinstance(each, bytes | None) else json.dumps(each).encode() for each in values], pa.binary()
    )


def decoded(kind: str, *values: object) -> list[Any]:
    """Decode a field x of this type; returns its values, and the errors of bad ones."""
    array = decode_json(binary(*({"x": each} for each in values)), f"x {kind}", mode="deadletter")
    array.validate(full=True)
    return [each["error"] if each["value"] is None else each["value"]["x"] for each in array.to_pylist()]


SMALLEST = [("TINYINT", 8), ("SMALLINT", 16), ("INT", 32), ("BIGINT", 64)]


@pytest.mark.parametrize(("kind", "bits"), SMALLEST)
def test_integers_at_their_limits(kind: str, bits: int) -> None:
    least, greatest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    found = decoded(kind, least, greatest, 1.0, None, least - 1, greatest + 1, 1.5, "1", True)
    assert found[:4] == [least, greatest, 1, None]
    assert [each.partition(":")[0] for each in found[4:]] == ["x"] * 5
    assert all(f"out of the range of {bits} bits" in each for each in found[4:6])


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("BOOLEAN", False, False),
        ("BOOLEAN", 0, "x: expected a boolean, got a number, at byte 0"),
        ("DOUBLE", 1, 1.0),
        ("DOUBLE", "NaN", "x: expected a number, got a string, at byte 0"),
        ("FLOAT", 0.5, 0.5),
        ("FLOAT", 1e39, "x: out of the range of float: 1e+39, at byte 0"),
        ("STRING", "ü\n", "ü\n"),
        ("STRING", 12, "12"),
        ("STRING", True, "true"),
        ("STRING", {"a": [1, "b"]}, '{"a":[1,"b"]}'),
        ("STRING", None, None),
        ("DATE", "2024-02-29", dt.date(2024, 2, 29)),
        ("DATE", "2023-02-29", "x: not a date (2026-01-31): '2023-02-29', at byte 0"),
        ("DATE", "2023-2-1", "x: not a date (2026-01-31): '2023-2-1', at byte 0"),
        ("TIMESTAMP", "2024-02-29T23:59:59Z", dt.datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)),
        ("TIMESTAMP", "2024-02-29 23:59:59.5", dt.datetime(2024, 2, 29, 23, 59, 59, 500000, tzinfo=UTC)),
        ("TIMESTAMP", "2024-02-29T12:00+05:30", dt.datetime(2024, 2, 29, 6, 30, tzinfo=UTC)),
        ("TIMESTAMP", "2024-02-29T12:00:00.123456789Z", dt.datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=UTC)),
        (
            "TIMESTAMP",
            "2024-02-29T24:00:00Z",
            "x: not a timestamp (2026-01-31T12:00:00Z): '2024-02-29T24:00:00Z', at byte 0",
        ),
        ("TIMESTAMP", 1700000000, "x: expected a string, got a number, at byte 0"),
        ("TIMESTAMP_NTZ", "2024-02-29T12:00:00", dt.datetime(2024, 2, 29, 12)),
        (
            "TIMESTAMP_NTZ",
            "2024-02-29T12:00:00Z",
            "x: not a timestamp (2026-01-31T12:00:00Z): '2024-02-29T12:00:00Z', at byte 0",
        ),
        ("ARRAY<INT>", [1, None], [1, None]),
        ("ARRAY<INT>", [1, 2**31], "x.element: out of the range of 32 bits: 2147483648, at byte 0"),
        ("MAP<STRING, DATE>", {"k": "2024-01-01"}, [("k", dt.date(2024, 1, 1))]),
        ("MAP<STRING, DATE>", {"k": "x"}, "x.value: not a date (2026-01-31): 'x', at byte 0"),
        ("STRUCT<y: STRUCT<z: TINYINT>>", {"y": {"z": 1}}, {"y": {"z": 1}}),
        ("STRUCT<y: STRUCT<z: TINYINT>>", {"y": {"z": 128}}, "x.y.z: out of the range of 8 bits: 128, at byte 0"),
    ],
)
def test_types(kind: str, value: object, expected: object) -> None:
    assert decoded(kind, value) == [expected]
    assert decoded(kind, None, value, None, value) == [None, expected, None, expected]  # whatever stands beside it


def test_a_fault_is_that_of_its_row() -> None:
    lists = [[{"d": "2024-01-01"}] * n for n in (3, 0, 1, 2)]
    lists[3] = [{"d": "2024-01-01"}, {"d": "bad"}]
    found = decoded("ARRAY<STRUCT<d: DATE>>", *lists[:2], None, *lists[2:], lists[0])
    assert [type(each) for each in found] == [list, list, type(None), list, str, list]
    assert found[4] == "x.element.d: not a date (2026-01-31): 'bad', at byte 0"


def test_what_is_inside_of_a_null_is_no_fault() -> None:
    assert decoded("STRUCT<d: DATE, i: TINYINT>", *[None] * 50, {"d": "2024-01-01", "i": 1}, *[None] * 50) == [
        *[None] * 50,
        {"d": dt.date(2024, 1, 1), "i": 1},
        *[None] * 50,
    ]


def test_modes_and_columns() -> None:
    values = binary({"id": 1, "name": "a", "more": [1]}, None, b"{", {"id": 2**40})
    kind = parse_ddl("name STRING, id INT, x DOUBLE")
    with pytest.raises(DecodeError, match=r"^row 2: not JSON"):
        decode_json(values, kind)
    source = [pa.array(each) for each in (["orders"] * 2, [3, 3], [7, 8])]
    with pytest.raises(DecodeError, match=r"^orders-3, offset 8: id: out of the range of 32 bits"):
        JsonDecoder(JsonColumn(type=kind)).decode(values.take(pa.array([0, 3])), source=source)
    assert decode_json(values, kind, mode="permissive").to_pylist() == [
        {"name": "a", "id": 1, "x": None},
        None,
        None,
        None,
    ]
    some = decode_json(values, kind, mode="deadletter", columns=["id"])
    assert some.type == pa.struct([("value", pa.struct([("id", pa.int32())])), ("error", pa.string())])
    assert some.field("value").to_pylist() == [{"id": 1}, None, None, None]
    assert decode_json(pa.chunked_array([values[:1], values[1:2]]), kind).to_pylist()[1] is None
    assert decode_json(values[:0], kind).type == kind
    assert decode_json(values[3:], kind, columns=["x"]).to_pylist() == [{"x": None}]
    with pytest.raises(OptionError, match=r"columns: no property 'ids' \(did you mean 'id'\?\)"):
        decode_json(values, kind, columns=["ids"])
    with pytest.raises(OptionError, match="mode: expected one of failfast"):
        decode_json(values, kind, mode="failfst")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (pa.struct([("a", pa.struct([("b", pa.decimal256(9, 2))]))]), r"'a.b': decimal256\(9, 2\) cannot be decoded"),
        (pa.struct([("a", pa.binary())]), "'a': binary cannot be decoded from JSON; supported: boolean, "),
        (pa.struct([("a", pa.map_(pa.int64(), pa.string()))]), "'a': map<int64, string> cannot"),
        (pa.struct([]), "a struct without fields"),
        (pa.struct([("a", pa.int64()), ("a", pa.int64())]), "a name is there twice"),
    ],
)
def test_other_types_are_refused_by_name(kind: pa.DataType, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        JsonDecoder(JsonColumn(type=kind))


@pytest.mark.parametrize(
    ("values", "ddl"),
    [
        ([{"a": 1, "b": "x"}, {"c": True}], "a BIGINT, b STRING, c BOOLEAN"),
        ([{"a": 1}, {"a": 2.5}], "a DOUBLE"),
        ([{"a": 2**63 - 1}], "a BIGINT"),
        ([{"a": 2**63}], "a DOUBLE"),
        ([{"a": 1}, {"a": "x"}], "a STRING"),
        ([{"a": None}, {"a": None, "b": {}}], "a STRING, b STRING"),
        ([{"a": []}, {"b": [None]}], "a ARRAY<STRING>, b ARRAY<STRING>"),
        ([{"a": [{"x": 1}, {"y": 0.5}]}, {"a": None}], "a ARRAY<STRUCT<x: BIGINT, y: DOUBLE>>"),
        ([{"a": [1]}, {"a": {"x": 1}}], "a STRING"),
        ([{"Id": 1, "id": "x"}, {"ID": True}], "Id BIGINT"),
        ([None, b"{", 17, [1], {"a b": 1}], "`a b` BIGINT"),
    ],
)
def test_inferred_types_take_the_values_that_they_are_from(values: list[object], ddl: str) -> None:
    sample = binary(*values)
    kind = infer_json(sample)
    assert ddl_of(kind) == ddl
    objects = sample.filter(pa.array([isinstance(each, dict) for each in values]))
    assert not decode_json(objects, kind).null_count  # raises for a bad value


def test_samples_without_objects_and_with_too_many_names() -> None:
    samples: list[list[object]] = [[], [None, b"abc"], [{}], [1, "x"]]
    for values in samples:
        with pytest.raises(OptionError, match=f"no JSON object with properties among {len(values)} values"):
            infer_json(binary(*values))
    assert len(infer_json(binary({f"n{i}": i for i in range(1000)}))) == 1000
    with pytest.raises(OptionError, match="more than 1000 names"):
        infer_json(binary({f"n{i}": i for i in range(1001)}))
    assert ddl_of(infer_json(binary({"a": {f"n{i}": i for i in range(1001)}}))) == "a STRING"
    deep: Any = 1
    for _ in range(100):
        deep = {"a": deep}
    kind = infer_json(binary(deep))
    assert not decode_json(binary(deep), kind).null_count


DECIMALS = [
    ("1.5", Decimal("1.50")),
    ("12345678901234567890123.125", Decimal("12345678901234567890123.13")),  # no double has these digits
    ('"-2.125"', Decimal("-2.13")),
    ("1e2", Decimal("100.00")),
    ("1e-400", Decimal("0.00")),
    ('"1e-999999999"', Decimal("0.00")),
    ("99999999999999999999999999999999999.99", Decimal("99999999999999999999999999999999999.99")),
    ("999999999999999999999999999999999999.995", "not a number that fits decimal(37, 2)"),
    ('"1e999999999"', "not a number that fits decimal(37, 2)"),
    ('""', "not a number that fits decimal(37, 2)"),
    ('"1_0"', "not a number that fits decimal(37, 2)"),
    ("true", "expected a number, got a boolean"),
    ("[1]", "expected a number, got an array"),
    ("null", None),
]


@pytest.mark.parametrize(("text", "expected"), DECIMALS)
def test_decimals_have_the_digits_of_the_text(text: str, expected: object) -> None:
    value = f'{{"d": {text}, "other": 1.50, "s": 1.50, "i": 1.0}}'.encode()
    found = decode_json(pa.array([value, b'{"d": 1}']), "d DECIMAL(37, 2), s STRING, i INT", mode="deadletter")
    first, second = found.to_pylist()
    assert second["value"]["d"] == 1
    if isinstance(expected, str):
        assert expected in first["error"]
    else:
        assert first["value"] == {"d": expected, "s": "1.5", "i": 1}


def test_decimals_in_ddl() -> None:
    kind = parse_ddl("a DECIMAL, b DECIMAL(5), c NUMERIC(38, 38)")
    assert ddl_of(kind) == "a DECIMAL(10, 0), b DECIMAL(5, 0), c DECIMAL(38, 38)"
    for text in ("DECIMAL(0)", "DECIMAL(39)", "DECIMAL(5, 6)", "DECIMAL(a)", "DECIMAL(5", "DECIMAL(5,)"):
        with pytest.raises(OptionError, match="DDL: "):
            parse_ddl(f"a {text}")
