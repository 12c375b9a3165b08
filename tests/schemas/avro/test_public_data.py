"""Schemas and values of Avro's own implementations (tests/data/public), with what Avro's Java library makes of them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from tests import golden
from tests.compiled import needs_compiled_code
from tests.schemas.avro.drawing import plain, tagged

from kwire import native
from kwire.errors import InvalidSchema
from kwire.schemas.avro import Decoder, parse

LINES = list(golden.lines("public/avro.jsonl.gz"))
VALUES = {line["file"]: line for line in LINES if "writer" in line}
DIFFERENCES = {
    "lang/c/tests/schema_tests/fail/invalid_avro_id": "names may have any characters: they are compared, not parsed",
}
"""Schemas that kwire takes although Avro refuses them."""
RECURSIVE = "recordField"


def test_schemas_are_parsed_or_refused_as_avro_does() -> None:
    valid = {line["file"]: line["valid"] for line in LINES if "schema" in line}
    found = dict.fromkeys(valid, True)
    for line in LINES:
        if "schema" in line:
            try:
                parse(line["schema"])
            except InvalidSchema:
                found[line["file"]] = False
    assert {file for file in valid if found[file] != valid[file]} == {*DIFFERENCES}
    assert sum(valid.values()) > 100
    assert len(valid) - sum(valid.values()) > 10


@pytest.mark.parametrize("path", [pytest.param("kernel", marks=needs_compiled_code), "plain"])
@pytest.mark.parametrize("file", VALUES)
def test_values_are_read_as_java_reads_them(file: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if path == "plain":
        monkeypatch.setattr(native, "LEVEL", None)
    line = VALUES[file]
    schema, columns, wanted = parse(line["writer"]), None, line["java"]
    declared: Any = json.loads(line["writer"])
    if RECURSIVE in line["writer"]:  # a record inside of itself has no type in Arrow
        with pytest.raises(InvalidSchema, match=r"recordField.*contains itself"):
            Decoder([schema], schema)
        declared["fields"] = [each for each in declared["fields"] if each["name"] != RECURSIVE]
        columns = [each["name"] for each in declared["fields"]]
        wanted = [{name: value for name, value in each.items() if name != RECURSIVE} for each in wanted]
    values = pa.array([golden.unpack(each) for each in line["values"]], pa.binary())
    decoded = Decoder([schema], schema, columns=columns).decode(values)
    decoded.array.validate(full=True)
    bad = set(decoded.errors.rows.tolist())
    assert bad == {row for row, each in enumerate(wanted) if str(each).startswith("ERROR")}
    assert bool(bad) == ("bad-union-discriminant" in file)
    for row, (found, each) in enumerate(zip(plain(decoded.array), wanted, strict=True)):
        assert row in bad or tagged(declared, found) == each
