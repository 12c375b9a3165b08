"""Schemas of a registry that cannot be used: bad values in `permissive` and `deadletter`, in the words of kwire."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import DecodeError
from kwire.schemas import Registry, decode_arrow

DEEP = "[" * 3000
CHAIN = [
    {"id": i, "subject": f"s{i}", "version": 1, "schemaType": "JSON", "schema": "{}"}
    | ({"references": [{"name": f"r{i + 1}", "subject": f"s{i + 1}", "version": 1}]} if i < 999 else {})
    for i in range(1, 1000)
]


def entry(text: Any, kind: str, **more: Any) -> list[dict[str, Any]]:
    schema = text if isinstance(text, str) else json.dumps(text)
    return [{"id": 1, "subject": "s1", "version": 1, "schemaType": kind, "schema": schema} | more]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (entry({"properties": {"\ud800": {}}}, "JSON"), "has half a surrogate pair"),
        (entry({"type": "record", "name": "\ud800", "fields": []}, "AVRO"), "has half a surrogate pair"),
        (
            entry({"type": "record", "name": "R", "fields": [{"name": "\udc00", "type": "int"}]}, "AVRO"),
            "has half a surrogate pair",
        ),
        (entry({"type": "enum", "name": "E", "symbols": ["\ud800"]}, "AVRO"), "has half a surrogate pair"),
        (entry({"$ref": "http://[x"}, "JSON"), "is not a URL"),
        (entry({"$ref": "nope.json"}, "JSON"), "no reference has this name"),
        (entry(DEEP, "JSON"), "not JSON"),
        (entry(DEEP, "AVRO"), "nested too deep"),
        (CHAIN, "references more than 100 deep"),
        (entry({}, "JSON", references=[{"name": "r", "subject": "s1", "version": 1}]), "circular references"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_schema_that_cannot_be_used_is_a_bad_value(entries: list[Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text(json.dumps([*entries, *GOOD]))
    registry = Registry(tmp_path)
    values = pa.array([b"\0" + struct.pack(">i", 1) + b"{}", b"\0" + struct.pack(">i", 5000) + b'{"a": 1}'])
    assert decode_arrow(values, registry, topic="good", mode="permissive").to_pylist() == [None, {"a": 1}]
    dead, good = decode_arrow(values, registry, topic="good", mode="deadletter").to_pylist()
    assert message in dead["error"]
    assert good == {"value": {"a": 1}, "error": None}
    with pytest.raises(DecodeError, match=message):
        decode_arrow(values, registry, topic="good")


GOOD = [
    {
        "id": 5000,
        "subject": "good-value",
        "version": 1,
        "schemaType": "JSON",
        "schema": '{"type": "object", "properties": {"a": {"type": "integer"}}}',
    }
]
