"""Definitions with KIP-625's encodings, in both notations: their meaning and every error."""

from __future__ import annotations

from typing import Any

import pytest
from tests.schema.writing import common, field, message, tagged

from kwire import schema
from kwire.codegen import message_source
from kwire.errors import SchemaError
from kwire.schema.layout import compare, layout, layouts
from kwire.schema.model import Field
from kwire.schema.wire_size import smallest_message

BOTH = {"0-1": "fixed32", "2+": "fixed64"}


def only(*fields: dict[str, Any], **attributes: Any) -> Field:
    return schema.parse(message(*fields, **attributes)).struct.fields[0]


def reported(item: Field) -> list[tuple[str, str]]:
    return [(str(versions), name) for versions, name in item.encodings]


# (rule, definition): what is wrong is always the field Amount of the message Order
BROKEN: list[tuple[str, str]] = [
    *(
        ("I-10", message(field(kind, encoding="fixed16")))
        for kind in ("int8", "uint16", "uint32", "bool", "float64", "uuid", "string", "[]int8", "[]string")
    ),
    ("I-10", message(field("Item", encoding="packed32"), commonStructs=[common("Item", field())])),
    ("I-10", message(field("[]Item", encoding="packed32"), commonStructs=[common("Item", field())])),
    ("I-11", message(field(encoding={"0-1": "fixed32"}))),
    ("I-11", message(field(encoding={"1+": "fixed32"}))),
    ("I-11", message(field(encoding={"0": "fixed32", "2+": "packed32"}))),
    ("I-11", message(field(versions="0-2", encoding={"0-3": "packed32"}))),
    ("I-11", message(field(versions="0-2", encoding={"0-1": "packed32", "2+": "fixed32"}))),
    ("I-11", message(field({"0-1": "int32"}))),  # type: ignore[arg-type]
    ("I-11", message(field({"0": "int32", "2+": "varint32"}))),  # type: ignore[arg-type]
    ("I-11", message(field("[]int32", encoding={"0-1": "packed32"}))),
    ("I-11", message(field({"0": "[]int32", "2+": "[]varint32"}))),  # type: ignore[arg-type]
    ("I-12", message(field(encoding={"0-2": "fixed32", "2+": "packed32"}))),
    ("I-12", message(field(encoding={"0+": "fixed32", "1": "packed32", "2+": "packed32"}))),
    ("I-12", message(field(encoding={"1": "fixed32", "1-1": "packed32"}))),
    ("I-12", message(field({"0-5": "int32", "5+": "varint32"}))),  # type: ignore[arg-type]
    *(
        ("I-13", message(field(encoding=name)))
        for name in ("unsigned32", "Fixed32", "packed", "fixed8", "upacked128", "packed32 ", "varint32", "", "int32")
    ),
    ("I-13", message(field(encoding={"0-9": "fixed32", "10+": "unsigned32"}))),
    ("I-14", message(field(encoding={}))),
    ("I-14", message(field(encoding=32))),
    ("I-14", message(field(encoding=["packed32"]))),
    ("I-14", message(field(encoding={"none": "packed32"}))),
    ("I-14", message(field(encoding={"0-": "packed32"}))),
    ("I-14", message(field(encoding={"": "packed32"}))),
    ("I-14", message(field(encoding={"3-1": "packed32"}))),
    ("I-14", message(field(encoding={"0+": 32}))),
    ("I-14", message(field(encoding={"0+": None}))),
    ("I-14", message(field({}))),  # type: ignore[arg-type]
    ("I-14", message(field({"x": "int32"}))),  # type: ignore[arg-type]
    ("I-15", message(field("int32", encoding="fixed64"))),
    ("I-15", message(field("int16", encoding={"0-1": "packed16", "2+": "upacked32"}))),
    ("I-15", message(field("[]int32", encoding="packed64"))),
    ("I-23", message(field("int64", encoding={"0-1": "fixed32", "2+": "fixed64"}, default=2**31))),
    ("I-23", message(field("int32", encoding="upacked16", default=-32769))),
    ("I-23", message(field({"0": "varint16", "1+": "int32"}, default=32768))),  # type: ignore[arg-type]
    ("I-34", message(field({"0": "int32", "1+": "string"}))),  # type: ignore[arg-type]
    ("I-34", message(field({"0": "int8", "1+": "varint16"}))),  # type: ignore[arg-type]
    ("I-34", message(field({"0": "uint16", "1+": "int32"}))),  # type: ignore[arg-type]
    ("I-34", message(field({"0": "[]int32", "1+": "int32"}))),  # type: ignore[arg-type]
    ("I-34", message(field({"0": "[]int32", "1+": "varint32"}))),  # type: ignore[arg-type]
    ("I-34", message(field({"0": "[]int32", "1+": "[]string"}))),  # type: ignore[arg-type]
    ("I-34", message(field("[]varint32", encoding="packed32"))),
    ("I-34", message(field({"0+": "[]int32"}, encoding="packed32"))),  # type: ignore[arg-type]
    ("I-34", message(field("varint32", encoding="packed32"))),
    ("I-34", message(field({"0+": "int32"}, encoding="packed32"))),  # type: ignore[arg-type]
    ("E-10", message(field({"0": "int32", "1+": "varint8"}))),  # type: ignore[arg-type]
    ("E-10", message(field("varint8"))),
    ("E-10", message(field({"0": "[]int32", "1+": "[]varint8"}))),  # type: ignore[arg-type]
    ("E-12", message(field("[][]varint32"))),
    ("E-10", message(field({"0+": "int7"}))),  # type: ignore[arg-type]
    ("E-46", message(field("int32", encoding="packed32", default=2**31))),
]


@pytest.mark.requirement("I-10", "I-11", "I-12", "I-13", "I-14", "I-15", "I-23", "I-34", "I-40", "I-45", "I-46")
@pytest.mark.requirement("S625-23", "S625-24", "S625-25", "S625-30")
@pytest.mark.parametrize(("rule", "text"), BROKEN, ids=[f"{rule}-{i}" for i, (rule, _) in enumerate(BROKEN)])
def test_an_encoding_error_names_rule_struct_and_field(rule: str, text: str) -> None:
    made, errors = schema.check(text, "Order.json")
    assert [(e.rule, e.file, e.struct, e.field) for e in errors] == [(rule, "Order.json", "Order", "Amount")]
    assert made is not None or rule in ("E-10", "E-12", "I-14", "I-34", "I-12")


def test_an_error_ends_with_a_remedy() -> None:
    for item, words in (
        (field(encoding="unsigned32"), "did you mean 'upacked32'"),
        (field(encoding={"0": "fixed32", "3+": "packed32"}), "version 1 is missing"),
        (field(versions="2+", encoding={"1+": "packed32"}), "versions of the field, 2+: it covers 1+"),
        (field("int64", encoding="fixed16", default=40000), "40000 does not fit fixed16: 16 bits, -32768 to 32767"),
    ):
        with pytest.raises(SchemaError, match=words.replace("+", "\\+")):
            schema.parse(message(item))


@pytest.mark.requirement("I-01", "I-03", "I-41", "I-44", "I-47", "I-48", "S625-18", "S625-19", "S625-20", "S625-21")
@pytest.mark.requirement("S625-22", "S625-33")
def test_encoding_is_a_name_or_a_name_per_range() -> None:
    assert reported(only(field(encoding="packed32"))) == [("0+", "packed32")]
    assert reported(only(field(versions="2+", encoding="upacked16"))) == [("2+", "upacked16")]
    ranges = {"5+": "upacked32", "0-1": "fixed16", "2-4": "packed32"}
    item = only(field(encoding=ranges))
    assert reported(item) == [("0-1", "fixed16"), ("2-4", "packed32"), ("5+", "upacked32")]
    assert (item.type, item.encoding(0), item.encoding(3), item.encoding(9)) == (
        *("int32", "fixed16"),
        *("packed32", "upacked32"),
    )
    wide = only(field("int64", encoding=BOTH))
    assert (wide.type, wide.encoding(1), wide.encoding(2)) == ("int64", "fixed32", None)


@pytest.mark.requirement("I-02", "S625-32", "S625-42")
def test_a_field_without_an_encoding_has_the_fixed_one() -> None:
    plain = schema.parse(message(field("int32")))
    for item in (
        field("int32", encoding="fixed32"),
        field("int32", encoding={"0-1": "fixed32", "2+": "fixed32"}),
        field({"0-2": "int32", "3+": "int32"}),  # type: ignore[arg-type]
    ):
        assert schema.render(schema.parse(message(item))) == schema.render(plain)
    assert plain.struct.fields[0].encodings == ()
    assert plain.struct.fields[0].encoding(0) is None


@pytest.mark.requirement("I-30", "I-31", "I-32", "I-33", "S625-10", "S625-11", "S625-12", "S625-13", "S625-14")
@pytest.mark.requirement("S625-15", "S625-16", "S625-17", "S625-44")
@pytest.mark.parametrize(
    ("type_", "logical", "encoding"),
    [
        ("varint16", "int16", "packed16"),
        ("varint32", "int32", "packed32"),
        ("varint64", "int64", "packed64"),
        ("unsigned_varint16", "int16", "upacked16"),
        ("unsigned_varint32", "int32", "upacked32"),
        ("unsigned_varint64", "int64", "upacked64"),
        ("int32", "int32", None),
        ({"0+": "varint32"}, "int32", "packed32"),
        ({"0-9": "int32", "10+": "unsigned_varint32"}, "int32", {"0-9": "fixed32", "10+": "upacked32"}),
        ({"0-1": "int32", "2+": "int64"}, "int64", {"0-1": "fixed32", "2+": "fixed64"}),
        ({"2+": "varint16", "0-1": "unsigned_varint64"}, "int64", {"0-1": "upacked64", "2+": "packed16"}),
        ({"0-1": "int16", "2+": "int32"}, "int32", {"0-1": "fixed16", "2+": "fixed32"}),
    ],
)
def test_a_type_per_version_is_another_notation_of_encodings(type_: Any, logical: str, encoding: Any) -> None:
    attributes = {} if encoding is None else {"encoding": encoding}
    one, other = (schema.parse(message(item)) for item in (field(type_), field(logical, **attributes)))
    assert schema.render(one) == schema.render(other)
    assert one.struct.fields[0].type == logical


@pytest.mark.requirement("I-30")
def test_a_type_object_with_a_single_type_may_be_any_type() -> None:
    assert only(field({"0-1": "string", "2+": "string"})).type == "string"  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="I-11"):
        only(field({"0-1": "string"}))  # type: ignore[arg-type]


@pytest.mark.requirement("I-49")
@pytest.mark.parametrize(
    ("type_", "logical", "encoding"),
    [
        ("[]varint32", "[]int32", "packed32"),
        (" [] unsigned_varint16 ", "[]int16", "upacked16"),
        ({"0+": "[]varint64"}, "[]int64", "packed64"),
        ({"0-9": "[]int32", "10+": "[]unsigned_varint32"}, "[]int32", {"0-9": "fixed32", "10+": "upacked32"}),
        ({"0-1": "[]int32", "2+": "[]int64"}, "[]int64", {"0-1": "fixed32", "2+": "fixed64"}),
        ({"2+": "[]varint16", "0-1": "[]unsigned_varint64"}, "[]int64", {"0-1": "upacked64", "2+": "packed16"}),
    ],
)
@pytest.mark.requirement("I-46", "I-30", "I-31", "I-32", "I-33")
def test_elements_of_arrays_have_encodings_in_both_notations(type_: Any, logical: str, encoding: Any) -> None:
    one, other = (schema.parse(message(item)) for item in (field(type_), field(logical, encoding=encoding)))
    assert schema.render(one) == schema.render(other)
    assert schema.render(schema.parse(schema.render(one))) == schema.render(one)
    assert one.struct.fields[0].type_text == logical
    assert one.struct.fields[0].encodings
    assert '"encoding": ' in schema.render(one)
    plain = schema.parse(message(field({"0-1": "[]int32", "2+": "[]int32"})))  # type: ignore[arg-type]
    assert schema.render(plain) == schema.render(schema.parse(message(field("[]int32"))))


@pytest.mark.requirement("I-46")
def test_an_array_reports_the_encoding_of_its_elements() -> None:
    ranges = {"0": "fixed32", "1": "fixed64", "2": "packed64", "3+": "upacked64"}
    made = schema.parse(message(field("[]int64", encoding=ranges), flexibleVersions="2+"))
    source = message_source(made, "")
    assert "    amount: list[int] = []" in source
    assert '"""[]int64; versions 0+; fixed32 in 0; fixed64 in 1; packed64 in 2; upacked64 in 3+."""' in source
    assert [smallest_message(made, version) for version in range(4)] == [4, 4, 2, 2]
    assert [str(run.versions) for run in layouts(made)] == ["0", "1", "2", "3"]
    slots = [layout(made, v).slots[0] for v in range(4)]
    assert [(str(slot.width), str(slot.element)) for slot in slots] == [
        *(("4+", "4"), ("4+", "8"), ("1+", "1-10"), ("1+", "1-10"))
    ]
    assert [slot.form for slot in slots] == [
        "count as int32, then big-endian numbers",
        "count as int32",
        "count + 1 as unsigned varint, then zigzag varints",
        "count + 1 as unsigned varint, then unsigned varints",
    ]
    changes = [compare(layout(made, v), layout(made, v + 1))[0].what for v in range(3)]
    assert changes == [
        ("elements fixed, was fixed32",),
        ("elements packed64, was fixed", "count as varint, was int32"),
        ("elements upacked64, was packed64",),
    ]


@pytest.mark.requirement("I-40")
@pytest.mark.parametrize("bits", [16, 32, 64])
def test_the_name_of_the_kips_example_is_accepted_in_the_kip_dialect(bits: int) -> None:
    text = message(
        field(f"int{bits}", "LeaderId", encoding={"0-9": f"fixed{bits}", "10+": f"unsigned{bits}"}),
        validVersions="0-10",
    )
    assert [error.rule for error in schema.check(text)[1]] == ["I-13"]
    assert [error.rule for error in schema.check(text, dialect="kafka")[1]] == ["I-13"]
    assert reported(schema.parse(text, dialect="kip").struct.fields[0]) == [
        *(("0-9", f"fixed{bits}"), ("10+", f"upacked{bits}"))
    ]


# Word for word from KIP-482 and KIP-625, without their "...".
KIP_EXAMPLES = [
    """{ "name": "LeaderId",
  "type": {
    "0-9": "int32",
    "10+": "unsigned_varint32"
  },
  "versions": "0+",
  "entityType": "brokerId",
  "about": "The ID of the leader broker."
}""",
    """{ "name": "LeaderId",
  "type": "int32",
  "versions": "0+",
  "entityType": "brokerId",
  "about": "The ID of the leader broker.",
  "encoding": {
    "0-9": "fixed32",
    "10+": "unsigned32"
}}""",
    """{ "name": "tooSmall", "type": "int64", "versions": "0+",
  "encoding": { "0-1": "fixed32", "2+": "fixed64"} }""",
    """{ "name": "UserAgent", "type": "string", "tag": 0, "taggedVersions": "9+",
        "about": "The user-agent that sent this request." }""",
    """{ "name": "UserAgent", "type": "string", "tag": 0 }""",
    """{ "name": "Foos", "type": "[]Foo", "versions": "0+",
        "about": "Each foo.", "fields": [
          { "name": "Bar", "type": "string", "tag": 0, "taggedVersions": "9+",
            "default": "hello world", "about": "The bar associated with this foo, if any." },
          { "name": "Baz", "type": "int16", "versions": "0+",
            "about": "The baz associated with this foo." }
        ]
      }""",
    """{ "name": "Foos", "type": "[]Foo", "tag": 0, "taggedVersions": "9+", "fields": [
          { "name": "Bar", "type": "string", "tag": 0 }
        ]
      }""",
    """{ "name": "Foo", "type": "Foo", "tag": 0, "fields": [
          { "name": "Baz", "type": "int16", "versions": "0+" }
        ]
      }""",
]


@pytest.mark.requirement("T-08", "I-40", "S482-57", "S482-58")
@pytest.mark.parametrize("example", KIP_EXAMPLES)
def test_the_examples_of_the_kips_are_accepted_in_their_dialect(example: str) -> None:
    text = f"""{{"apiKey": 9000, "type": "response", "name": "FooResponse", "validVersions": "0-10",
        "flexibleVersions": "9+", "fields": [{example}]}}"""
    made = schema.parse(text, dialect="kip")
    assert schema.render(schema.parse(schema.render(made))) == schema.render(made)  # strict takes what is made of it


@pytest.mark.requirement("V-55", "V-51", "V-44", "I-46")
def test_encodings_of_elements_follow_the_rules_of_encodings() -> None:
    old = schema.parse(message(field("[]int32")))
    later = schema.parse(message(field("[]int32", encoding={"0-3": "fixed32", "4+": "packed32"}), validVersions="0-4"))
    assert schema.compare(old, later) == []
    [violation] = schema.compare(old, schema.parse(message(field("[]varint32"))))
    assert (violation.rule, violation.where) == ("V-55", "Order.Amount")
    assert "encoding fixed32 becomes packed32 in versions 0-3" in violation.message
    wide = schema.parse(message(field("[]int64", encoding={"0-3": "fixed32", "4+": "packed64"}), validVersions="0-4"))
    assert schema.compare(old, wide) == []
    [violation] = schema.compare(old, schema.parse(message(field("[]int64"))))
    assert (violation.rule, "keep []int32" in (violation.advice or "")) == ("V-51", True)
    before, after = (schema.parse(message(tagged(0, type=kind))) for kind in ("[]int32", "[]unsigned_varint32"))
    assert [violation.rule for violation in schema.compare(before, after)] == ["V-44"]
    boxed = field("[]Item", fields=[field("int32", "Id", encoding="packed32")])
    packed = schema.parse(message(field("[]varint32"), flexibleVersions="none"))
    assert schema.compare(packed, schema.parse(message(boxed, flexibleVersions="none"))) == []
    assert [v.rule for v in schema.compare(old, schema.parse(message(boxed)))] == ["V-51"]


@pytest.mark.requirement("I-46")
def test_merged_releases_keep_the_encodings_of_elements() -> None:
    ranges = {"0-1": "fixed32", "2+": "packed32"}
    old = schema.parse(message(field("[]int32", encoding=ranges), validVersions="0-2"))
    new = schema.parse(message(field("[]int32", encoding="upacked32", versions="3+"), validVersions="3-4"))
    merged, conflicts = schema.merge([("2.0", new), ("1.0", old)])
    assert reported(merged.struct.fields[0]) == [("0-1", "fixed32"), ("2", "packed32"), ("3+", "upacked32")]
    assert schema.render(schema.parse(schema.render(merged))) == schema.render(merged)
    assert conflicts == []


def test_encodings_combine_with_map_keys_tags_ignorable_and_entity_types() -> None:
    made = schema.parse(
        message(
            tagged(0, encoding={"1-2": "packed32", "3+": "upacked32"}, ignorable=True),
            field("[]Item", "Items", fields=[field(mapKey=True, encoding="packed32", entityType="brokerId")]),
            field("varint64", "Producer", entityType="producerId"),
        )
    )
    assert schema.render(schema.parse(schema.render(made))) == schema.render(made)
    assert [len(f.encodings) for f in made.struct.fields] == [2, 0, 1]
    assert '"encoding": {"1-2": "packed32", "3+": "upacked32"}' in schema.render(made)
    assert '"type": "int64", "versions": "0+", "encoding": "packed64"' in schema.render(made)


def test_docstrings_sizes_and_layouts_use_the_encoding() -> None:
    made = schema.parse(
        message(field("int64", encoding={"0": "fixed32", "1": "fixed64", "2": "packed64", "3+": "upacked64"}))
    )
    source = message_source(made, "")
    assert '"""int64; versions 0+; fixed32 in 0; fixed64 in 1; packed64 in 2; upacked64 in 3+."""' in source
    assert [smallest_message(made, version) for version in range(4)] == [4, 8 + 1, 1 + 1, 1 + 1]
    assert [str(run.versions) for run in layouts(made)] == ["0", "1", "2", "3"]
    assert [str(layout(made, v).slots[0].width) for v in range(4)] == ["4", "8", "1-10", "1-10"]
    changes = [compare(layout(made, v), layout(made, v + 1))[0].what for v in range(3)]
    assert changes == [("fixed, was fixed32",), ("packed64, was fixed",), ("upacked64, was packed64",)]


@pytest.mark.requirement("V-55", "I-22", "S625-07", "S625-09", "S625-39")
def test_only_a_new_version_may_change_to_a_packed_encoding() -> None:
    old = schema.parse(message(field("int32")))
    later = schema.parse(message(field({"0-3": "int32", "4+": "unsigned_varint32"}), validVersions="0-4"))  # type: ignore[arg-type]
    assert schema.compare(old, later) == []
    [violation] = schema.compare(old, schema.parse(message(field("varint32"))))
    assert violation.rule == "V-55"


@pytest.mark.requirement("V-55", "I-21", "S625-31", "S625-40")
def test_a_field_can_widen_to_64_bits_if_released_versions_keep_32() -> None:
    old = schema.parse(message(field("int32")))
    wide = schema.parse(message(field("int64", encoding={"0-3": "fixed32", "4+": "fixed64"}), validVersions="0-4"))
    assert schema.compare(old, wide) == []
    [violation] = schema.compare(old, schema.parse(message(field("int64"))))
    assert (violation.rule, "fixed32" in (violation.advice or "")) == ("V-51", True)


def test_merged_releases_keep_the_encoding_of_each_version() -> None:
    old = schema.parse(message(field(encoding={"0-1": "fixed32", "2+": "packed32"}), validVersions="0-2"))
    new = schema.parse(message(field("int32", encoding="upacked32", versions="3+"), validVersions="3-4"))
    merged, _ = schema.merge([("2.0", new), ("1.0", old)])
    assert reported(merged.struct.fields[0]) == [("0-1", "fixed32"), ("2", "packed32"), ("3+", "upacked32")]
    assert schema.render(schema.parse(schema.render(merged))) == schema.render(merged)
