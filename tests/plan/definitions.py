"""Definitions that have what Kafka's own have not, or have it small."""

from __future__ import annotations

import json
from typing import Any

from kwire import schema


def compiled(*fields: dict[str, Any], valid: str = "0-3", flexible: str = "1+", **more: Any) -> Any:
    """The class of a data message with these fields."""
    definition = {
        "type": "data",
        "name": "Probe",
        "validVersions": valid,
        "flexibleVersions": flexible,
        "fields": list(fields),
        **more,
    }
    return schema.compile(schema.parse(json.dumps(definition)))


def field(name: str, kind: str, versions: str = "0+", **more: Any) -> dict[str, Any]:
    """A field of a definition."""
    return {"name": name, "type": kind, "versions": versions, **more}


# docs/spec/messages.md 8.2: the definition with which Kafka's own classes were tried out.
Probe: Any = compiled(
    field("A", "int8"),
    field("S", "string", nullableVersions="2+", ignorable=True),
    field("Only2", "int32", "2", default=7),
    field("T0", "int16", "1+", tag=0, taggedVersions="1+"),
    field("T1", "string", "1+", nullableVersions="1+", tag=1, taggedVersions="1+"),
    field("T2", "Ns", "1+", nullableVersions="1+", tag=2, taggedVersions="1+", default="null", fields=[
        field("P", "string", "1+")]),
    field("T3", "int8", "3+", tag=3, taggedVersions="3+"),
    field("Ls", "[]El", "1+", fields=[field("K", "int32", "1+", mapKey=True), field("V", "float64", "1+")]),
    field("By", "bytes", "1+", nullableVersions="1+"),
    field("R", "records", "1+", nullableVersions="1+", ignorable=True),
    field("U", "uuid", "1+", ignorable=True),
    field("L", "int64", "1+", ignorable=True),
    field("ISR", "[]int32", "1+", nullableVersions="1+", ignorable=True),
)  # fmt: skip

# messages.md 3.11: the example of KIP-482, repaired.
FooResponse: Any = schema.compile(
    schema.parse(
        """{ "type": "response", "name": "FooResponse", "apiKey": 9000, "validVersions": "0-9",
        "flexibleVersions": "9+", "fields": [
          { "name": "UserAgent", "type": "string", "tag": 0, "taggedVersions": "9+" },
          { "name": "Foos", "type": "[]Foo", "versions": "0+", "fields": [
            { "name": "Bar", "type": "string", "tag": 0, "taggedVersions": "9+", "default": "hello world" },
            { "name": "Baz", "type": "int16", "versions": "0+" } ] } ] }"""
    )
)

# Each primitive once, positional and as a list, in fixed and flexible versions.
PRIMITIVES = ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid", "string", "bytes")
Everything: Any = compiled(
    *(field(f"One{kind}", kind) for kind in PRIMITIVES),
    *(field(f"Many{kind}", f"[]{kind}", nullableVersions="2+") for kind in PRIMITIVES),
    *(
        field(f"Tagged{kind}", kind, "1+", tag=tag, taggedVersions="1+")
        for tag, kind in enumerate(PRIMITIVES)
    ),
)  # fmt: skip

# Tagged in versions 2 and up, positional in 1, at the front and inside: no released message has this yet.
Moved: Any = compiled(
    field("First", "string", "1+", tag=1, taggedVersions="2+", default="d"),
    field("Plain", "int32"),
    field("Inner", "In", "1+", tag=0, taggedVersions="2+", fields=[
        field("X", "int16", "1+"),
        field("Y", "[]int32", "1+", tag=0, taggedVersions="2+"),
        field("Z", "string", "1+")]),
    field("Last", "int8"),
    field("Later", "int64", "2+", tag=2, taggedVersions="2+"),
)  # fmt: skip
MovedOld: Any = compiled(
    field("First", "string", "1+", tag=1, taggedVersions="1+", default="d"),
    field("Plain", "int32"),
    field("Moving", "int64", "0+", tag=0, taggedVersions="2+", default=5),
    field("Last", "int8"),
)  # fmt: skip
