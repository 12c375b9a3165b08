"""`kwire schema size` with values, and `kwire schema advise`."""

from __future__ import annotations

import base64
import gzip
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.plan.definitions import compiled, field
from tests.schema.writing import message

Call = Callable[..., Any]
GOLDEN = Path(__file__).parents[2] / "data" / "messages-3.9.1.jsonl.gz"

Order: Any = compiled(
    field("Id", "int64", encoding={"0": "fixed64", "1-2": "packed64", "3+": "upacked32"}),
    field("Note", "string", "0-2"),
    field("Days", "[]int32"),
)  # fmt: skip


@pytest.fixture
def definition(tmp_path: Path) -> Path:
    path = tmp_path / "Probe.json"
    path.write_text(Order.DEFINITION)
    return path


def test_size_reports_given_values_by_field_and_encoding(kwire: Call, definition: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.json"
    values.write_text(json.dumps({"id": -300, "note": "abc", "days": [1, 1000]}))
    result = kwire("schema", "size", definition, values, "--version", "1")
    assert (result.code, result.err) == (0, "kwire: Probe version 1: 16 bytes\n")
    assert result.out == (
        "FIELD      AS                      TIMES  BYTES  FIXED  PACKED  UPACKED\n"
        "id         packed64                    1      2      8       2       10\n"
        "note       string                      1      4      -       -        -\n"
        "days       count                       1      1      -       -        -\n"
        "days[]     int32                       2      8      8       3        3\n"
        "(message)  count of tagged fields      1      1      -       -        -\n"
    )
    rows = json.loads(kwire("schema", "size", definition, values, "--version", "0", "--format", "json").out)
    assert sum(row["bytes"] for row in rows) == len(Order(id=-300, note="abc", days=[1, 1000]).encode(version=0))
    assert rows[0]["encodings"] == {
        "fixed16": 2,
        "fixed32": 4,
        "fixed64": 8,
        "packed16": 2,
        "packed32": 2,
        "packed64": 2,
        "upacked16": 3,
        "upacked32": 5,
        "upacked64": 10,
    }


@pytest.mark.requirement("I-46")
def test_size_and_advise_support_encodings_of_elements(kwire: Call, tmp_path: Path) -> None:
    cls: Any = compiled(field("Nodes", "[]int32", encoding={"0": "fixed32", "1": "packed32", "2+": "upacked16"}))
    definition, values = tmp_path / "Probe.json", tmp_path / "values.json"
    definition.write_text(cls.DEFINITION)
    values.write_text('{"nodes": [1, 1000, -1]}')
    smallest = json.loads(kwire("schema", "size", definition, "--format", "json").out)
    assert [row["elements"] for row in smallest] == [{"nodes[]": n} for n in (4, 1, 1, 1)]
    for version, name, size in (("0", "int32", 12), ("1", "packed32", 4), ("2", "upacked16", 6)):
        rows = json.loads(kwire("schema", "size", definition, values, "--version", version, "--format", "json").out)
        assert [(row["path"], row["type"], row["times"], row["bytes"]) for row in rows][:2] == [
            *(("nodes", "count", 1, 4 if version == "0" else 1), ("nodes[]", name, 3, size))
        ]
        body = tmp_path / "body.bin"
        body.write_bytes(cls(nodes=[1, 1000, -1]).encode(version=int(version)))
        [row] = json.loads(kwire("schema", "advise", definition, "--version", version, body, "--format", "json").out)
        own = {"0": "fixed32"}.get(version, name)
        assert (row["path"], row["encoding"], row["bytes"], row["best"]) == ("nodes[]", own, size, "packed32")
        assert row["saved_bytes"] == size - 4
        shown = kwire("schema", "show", definition, "--version", version).out
        assert ("varints" in shown, f"({name})" in shown) == (version != "0", version != "0")


def test_size_reports_given_values_in_each_version(kwire: Call, definition: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.json"
    values.write_text(json.dumps({"id": 2**40, "days": [], "note": ""}))
    rows = json.loads(kwire("schema", "size", definition, values, "--format", "json").out)
    assert [row["bytes"] for row in rows] == [8 + 2 + 4, 6 + 1 + 1 + 1, 6 + 1 + 1 + 1, None]
    assert f"{2**40} does not fit upacked32: 32 bits" in rows[3]["problem"]


def test_size_of_invalid_values_is_an_error(kwire: Call, definition: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.json"
    for content, words in (("{", "not JSON"), ("[]", "not a JSON object"), ('{"id": 1}', "'days' is missing")):
        values.write_text(content)
        result = kwire("schema", "size", definition, values, "--version", "3")
        assert (result.code, words in result.err) == (1, True), result.err
    assert kwire("schema", "size", definition, tmp_path / "gone", "--version", "3").code == 2


def test_show_prints_encodings(kwire: Call, definition: Path) -> None:
    assert "fixed64 in 0, packed64 in 1-2, upacked32 in 3+" in kwire("schema", "show", definition).out
    for version, form in (
        ("0", "big-endian "),
        ("1", "zigzag varint (packed64)"),
        ("3", "unsigned varint (upacked32)"),
    ):
        assert form in kwire("schema", "show", definition, "--version", version).out.splitlines()[2] + " "


def test_advise_counts_bodies_and_reports_the_cost_of_each_encoding(
    kwire: Call, definition: Path, tmp_path: Path
) -> None:
    paths = []
    for number in (3, -5, 70_000):
        paths.append(tmp_path / f"{number}.bin")
        paths[-1].write_bytes(Order(id=number, days=[number]).encode(version=0))
    result = kwire("schema", "advise", definition, "--version", "0", *paths, "-o", tmp_path / "page.html")
    assert result.code == 0
    assert result.out == (
        "FIELD   TYPE   VALUES  FROM     TO  NEGATIVE  NOW  FIXED  PACKED  UPACKED  BEST      SAVES\n"
        "id      int64       3    -5  70000         1   24     24       5       14  packed64     19\n"
        "days[]  int32       3    -5  70000         1   12     12       5        9  packed32      7\n"
    )
    assert "3 bodies of 54 bytes; the best encodings save 26 bytes (48.1%)" in result.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    root = ET.fromstring(page.removeprefix("<!doctype html>\n"))
    text = " ".join(root.itertext())
    assert "Probe version 0" in text
    assert "int64, 3 values from -5 to 70,000" in text.replace("70000", "70,000")
    assert len(root.findall(".//svg")) >= 1 + 2 * (3 + 2)
    assert "http" not in page.replace("http-equiv", "")


def test_advise_reads_json_lines_and_skips_other_messages(kwire: Call, tmp_path: Path) -> None:
    rows = json.loads(kwire("schema", "advise", "MetadataResponse", "--version", "9", GOLDEN, "--format", "json").out)
    from tests import golden

    from kwire.messages import registry

    cls = registry.get("MetadataResponse")
    bodies = [
        cls.decode(golden.unpack(line["b64"]), version=9)
        for line in golden.cached(GOLDEN.name)
        if (line["message"], line["version"]) == ("MetadataResponse", 9)
    ]
    leaders = [p.leader_id for body in bodies for topic in body.topics for p in topic.partitions]
    [row] = [row for row in rows if row["path"] == "topics[].partitions[].leader_id"]
    assert (row["values"], row["smallest"], row["largest"]) == (len(leaders), min(leaders), max(leaders))
    assert row["negative"] == sum(leader < 0 for leader in leaders)
    assert row["encodings"]["fixed32"] == 4 * len(leaders) == row["bytes"]
    assert sum(row["packed_sizes"].values()) == len(leaders)
    assert "fixed64" not in row["encodings"]


def test_advise_rejects_invalid_bodies(kwire: Call, definition: Path, tmp_path: Path) -> None:
    good = base64.b64encode(Order().encode(version=0)).decode()
    for name, content, code in (
        ("gone.bin", None, 2),
        ("empty.jsonl", b"\n", 2),
        ("other.jsonl", json.dumps({"b64": good, "version": 1}).encode(), 2),
        ("fine.jsonl", json.dumps({"b64": good}).encode() + b"\n", 0),
        ("fine.jsonl.gz", gzip.compress(json.dumps({"b64": good, "version": 0}).encode()), 0),
        ("bad.jsonl", b"{", 1),
        ("bad2.jsonl", b"[]", 1),
        ("bad3.jsonl", b'{"b64": "?"}', 1),
        ("bad4.jsonl", b'{"b65": ""}', 1),
        ("bad.jsonl.gz", b"x", 2),
        ("cut.bin", b"\0", 1),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        result = kwire("schema", "advise", definition, "--version", "0", tmp_path / name)
        assert result.code == code, (name, result.err)
    assert kwire("schema", "advise", definition, "--version", "9", definition).code == 2


def test_check_reports_errors_of_encodings(kwire: Call, tmp_path: Path) -> None:
    (tmp_path / "Order.json").write_text(
        message({"name": "A", "type": "int8", "versions": "0+", "encoding": "fixed16"})
    )
    result = kwire("schema", "check", tmp_path)
    assert (
        result.code,
        "Order.A: encoding is allowed only for int16, int32, int64 and arrays of them, not to int8" in result.out,
    ) == (1, True)
    assert "[I-10]" in result.out
