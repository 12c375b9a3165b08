"""The definition language: accepted definitions and the resulting model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.schema.writing import common, coordinator_key, field, message, request, tagged

from kwire import schema
from kwire.errors import SchemaError
from kwire.schema.catalogue import release_files
from kwire.schema.json_text import JsonTextError, read_json_text
from kwire.schema.names import camel_name, snake_name
from kwire.schema.versions import NONE, Versions

# The README's example, with every kind of comment and the lenient scalars that Kafka's own files use.
EXAMPLE = """
// Licensed to nobody.
{
  "apiKey": "3",  /* a number in a text */
  "type": "request",
  "listeners": "broker",
  "name": "OrderRequest",
  "validVersions": "0-3", "flexibleVersions": "2+",
  "fields": [
    { "name": "Url", "type": "string", "versions": "0+", "about": "// nor this",
      "default": "http://host/*no comment*/" },
    { "name": "Paid", "type": "boolean", "versions": "1+", "ignorable": "true", "default": false },
    { "name": "Note", "type": "string", "tag": "0", "taggedVersions": "2+", "default": null },
    { "name": "Lines", "type": "[]Line", "versions": "0+", "fields":
      { "name": "Id", "type": "int64", "versions": "0+", "mapKey": true }
    }
  ]
}
// the end
"""


@pytest.mark.requirement("SDEF-01", "SDEF-02", "SDEF-03", "SDEF-04", "SDEF-16", "SDEF-27", "SDEF-29", "SDEF-37", "T-05")
@pytest.mark.requirement("SDEF-49", "SDEF-50", "SDEF-51", "S482-31", "S482-36", "S482-41", "SDEF-64", "SDEF-113")
def test_a_definition_with_comments_and_lenient_scalars_is_read() -> None:
    spec = schema.parse(EXAMPLE)
    assert (spec.name, spec.kind, spec.api_key, spec.listeners) == ("OrderRequest", "request", 3, ("broker",))
    assert (str(spec.valid), str(spec.flexible)) == ("0-3", "2+")
    url, paid, note, lines = spec.struct.fields
    assert url.default == "http://host/*no comment*/"
    assert url.about == "// nor this"
    assert (paid.type, paid.ignorable, paid.default) == ("bool", True, False)
    assert (note.tag, str(note.versions), str(note.tagged), note.default) == (0, "2+", "2+", "")
    assert lines.type_text == "[]Line"
    assert lines.struct is not None
    assert [f.attr for f in lines.struct.map_keys] == ["id"]
    assert [f.attr for f in spec.struct.class_fields] == ["url", "paid", "lines", "note"]


@pytest.mark.requirement("T-10", "S482-35", "S482-38", "S482-40", "S482-59")
def test_the_example_of_kip_482_is_read() -> None:
    spec = schema.parse(
        """{ "apiKey": 9000, "type": "response", "name": "FooResponse",
             "validVersions": "0-9", "flexibleVersions": "9+",
             "fields": [
               { "name": "UserAgent", "type": "string", "tag": 0, "taggedVersions": "9+" },
               { "name": "Foos", "type": "[]Foo", "versions": "0+", "fields": [
                 { "name": "Bar", "type": "string", "tag": 0, "taggedVersions": "9+", "default": "hello world" },
                 { "name": "Baz", "type": "int16", "versions": "0+" } ] } ] }"""
    )
    foo = spec.structs[0]
    assert [(f.name, f.tag, f.default) for f in foo.fields] == [("Bar", 0, "hello world"), ("Baz", None, 0)]


def test_a_common_struct_is_shared_by_all_its_uses() -> None:
    spec = schema.parse(
        message(
            field("Outer", "First"),
            field("[]Outer", "Second", versions="1+"),
            commonStructs=[common("Outer", field("Inner", "Inner")), common("Inner", field()), common("Unused")],
        )
    )
    first, second = (f.struct for f in spec.struct.fields)
    assert first is second
    # Each follows those it uses, so that classes can be created in this order.
    assert [s.name for s in spec.structs] == ["Inner", "Outer", "Unused"]


def test_a_struct_can_have_no_fields() -> None:
    spec = schema.parse(message(field("Empty", "Nothing")))
    assert spec.structs[0].fields == ()


def test_only_struct_fields_must_have_valid_versions() -> None:
    assert schema.parse(message(field(versions="7+"))).struct.fields[0].versions == Versions(7, 32767)


@pytest.mark.requirement("E-66")
def test_a_removed_api_keeps_only_its_key() -> None:
    spec = schema.parse(request(validVersions="none", flexibleVersions="1-2", latestVersionUnstable=True))
    assert (spec.api_key, spec.valid, spec.flexible, spec.latest_version_unstable) == (9000, NONE, NONE, False)


def test_coordinator_records_are_read() -> None:
    assert schema.parse(coordinator_key()).api_key == 1
    value = schema.parse(message(type="coordinator-value", apiKey=1))
    assert (value.kind, str(value.flexible)) == ("coordinator-value", "1+")


@pytest.mark.requirement("W-80", "W-81", "W-83", "W-86", "S482-24", "S482-28")
def test_header_versions_default_to_those_of_flexible_versions() -> None:
    plain = schema.parse(request(flexibleVersions="2+"))
    assert [plain.header_version(v) for v in plain.valid] == [1, 1, 2, 2]
    given = schema.parse(request(headerVersions={"0": "0", "1-2": "1", "3+": "5"}))
    assert [given.header_version(v) for v in given.valid] == [0, 1, 1, 5]
    shutdown = schema.parse(request(name="ControlledShutdownRequest", apiKey=7, flexibleVersions="3+"))
    assert [shutdown.header_version(v) for v in shutdown.valid] == [0, 1, 1, 2]
    response = {"type": "response", "flexibleVersions": "2+"}
    other = schema.parse(request(name="OrderResponse", **response))
    assert [other.header_version(v) for v in other.valid] == [0, 0, 1, 1]
    versions = schema.parse(request(name="ApiVersionsResponse", apiKey=18, **response))
    assert [versions.header_version(v) for v in versions.valid] == [0, 0, 0, 0]


def test_an_unstable_latest_version_is_not_supported() -> None:
    spec = schema.parse(request(latestVersionUnstable=True))
    assert str(spec.stable) == "0-2"
    assert schema.parse(request(latestVersionUnstable=True, validVersions="0")).stable == NONE


@pytest.mark.requirement("J-01")
def test_derived_names_are_kafkas() -> None:
    cases = {"FooBarBaz": "foo_bar_baz", "fooBarBaz": "foo_bar_baz", "FORTRAN": "fortran", "TopicID": "topic_id"}
    cases |= {"ISRNodes": "isrnodes", "V3AndBelow": "v3_and_below", "KRaftVersion": "kraft_version", "A": "a"}
    assert {name: snake_name(name) for name in cases} == cases
    assert (camel_name("ISR"), camel_name("ErrorCode")) == ("iSR", "errorCode")


def test_attribute_names_avoid_keywords_and_members() -> None:
    spec = schema.parse(message(field(name="Class"), field(name="Encode"), field(name="UnknownTaggedFields")))
    assert [f.attr for f in spec.struct.fields] == ["class_", "encode_", "unknown_tagged_fields_"]


CATALOGUE = Path(__file__).parents[2] / "definitions"


RELEASES = [
    ("2.0.1", 88),
    ("2.2.2", 90),
    ("2.8.2", 157),
    ("3.5.2", 189),
    ("3.9.1", 240),
    ("4.1.2", 279),
    ("4.4.0", 286),
]


@pytest.mark.parametrize(("release", "count"), RELEASES)
def test_every_definition_of_a_release_is_valid_and_renders_to_itself(release: str, count: int) -> None:
    paths = list(release_files(CATALOGUE / f"kafka-{release}").values())
    messages = [schema.load(path) for path in paths]
    assert [schema.render(message) for message in messages] == [path.read_text() for path in paths]
    assert len(messages) == count


def test_a_definition_and_its_rendering_are_the_same_message() -> None:
    text = message(
        field("string", name="Quote", default='say "\\n"', nullableVersions="0+"),
        field("string", name="Never", flexibleVersions="none", entityType="topicName"),
        field("uuid", name="Id", default="AAAAAAAAAAAAAAAAAAAAAQ"),
        field("float64", name="Ratio", default="-Infinity"),
        field("float64", name="Zero", default="-0.0"),
        field("uint32", name="Mask", default="0xff"),
        field("bytes", name="Blob", zeroCopy=True),
        field("[]Item", name="Items", fields=[field(mapKey=True), tagged(0)]),
        deprecatedVersions="0",
    )
    once = schema.render(schema.parse(text))
    assert schema.render(schema.parse(once)) == once
    facts = json.loads(once)
    assert facts["deprecatedVersions"] == "0"
    assert [f.get("default") for f in facts["fields"][:6]] == [
        'say "\\n"',
        None,
        "AAAAAAAAAAAAAAAAAAAAAQ",
        "-Infinity",
        "-0.0",
        "255",
    ]
    assert "about" not in once


@pytest.mark.parametrize("cut", range(0, EXAMPLE.rindex("}"), 7))
def test_a_definition_truncated_anywhere_violates_a_rule(cut: int) -> None:
    text = EXAMPLE[:cut]
    with pytest.raises(SchemaError):
        schema.parse(text)


def test_the_json_parser_is_strict_and_reports_lines() -> None:
    node = read_json_text('{"a": [1, "\\u00e9\\n"],\n\n "b": {"c": null}}')
    assert isinstance(node.value, dict)
    assert node.value["b"].line == 3
    for text in (
        "{'a': 1}",
        '{"a": 1,}',
        "[1 2]",
        '{"a" 1}',
        '"\x01"',
        "01",
        "1.",
        "tru",
        "",
        "/* open",
        "{a: 1}",
        "NaN",
    ):
        with pytest.raises(JsonTextError):
            read_json_text(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"a": 1', "expected a comma or '}' at the end of the file"),
        ("[1", "expected a comma or ']' at the end of the file"),
        ('{"a": 1,', "expected a name in double quotes at the end of the file"),
        ("", "expected a value at the end of the file"),
        ("[1 2]", "expected a comma or ']' before '2'"),
        ("[}", "expected a value before '}'"),
    ],
)
def test_json_that_ends_early_is_said_to_end(text: str, error: str) -> None:
    with pytest.raises(JsonTextError) as caught:
        read_json_text(text)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("tag", "error"),
    [(2**31, "tag must be at most 2147483647"), (-(2**31) - 1, "tag must be at least -2147483648")],
)
def test_a_number_out_of_range_is_told_its_limit(tag: int, error: str) -> None:
    with pytest.raises(SchemaError, match=error):
        schema.parse(message(field(tag=tag, taggedVersions="1+")))
