"""Avro's Java library as the judge of what a value is with a reader's schema.

What kwire decodes, Java decodes to the same value. Java also accepts bytes that kwire refuses; the page on Avro lists
them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql.pandas.types import from_arrow_type
from tests.fuzz.avro import mutate
from tests.schemas.avro.drawing import Drawing, plain, tagged, without_logical, written
from tests.schemas.avro.evolving import evolved

from kwire.errors import InvalidSchema
from kwire.schemas.avro import Decoder, arrow_type, parse

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="needs Java"),
]
JARS = Path(pyspark.__file__).parent / "jars"  # Spark brings Avro
JAVA = Path(__file__).parent / "java"
Case = tuple[Any, Any, bytes]


def java(cases: list[Case]) -> list[Any]:
    """Return what Java makes of each case; text for an error."""
    return run(
        "AvroValues", [f"{json.dumps(writer)}\t{json.dumps(reader)}\t{value.hex()}" for writer, reader, value in cases]
    )


def run(program: str, lines: list[str]) -> list[Any]:
    """Run a Java program with lines of input; returns its lines of JSON, errors as text."""
    command = ["java", "-Xmx256m", "-Xss1m", "-cp", f"{JARS}/*", str(JAVA / f"{program}.java")]
    done = subprocess.run(
        command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True, timeout=300
    )
    found = [line if line.startswith("ERROR") else json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(lines)
    return found


def ours(case: Case) -> Any:
    """Return what kwire makes of a case; text for an error."""
    writer, reader, value = case
    try:
        decoder = Decoder([parse(json.dumps(writer))], parse(json.dumps(reader)))
    except InvalidSchema as error:
        return f"ERROR {error}"
    decoded = decoder.decode(pa.array([value], pa.binary()))
    if len(decoded.errors):
        return f"ERROR {decoded.errors.message(0)}"
    return tagged(reader, plain(decoded.array)[0])


def test_whatever_is_decoded_is_what_java_decodes() -> None:
    source, cases = Random(17), []
    for _ in range(300):
        drawing = Drawing(source, multiple_unions=False)
        drawn = without_logical(drawing.record())
        reader = evolved(drawn, source)
        for _ in range(4):
            value = written(drawn, drawing.value(drawn))
            cases.append((drawn, reader, value if source.random() < 0.4 else mutate(value, source)))
    decoded = 0
    for case, wanted in zip(cases, java(cases), strict=True):
        found = ours(case)
        if not str(found).startswith("ERROR"):
            decoded += 1
            assert found == wanted, case
    assert decoded > 500


def bare(kind: Any) -> Any:
    """Return a type in Spark's JSON without what differs: whether it can be null, and digits of times."""
    if isinstance(kind, str):
        return {"timestamp_ltz(9)": "timestamp", "timestamp_ntz(9)": "timestamp_ntz"}.get(kind, kind)
    if isinstance(kind, list):
        return [bare(each) for each in kind]
    ignored = {"nullable", "containsNull", "valueContainsNull", "metadata"}
    return {key: bare(each) for key, each in kind.items() if key not in ignored}


def test_types_are_those_of_from_avro() -> None:
    source = Random(19)
    schemas = [json.dumps(Drawing(source, max_depth=2).record()) for _ in range(400)]
    compared = 0
    for schema, wanted in zip(schemas, run("AvroTypes", schemas), strict=True):
        if str(wanted).startswith("ERROR"):
            assert "more than 38" in wanted or "exceed" in wanted, wanted  # digits of a decimal
            continue
        found = from_arrow_type(arrow_type(parse(schema))).jsonValue()
        assert bare(found) == bare(wanted), schema
        compared += 1
    assert compared > 200


def record(*fields: Any, name: str = "R", **attributes: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **attributes}


def enum(*symbols: str, name: str = "E", **attributes: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **attributes}


def fixed(name: str, size: int, **attributes: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **attributes}


X, Y = {"name": "x", "type": "int"}, {"name": "x", "type": "int", "default": 9}


@pytest.mark.parametrize("both_accept", [True, False])
def test_doubtful_cases(both_accept: bool) -> None:
    accepted: list[Case] = [
        (record(X), record(X, name="Other"), b"\2"),
        (record(X, name="a.R"), record(X, name="b.R"), b"\2"),
        (enum("A", "B"), enum("B", default="B"), b"\0"),
        (enum("A", name="Old"), enum("A", aliases=["Old"]), b"\0"),
        (fixed("Old", 1), fixed("New", 1, aliases=["Old"]), b"x"),
        ("int", ["null", "double"], b"\2"),
        (["null", "int"], "long", b"\2\2"),
        (["int", "null"], ["null", "long"], b"\0\2"),
        ("string", ["null", "bytes"], b"\2x"),
        (record({"name": "old", "type": "int"}), record({"name": "x", "type": "int", "aliases": ["old"]}), b"\2"),
        (record(), record(Y), b""),
        (record(X), record(), b"\2"),
        (record(X, name="One"), ["null", record(X, name="Two")], b"\2"),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, b"\1\2\2\2\4\0"),
        ("long", "long", b"\x80\x80\x00"),  # longer than needed
        ("int", "int", b"\xff\xff\xff\xff\x0f"),
    ]
    refused: list[Case] = [
        ("long", "int", b"\2"),
        ("string", "int", b"\2x"),
        (record(), record(X), b""),
        (enum("A", "B"), enum("B"), b"\0"),
        (enum("A", name="Other"), enum("A"), b"\0"),
        (fixed("F", 1), fixed("G", 1), b"x"),
        (fixed("F", 1), fixed("F", 2), b"x"),
        (["null", "int"], "int", b"\0"),
        ("int", ["null", "string"], b"\2"),
        ("int", "int", b"\xff\xff\xff\xff\xff\x01"),
        ("long", "long", b"\xff" * 10 + b"\1"),
        ("string", "string", b"\1"),
        ("string", "string", b"\4x"),
        (["int"], ["int"], b"\2\2"),
        (enum("A"), enum("A"), b"\2"),
    ]
    cases = accepted if both_accept else refused
    for case, found in zip(cases, java(cases), strict=True):
        mine = ours(case)
        assert str(mine).startswith("ERROR") is not both_accept, (case, mine)
        assert str(found).startswith("ERROR") is not both_accept, (case, found)
        assert not both_accept or mine == found
