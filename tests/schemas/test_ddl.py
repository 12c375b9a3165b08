"""Spark's DDL as Arrow types, and back."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kwire.errors import OptionError
from kwire.schemas import ddl_of, parse_ddl
from kwire.schemas.ddl import MAX_DEPTH, parse_type

CASES = [
    ("id BIGINT", pa.struct([("id", pa.int64())])),
    ("a boolean,b Byte, c short,d integer,e long", "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT"),
    ("f real, g double, h string, i binary", "f FLOAT, g DOUBLE, h STRING, i BINARY"),
    ("t TIMESTAMP_LTZ, u timestamp_ntz, d DATE", "t TIMESTAMP, u TIMESTAMP_NTZ, d DATE"),
    ("`a b`: INT, `x``y` INT COMMENT 'it\\'s, <here>', ü INT", "`a b` INT, `x``y` INT, `ü` INT"),
    ("lines ARRAY<STRUCT<sku: STRING, `n` INT>>", "lines ARRAY<STRUCT<sku: STRING, n: INT>>"),
    ("STRUCT<m: map<string,array<array<int>>>>", "m MAP<STRING, ARRAY<ARRAY<INT>>>"),
    ("struct INT, map STRING", "struct INT, map STRING"),
    ("struct STRUCT<a: INT>", "struct STRUCT<a: INT>"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_ddl_both_ways(text: str, expected: str | pa.DataType) -> None:
    kind = parse_ddl(text)
    assert expected in (kind, ddl_of(kind))
    assert parse_ddl(ddl_of(kind)) == kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"expected a name \(in backquotes, unless .*\), got the end, at character 1"),
        ("id", "expected a type, got the end, at character 3"),
        ("id BIGNT", r"the type 'BIGNT' is not supported \(did you mean 'BIGINT'\?\), at character 4"),
        ("id INT,", "got the end, at character 8"),
        ("id INT)", r"expected ',' or the end, got '\)', at character 7"),
        ("id INT name STRING", "expected ',' or the end, got 'name', at character 8"),
        ("id INT, id INT", "the name 'id' is there twice, at character 9"),
        ("id INT NOT NULL", "'id': NOT NULL is not supported"),
        ("id INT COMMENT x", "expected a comment in quotes"),
        ("x DECIMAL(10, 12)", r"DECIMAL\(10, 12\): expected a precision from 1 to 38, and a scale up to the precision"),
        ("x ARRAY<INT", "expected '>', got the end"),
        ("x MAP<STRING>", "expected ',', got '>'"),
        ("x STRUCT<>", "expected a name"),
        ("STRUCT<a: INT> x", "expected ',' or the end, got 'x'"),
        ("`a INT", "expected a name"),
        ("x " + "ARRAY<" * (MAX_DEPTH + 1) + "INT" + ">" * (MAX_DEPTH + 1), f"nested more than {MAX_DEPTH} deep"),
        ("x " + "MAP<STRING, " * (MAX_DEPTH + 1) + "INT" + ">" * (MAX_DEPTH + 1), f"nested more than {MAX_DEPTH} deep"),
        ("x " + "MAP<" * (MAX_DEPTH + 1) + "INT" + ", INT>" * (MAX_DEPTH + 1), f"nested more than {MAX_DEPTH} deep"),
        ("x " + "STRUCT<a:" * 10_000, f"nested more than {MAX_DEPTH} deep"),
    ],
)
def test_faults_are_named_with_their_place(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=f"^DDL: .*{message}"):
        parse_ddl(text)


def test_a_type_alone() -> None:
    assert parse_type("array<struct<name:string>>") == pa.list_(pa.field("element", pa.struct([("name", pa.string())])))
    deepest = "ARRAY<" * MAX_DEPTH + "INT" + ">" * MAX_DEPTH
    assert ddl_of(parse_type(deepest)) == deepest
    maps = "MAP<STRING, " * MAX_DEPTH + "INT" + ">" * MAX_DEPTH
    assert ddl_of(parse_type(maps)) == maps
    with pytest.raises(OptionError, match=r"time64.* has no name in DDL"):
        ddl_of(pa.struct([("t", pa.time64("us"))]))
