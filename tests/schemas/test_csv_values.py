"""CSV values without a registry."""

from __future__ import annotations

import csv
import io
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import DecodeError, OptionError
from kwire.schemas import ddl_of, decode_csv, infer_csv

DDL = "id INT, name STRING, ratio FLOAT, ok BOOLEAN, price DECIMAL(5, 2)"
CASES: list[tuple[bytes | None, Any]] = [
    (None, None),
    (b"1,a,2.5,true,1.5", (1, "a", 2.5, True, Decimal("1.50"))),
    (b"-2147483648,,,,", (-2147483648, None, None, None, None)),
    (b"2147483647, a ,NaN,FALSE,-999.994", (2147483647, " a ", float("nan"), False, Decimal("-999.99"))),
    (b'+1,"a ""b""\r\n, c",-Inf,,.005\r\n', (1, 'a "b"\r\n, c', float("-inf"), None, Decimal("0.01"))),
    (b'1,a"b,,,', (1, 'a"b', None, None, None)),
    (b'1,"",,,1e2', (1, None, None, None, Decimal("100.00"))),
    (b"2147483648,,,,", "id: not an integer of 32 bits: '2147483648'"),
    (b"1.0,,,,", "id: not an integer of 32 bits: '1.0'"),
    (b" 1,,,,", "id: not an integer of 32 bits: ' 1'"),
    (b"1,,1e39,,", "ratio: not a number in the range of float: '1e39'"),
    (b"1,,x,,", "ratio: not a number in the range of float: 'x'"),
    (b"1,,,yes,", "ok: not a boolean (true or false): 'yes'"),
    (b"1,,,,999.995", "price: not a number that fits decimal(5, 2): '999.995'"),
    (b"1,,,,1e999999999", "price: not a number that fits decimal(5, 2): '1e999999999'"),
    (b"", "expected 5 fields, got 1"),
    (b"1,,,", "expected 5 fields, got 4"),
    (b'1,"a",,', "expected 5 fields, got 4"),
    (b"1,,,,,", "expected 5 fields, got 6"),
    (b"1,a\n1,b,,,", "not a record of CSV: two lines"),
    (b'1,"a,,,', "not a record of CSV: a quoted field that does not end with a quote and a comma"),
    (b'1,"a"b,,,', "not a record of CSV: a quoted field that does not end with a quote and a comma"),
    (b"\xff,,,,", "not UTF-8: b'\\xff,,,,'"),
]


@pytest.mark.parametrize("count", [1, 3])
def test_values_and_faults(count: int) -> None:
    """Also in one array with others, and sliced."""
    values = pa.array([value for value, _ in CASES] * count, pa.binary())
    found = decode_csv(values, DDL, mode="deadletter")
    found.validate(full=True)
    for row, (_, expected) in zip(found.to_pylist(), CASES * count, strict=True):
        if isinstance(expected, str):
            assert row["value"] is None
            assert row["error"].startswith(expected)
        else:
            assert row["error"] is None
            assert repr(row["value"] and tuple(row["value"].values())) == repr(expected)
    assert decode_csv(values[3:7], DDL, mode="permissive").to_pylist()[0]["id"] == 2147483647
    with pytest.raises(DecodeError, match="row 7: id: not an integer of 32 bits"):
        decode_csv(values, DDL)


def test_columns_are_chosen() -> None:
    values = pa.array([b"1,a,2.5,true,1.5", b"2,b,,,"])
    found = decode_csv(values, DDL, columns=["name", "id"])
    assert found.to_pylist() == [{"name": "a", "id": 1}, {"name": "b", "id": 2}]
    with pytest.raises(OptionError, match="columns: no field 'nam'"):
        decode_csv(values, DDL, columns=["nam"])
    with pytest.raises(OptionError, match=r"'tags': .* cannot be decoded from CSV"):
        decode_csv(values, "id INT, tags ARRAY<INT>")


def test_random_records_are_read_as_by_python() -> None:
    source = random.Random(5)
    rows = [["".join(source.choices('ab", \n\r', k=source.randrange(5))) for _ in range(3)] for _ in range(2000)]
    values = []
    for row in rows:
        out = io.StringIO()
        csv.writer(out).writerow(row)
        values.append(out.getvalue().encode())
    found = decode_csv(pa.array(values), "a STRING, b STRING, c STRING")
    assert [[each or "" for each in row.values()] for row in found.to_pylist()] == rows


def test_types_are_inferred() -> None:
    sample = pa.array([b'1,"a,b",2.5,true,,x', None, b"2,c,3,FALSE,,1", b"3,4"])
    assert ddl_of(infer_csv(sample)) == ("_c0 BIGINT, _c1 STRING, _c2 DOUBLE, _c3 BOOLEAN, _c4 STRING, _c5 STRING")
    with pytest.raises(OptionError, match="no CSV values to infer a schema from"):
        infer_csv(pa.array([None], pa.binary()))
