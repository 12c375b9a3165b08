"""Every rule for a single definition, with at least one violation (docs/spec/messages.md, part 2)."""

from __future__ import annotations

import pickle

import pytest
from tests.schema.writing import INNER, common, coordinator_key, field, headers, message, request, tagged

from kwire import schema
from kwire.errors import SchemaError

# (rule, struct, field, definition): what the error must name.
BROKEN: list[tuple[str, str | None, str | None, str]] = [
    ("E-01", None, None, message() + "x"),
    ("E-01", None, None, "# a comment\n" + message()),
    ("E-01", None, None, message()[:-1]),
    ("E-01", None, None, "[]"),
    ("E-01", None, None, message().replace('"fields": []', '"fields": [,]')),
    ("E-01", None, None, message().replace('"Order"', "'Order'")),
    ("E-01", None, None, '{"a":' * 200 + "1" + "}" * 200),
    ("E-02", "Order", None, message(about="text")),
    ("E-02", "Order", None, message(optionalFields=[])),
    ("E-02", "Item", None, message(field("Item"), commonStructs=[common("Item", color="red")])),
    ("E-02", "Order", "Amount", message(field(unit="cent"))),
    ("E-03", "Order", None, message(latestVersionUnstable={})),
    ("E-03", "OrderRequest", None, request(apiKey="many")),
    ("E-03", "OrderRequest", None, request(apiKey=40000)),
    ("E-03", "OrderRequest", None, request(listeners=["mouse"])),
    ("E-03", "Order", "Amount", message(field(tag="first", taggedVersions="1+"))),
    ("E-03", "Order", "Amount", message(field(tag=1 << 31, taggedVersions="1+"))),
    ("E-03", "Order", "Amount", message(field(ignorable="perhaps"))),
    ("E-03", "Order", "Amount", message(field(about=["text"]))),
    ("E-04", "Order", None, message(validVersions=None)),
    ("E-04", "Order", None, message(validVersions=" ")),
    ("E-04", "Item", None, message(field("Item"), commonStructs=[common("Item", versions=None)])),
    ("E-04", "Order", "Item", message(tagged(0, name="Item", type="Item", versions=None, fields=INNER))),
    ("E-05", None, None, message(name=None)),
    ("E-05", None, None, message(commonStructs=[{"versions": "0+"}])),
    ("E-05", "Order", None, message({"type": "int8", "versions": "0+"})),
    ("E-06", "Order", None, message(type=None)),
    ("E-06", "Order", None, message(type="Data")),
    ("E-07", "Order", None, message(validVersions="1-")),
    ("E-07", "Order", None, message(validVersions="-1")),
    ("E-07", "Order", "Amount", message(field(versions="0 - 2"))),
    ("E-07", "Order", "Amount", message(field(versions="32768"))),
    ("E-07", "Order", "Amount", message(field(versions="+3"))),
    ("E-07", "Order", "Amount", message(field(versions="3-1"))),
    ("E-07", "Order", "Amount", message(field(nullableVersions="x"))),
    ("E-08", "Order", "9th", message(field(name="9th"))),
    ("E-08", "Order", "under_score", message(field(name="under_score"))),
    ("E-08", "Order", "Größe", message(field(name="Größe"))),
    ("E-08", "Order", "Amount\n", message(field(name="Amount\n"))),
    ("E-08", "Order", None, message(field(name=""))),
    ("E-09", "Order", "Amount", message(field(versions=None))),
    ("E-10", "Order", "Amount", message(field("int128"))),
    ("E-10", "Order", "Amount", message({"name": "Amount", "versions": "0+"})),
    ("E-11", "Order", "Amount", message(field("[]"))),
    ("E-12", "Order", "Amount", message(field("[][]int8"))),
    *(
        ("E-13", "Order", "Amount", message(field(kind, nullableVersions="0+")))
        for kind in ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid")
    ),
    ("E-14", "Order", "Amount", message(field(entityType="topicName"))),
    ("E-14", "Order", "Amount", message(field("string", entityType="brokerId"))),
    ("E-14", "Order", "Amount", message(field("int32", entityType="producerId"))),
    ("E-14", "Order", "Amount", message(field(entityType="customer"))),
    ("E-15", "Order", "Amount", message(field(fields=INNER))),
    ("E-16", "Order", "Amount", message(field(flexibleVersions="1+"))),
    ("E-16", "Order", "Amount", message(field("[]string", flexibleVersions="none"))),
    ("E-17", "Item", "Amount", message(field("[]Item", name="Items", fields=[tagged(0, name="Amount", mapKey=True)]))),
    ("E-18", "Order", "Amount", message(tagged(-1, name="Amount"))),
    ("E-19", "Order", "Amount", message(field(tag=0))),
    ("E-20", "Order", "Amount", message(field(taggedVersions="1+"))),
    ("E-21", "Order", "Tagged0", message(tagged(0, type="string", nullableVersions="2+"))),
    ("E-22", "Order", "Tagged0", message(tagged(0, taggedVersions="1-2"))),
    ("E-23", "Order", "Tagged0", message(tagged(0, versions="2+"))),
    ("E-24", "Order", "Amount", message(field("string", zeroCopy=True))),
    ("E-24", "Order", "Amount", message(field("[]bytes", zeroCopy=True))),
    ("E-25", "Order", "Other", message(tagged(0), tagged(0, name="Other"))),
    ("E-26", "Order", "Amount", message(field(versions="0"), field(versions="1+"))),
    ("E-26", "Order", "a", message(field(name="a"), field(name="a", versions="1+"))),  # one object in Python
    ("E-27", "Order", "Tagged2", message(tagged(0), tagged(2))),
    ("E-27", "Order", "Tagged1", message(tagged(1))),
    ("E-28", "Order", None, message(flexibleVersions=None)),
    ("E-29", "Order", None, message(flexibleVersions="1-3")),
    ("E-30", "Order", None, message(listeners=["broker"])),
    ("E-30", "Order", None, message(latestVersionUnstable=True)),
    ("E-31", "item", None, message(commonStructs=[common("item")])),
    ("E-32", "Order", "Item", message(field("Item", "Item", fields=INNER), commonStructs=[common("Item")])),
    (
        "E-33",
        "Order",
        "Second",
        message(field("Item", "First", fields=INNER), field("[]Item", "Second", fields=INNER)),
    ),
    ("E-34", "Item", None, message(commonStructs=[common("Item"), common("Item")])),
    ("E-35", "Item", "Deep", message(commonStructs=[common("Item", field("Deep", "Deep", fields=INNER))])),
    ("E-36", "Item", "Items", message(commonStructs=[common("Item", field("[]Item", "Items"))])),
    (
        "E-36",
        "Even",
        "Next",
        message(commonStructs=[common("Odd", field("Even", "Next")), common("Even", field("Odd", "Next"))]),
    ),
    ("E-37", "Order", "Item", message(field("Item", "Item"), commonStructs=[common("Item", versions="2+")])),
    ("E-37", "Order", "Item", message(field("Item", "Item"), commonStructs=[common("Item", versions="0-1")])),
    ("E-40", "Order", None, message(validVersions="0+")),
    ("E-41", "Order", "Amount", message(field(mapKey=True))),
    ("E-42", "Order", "Item", message(field("Item", "Item", versions="7+", fields=INNER))),
    ("E-42", "Order", "Item", message(field("Item", "Item", versions="none", fields=INNER))),
    ("E-42", "Order", "Item", message(field("[]Item", "Item", versions="none", fields=INNER))),
    (
        "E-42",
        "Outer",
        "Item",
        message(
            field(
                "Outer",
                "Outer",
                versions="0-1",
                fields=[field("[]Item", "Item", versions="2+", fields=[field(versions="2+")])],
            )
        ),
    ),
    ("E-43", "Order", "Amount", message(field("string", flexibleVersions="0+"))),
    ("E-44", "Order", "Tagged0", message(tagged(0, versions="0+", taggedVersions="0+"))),
    ("E-44", "Order", "Tagged0", message(tagged(0, type="string", flexibleVersions="2+"))),
    ("E-45", "Order", "Tagged0", message(tagged(0, type="records"))),
    *(
        ("E-46", "Order", "Amount", message(field(kind, default=default)))
        for kind, default in [
            ("bool", "yes"),
            ("int8", "0xff"),
            ("int8", "-0x1"),
            ("int8", "128"),
            ("int8", "null"),
            ("int8", "0x"),
            ("int8", "09"),
            ("int8", "0200"),
            ("int8", "ten"),
            ("int8", "1" * 5000),
            ("uint16", "65536"),
            ("uint16", "-1"),
            ("int32", "0xffffffff"),
            ("uint32", "4294967296"),
            ("uint32", "-1"),
            ("int64", "0X1"),
            ("float64", "abc"),
            ("float64", "1,5"),
            ("uuid", "AAAA"),
            ("uuid", "AAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
            ("uuid", "+/AAAAAAAAAAAAAAAAAAAA"),
            ("bytes", "x"),
            ("[]int8", "[]"),
            ("string", "\ud800"),
        ]
    ),
    ("E-46", "Order", "Item", message(field("Item", "Item", fields=INNER, default="x"))),
    ("E-47", "Order", "Amount", message(field("[]records"))),
    *(
        ("E-48", "Order", "Amount", message(field(kind, default="null", nullableVersions="1+")))
        for kind in ("string", "bytes", "[]int8")
    ),
    ("E-48", "Order", "Item", message(field("Item", "Item", fields=INNER, default="null"))),
    ("E-60", "Order", None, coordinator_key(apiKey=None)),
    ("E-60", "Order", None, coordinator_key(validVersions="0-1")),
    ("E-60", "Order", None, coordinator_key(flexibleVersions="0+")),
    ("E-61", "Order", None, message(type="coordinator-value")),
    ("E-63", "Order", None, message(headerVersions={"0+": "1"})),
    ("E-63", "OrderRequest", None, headers({"0+": "1"}, validVersions="none")),
    *(
        ("E-64", "OrderRequest", None, headers(versions))
        for versions in [
            {},
            {"": "1"},
            {"x": "1"},
            {"none": "1"},
            {"0+": ""},
            {"0+": "one"},
            {"0+": "-1"},
            {"1+": "1"},
            {"0": "1", "2+": "2"},
            {"0+": "1", "2+": "2"},
            {"0-2": "1"},
            {"0-3": "1", "4+": "2"},
        ]
    ),
    (
        "E-65",
        "ApiVersionsResponse",
        None,
        headers({"0-1": "0", "2+": "1"}, type="response", name="ApiVersionsResponse", apiKey=18),
    ),
    ("T-01", None, None, message().replace('"fields"', '"type": "data", "fields"')),
    ("T-02", "Order", "Amount", message(field("[]int32", fields=INNER))),
    ("T-04", "Order", "Amount", message(field("uuid", nullableVersions="0+"))),
    ("T-09", "Order", "amount", message(field(), field(name="amount"))),
    ("T-09", "Order", "TopicID", message(field(name="TopicId"), field(name="TopicID"))),
    ("T-09", "Order", None, message(field("Order", "Inner", fields=INNER))),
    ("T-09", "SPEC", None, message(field("SPEC", "Inner", fields=INNER))),
    ("T-09", "Order", "Amount", message(field("Foo Bar"))),
    ("T-09", "A B", None, message(commonStructs=[common("A B")])),
    ("T-09", "9A", None, message(commonStructs=[common("9A")])),
    ("T-09", "Gr\u00f6\u00dfe", None, message(commonStructs=[common("Gr\u00f6\u00dfe")])),
    ("T-09", "Order", "Amount", message(field("None", fields=INNER))),
    *(
        ("T-09", name or None, None, message(name=name))
        for name in [
            "",
            "../../Escaped",
            "/tmp/Escaped",
            'A import a #"+open("pwn","w")+"',
            "A B",
            "9A",
            "class",
            "True",
            "Order\0",
            "Order\n",
            "Under_score",
            "Gr\u00f6\u00dfe",
        ]
    ),
]
SAID_BY = {"T-04": "E-13"}  # the trap is reported by an ordinary rule


@pytest.mark.requirement("E-01", "E-02", "E-03", "E-04", "E-05", "E-06", "E-07", "E-08", "E-09", "E-10", "E-11")
@pytest.mark.requirement("SDEF-18", "SDEF-53", "SDEF-54", "SDEF-56", "SDEF-65", "SDEF-69", "SDEF-97", "S482-37")
@pytest.mark.requirement("E-12", "E-13", "E-14", "E-15", "E-16", "E-17", "E-18", "E-19", "E-20", "E-21", "E-22")
@pytest.mark.requirement("E-23", "E-24", "E-25", "E-26", "E-27", "E-28", "E-29", "E-30", "E-31", "E-32", "E-33")
@pytest.mark.requirement("E-34", "E-35", "E-36", "E-37", "E-40", "E-41", "E-42", "E-43", "E-44", "E-45", "E-46")
@pytest.mark.requirement("E-47", "E-48", "E-60", "E-61", "E-63", "E-64", "E-65", "T-01", "T-02", "T-03", "T-04")
@pytest.mark.requirement("T-09")
@pytest.mark.parametrize(
    ("rule", "struct", "name", "text"), BROKEN, ids=[f"{case[0]}.{i}" for i, case in enumerate(BROKEN)]
)
def test_a_violated_rule_is_reported_with_file_struct_and_field(
    rule: str, struct: str | None, name: str | None, text: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        schema.parse(text, file="order.json")
    error = caught.value
    where = ("order.json", struct, name)
    assert (error.rule, error.file, error.struct, error.field) == (SAID_BY.get(rule, rule), *where), str(error)
    assert "(line " in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("text", [case[3] for case in BROKEN], ids=[f"{c[0]}.{i}" for i, c in enumerate(BROKEN)])
def test_one_mistake_is_one_error(text: str) -> None:
    assert len(schema.check(text)[1]) == 1


def test_an_error_has_the_line_of_its_cause() -> None:
    text = '{"type": "data", "name": "Order", "validVersions": "0", "flexibleVersions": "none", "fields": [\n'
    text += '// a comment\n/* and a\nlonger one */\n{"name": "Amount", "type": "int7", "versions": "0"}]}'
    with pytest.raises(SchemaError, match=r"\(line 5\)"):
        schema.parse(text)


def test_all_errors_of_a_definition_are_reported_together() -> None:
    text = message(field("int7"), field(name="9th"), tagged(1), flexibleVersions="1-3", listeners=["broker"])
    assert {error.rule for error in schema.check(text)[1]} == {"E-08", "E-10", "E-27", "E-29", "E-30", "E-44"}


@pytest.mark.requirement("T-01", "T-02", "E-28")
def test_definitions_of_old_kafka_releases_need_a_dialect() -> None:
    text = message(field("[]int32", fields=INNER), flexibleVersions=None)
    text = text.replace('"Order"', '"Old", "name": "Order"') + "]}"
    spec = schema.parse(text, dialect="kafka")
    assert (spec.name, str(spec.flexible), spec.struct.fields[0].type_text) == ("Order", "none", "[]int32")


@pytest.mark.requirement("T-08", "S482-57", "S482-58", "S482-60", "E-19")
def test_in_the_kip_dialect_a_bare_tag_means_all_flexible_versions() -> None:
    text = message(field(versions=None, tag=0), flexibleVersions="2+")
    assert {error.rule for error in schema.check(text)[1]} == {"E-09", "E-19"}
    amount = schema.parse(text, dialect="kip").struct.fields[0]
    assert (str(amount.versions), str(amount.tagged)) == ("2+", "2+")


@pytest.mark.requirement("S482D-02", "S482D-05", "S482-33")
def test_forms_of_the_draft_are_rejected() -> None:
    assert {error.rule for error in schema.check(message(flexibleVersions=None))[1]} == {"E-28"}
    draft = message(optionalFields=[{"name": "Amount", "type": "int32", "tag": 0}])
    assert {error.rule for error in schema.check(draft)[1]} == {"E-02"}


@pytest.mark.requirement("E-42")
def test_fields_without_versions_are_accepted_unless_they_define_a_struct() -> None:
    """As by Kafka's generator, which cannot write the class of such a struct."""
    for each in (field(versions="none"), field("[]int32", versions="none"), field("Item", "Item", versions="none")):
        schema.parse(message(each, commonStructs=[common("Item", *INNER)]))
