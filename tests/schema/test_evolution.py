"""Every evolution rule by its id (docs/spec/messages.md, part 5): a rejected change and a similar allowed one.

The definitions here have the versions 0-3, flexible from 1 on, unless they say otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.schema.writing import common, coordinator_key, field, headers, message, request, tagged

from kwire import schema
from kwire.errors import SchemaError
from kwire.schema.evolution import Note, Violation, review
from kwire.schema.model import Message
from kwire.schema.versions import Versions

NEXT = {"validVersions": "0-4"}  # a definition with a new version


def compared(old: str, new: str, **options: Any) -> list[tuple[str, str]]:
    """Return (rule, field path below the message) of every violation."""
    found = schema.compare(schema.parse(old), schema.parse(new), **options)
    return [(violation.rule, violation.where.partition(".")[2]) for violation in found]


def noted(old: str, new: str, **options: Any) -> list[tuple[str, str]]:
    found = review(schema.parse(old), schema.parse(new), **options)
    assert all(isinstance(finding, Note) for finding in found), found
    return [(note.rule, note.where.partition(".")[2]) for note in found]


def struct(*fields: dict[str, Any], name: str = "Items", type_: str = "[]Item", **attributes: Any) -> dict[str, Any]:
    return field(type_, name, fields=list(fields), **attributes)


A, B, C = field(name="A"), field(name="B"), field("string", "C")


# The message


@pytest.mark.requirement("V-01")
def test_an_api_key_must_not_change() -> None:
    assert compared(request(A), request(A, apiKey=9001)) == [("V-01", "")]
    assert compared(message(A), message(A, apiKey=1)) == [("V-01", "")]
    assert compared(request(A), request(A)) == []


@pytest.mark.requirement("V-02")
def test_a_type_of_message_must_not_change() -> None:
    assert compared(message(A, apiKey=1), message(A, apiKey=1, type="metadata")) == [("V-02", "")]
    assert compared(message(A, apiKey=1, type="metadata"), message(A, apiKey=1, type="metadata", **NEXT)) == []


@pytest.mark.requirement("V-02")
def test_a_coordinator_key_with_a_new_type_is_one_finding() -> None:
    """As in Kafka 4.0: the former version of the key became its apiKey, so key and versions change as well."""
    old = message(A, validVersions="2", flexibleVersions="none")
    assert compared(old, coordinator_key(fields=[A], validVersions="0", apiKey=2)) == [("V-02", "")]


@pytest.mark.requirement("V-03", "S482-96")
def test_a_flexible_version_must_stay_flexible() -> None:
    assert compared(message(A), message(A, flexibleVersions="2+")) == [("V-03", "")]
    assert compared(message(A), message(A, flexibleVersions="none")) == [("V-03", "")]
    assert compared(message(A), message(A, **NEXT)) == []


@pytest.mark.requirement("V-42", "S482-34", "S482-50", "S482-96")
def test_only_a_new_version_can_become_flexible() -> None:
    assert compared(message(A), message(A, flexibleVersions="0+")) == [("V-42", "")]
    old = message(A, flexibleVersions="none")
    assert compared(old, message(A, flexibleVersions="3+")) == [("V-42", "")]
    assert compared(old, message(A, flexibleVersions="4+", **NEXT)) == []


@pytest.mark.requirement("V-04")
def test_the_highest_version_must_not_be_lowered() -> None:
    assert compared(message(A), message(A, validVersions="0-2")) == [("V-04", "")]
    assert compared(request(A), request(validVersions="none", fields=[])) == [("V-04", "")]
    assert compared(message(A), message(A, **NEXT)) == []


@pytest.mark.requirement("V-05")
def test_dropped_versions_must_not_return() -> None:
    assert compared(message(A, validVersions="1-3"), message(A)) == [("V-05", "")]
    assert compared(message(A, validVersions="1-3"), message(A, validVersions="1-4")) == []


@pytest.mark.requirement("V-53", "SDEF-20", "SDEF-21")
def test_released_versions_must_not_be_dropped() -> None:
    assert compared(message(A), message(A, validVersions="2-3")) == [("V-53", "")]
    assert compared(message(A), message(A, validVersions="5-6")) == [("V-53", "")]
    assert compared(message(A), message(A)) == []


@pytest.mark.requirement("V-10")
def test_a_message_must_keep_its_name() -> None:
    assert compared(message(A), message(A, name="Purchase")) == [("V-10", "")]
    assert compared(message(A, name="Purchase"), message(A, name="Purchase", **NEXT)) == []


@pytest.mark.requirement("V-54", "SDEF-13")
def test_a_new_version_may_equal_the_previous_one() -> None:
    assert compared(message(A, B, C), message(A, B, C, **NEXT)) == []
    assert compared(message(A, B, C, **NEXT), message(A, B, C)) == [("V-04", "")]


@pytest.mark.requirement("V-47", "SDEF-119", "SDEF-120")
def test_a_released_version_must_keep_its_header_version() -> None:
    old = headers({"0": "1", "1+": "2"})
    assert compared(old, headers({"0-1": "1", "2+": "2"})) == [("V-47", "")]
    assert compared(old, headers({"0": "1", "1-3": "2", "4+": "3"}, **NEXT)) == []


@pytest.mark.requirement("V-01")
def test_a_header_version_changed_by_the_key_is_not_a_separate_finding() -> None:
    """Responses with key 18, ApiVersions, have header version 0 always."""
    response = {"type": "response", "name": "OrderResponse"}
    assert compared(message(A, **response, apiKey=17), message(A, **response, apiKey=18)) == [("V-01", "")]


@pytest.mark.requirement("V-04", "V-05", "V-53")
def test_a_message_without_released_versions_may_change_freely() -> None:
    gone = request(validVersions="none", fields=[])
    assert compared(gone, request(A, validVersions="1-3")) == []
    draft = request(A, validVersions="0", latestVersionUnstable=True)
    assert compared(draft, request(A, validVersions="1")) == []


# Ranges without effect


@pytest.mark.requirement("V-06")
@pytest.mark.parametrize(
    "dead",
    [
        field(name="B", versions="5+"),
        field("string", "B", nullableVersions="5+"),
        field(name="B", versions="1+", tag=0, taggedVersions="5+"),
        field("string", "B", versions="4+", flexibleVersions="5+"),
    ],
    ids=lambda dead: ", ".join(dead),
)
def test_ranges_of_a_field_must_intersect_the_valid_versions(dead: dict[str, Any]) -> None:
    content = {"flexibleVersions": "1+", **NEXT}
    assert ("V-06", "B") in compared(message(A, **content), message(A, dead, **content))
    alive = {key: value.replace("5+", "4+") if isinstance(value, str) else value for key, value in dead.items()}
    assert "V-06" not in [rule for rule, _ in compared(message(A, **content), message(A, alive, **content))]


@pytest.mark.requirement("V-06")
def test_dead_ranges_are_found_in_all_structs_and_can_be_fixed() -> None:
    dead = field(name="Dead", versions="9+")
    twice = message(struct(A, dead), struct(A, dead, name="More", type_="[]Other"))
    assert compared(message(struct(A), struct(A, name="More", type_="[]Other")), twice) == [
        ("V-06", "Items.Dead"),
        ("V-06", "More.Dead"),
    ]
    inline = message(struct(A, dead))
    assert compared(message(struct(A)), inline) == [("V-06", "Items.Dead")]
    shared = message(field("[]Item", "Items"), commonStructs=[common("Item", A, dead)])
    assert compared(message(field("[]Item", "Items"), commonStructs=[common("Item", A)]), shared) == [
        ("V-06", "Items.Dead")
    ]
    assert compared(inline, message(struct(A))) == []  # who takes it out is not held up
    assert compared(inline, inline) == []


@pytest.mark.requirement("V-06", "T-22")
def test_a_field_that_is_never_flexible_is_not_a_dead_range() -> None:
    """Kafka's request header: its client id keeps the old form in all versions."""
    client_id = field("string", "ClientId", versions="1+", nullableVersions="1+", flexibleVersions="none")
    header = message(A, client_id, type="header", name="RequestHeader", validVersions="1-2", flexibleVersions="2+")
    assert compared(header, header) == []


@pytest.mark.requirement("V-07")
def test_tags_outside_the_flexible_versions_are_rejected_on_load_or_comparison() -> None:
    outside = message(A, tagged(0, versions="0+", taggedVersions="0+"))
    with pytest.raises(SchemaError, match="E-44"):
        schema.parse(outside)
    built = _retagged(schema.parse(message(A, tagged(0))), Versions(0, 32767))
    rules = {violation.rule for violation in schema.compare(schema.parse(message(A)), built)}
    assert rules == {"V-07", "V-41"}
    assert compared(message(A), message(A, tagged(0))) == []


def _retagged(made: Message, versions: Versions) -> Message:
    """Return a definition made by code, which no loader has checked."""
    fields = tuple(f if f.tag is None else replace(f, versions=versions, tagged=versions) for f in made.struct.fields)
    return replace(made, struct=replace(made.struct, fields=fields))


# Fields that come and go


@pytest.mark.requirement("V-20", "V-49", "SDEF-33", "SDEF-122")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_new_version_may_add_a_field_anywhere(place: int) -> None:
    fields = [A, B]
    fields.insert(place, field(name="New", versions="4+"))
    assert compared(message(A, B), message(*fields, **NEXT)) == []
    fields[place] = field(name="New", versions="3+")
    assert compared(message(A, B), message(*fields, **NEXT)) == [("V-21", "New")]


@pytest.mark.requirement("V-21")
def test_a_new_field_must_not_join_a_released_version() -> None:
    assert compared(message(A), message(A, B)) == [("V-21", "B")]
    assert compared(message(struct(A)), message(struct(A, B))) == [("V-21", "Items.B")]
    assert compared(message(struct(A)), message(struct(A, B | {"versions": "4+"}), **NEXT)) == []


@pytest.mark.requirement("V-22")
def test_a_field_may_be_removed_with_its_last_version() -> None:
    old = message(A, field(name="B", versions="0-1"))
    assert compared(old, message(A, validVersions="2-3")) == [("V-53", "")]
    assert compared(old, message(A, validVersions="1-3")) == [("V-53", ""), ("V-23", "B")]


@pytest.mark.requirement("V-23", "T-20")
@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_field_must_not_be_removed_while_a_version_has_it(gone: int) -> None:
    fields = [A, B, C]
    name = fields.pop(gone)["name"]
    assert compared(message(A, B, C), message(*fields)) == [("V-23", name)]
    assert compared(message(A, B, C), message(*fields, **NEXT)) == [("V-23", name)]


@pytest.mark.requirement("V-52", "SDEF-33", "SDEF-36")
def test_a_new_version_may_omit_a_field() -> None:
    capped = field(name="B", versions="0-3")
    assert compared(message(A, B), message(A, capped, **NEXT)) == []
    assert compared(message(A, B), message(A, field(name="B", versions="0-2"), **NEXT)) == [("V-12", "B")]


@pytest.mark.requirement("V-12")
def test_a_field_must_stay_in_its_released_versions() -> None:
    assert compared(message(field(versions="0-2")), message(field(versions="0-1"))) == [("V-12", "Amount")]
    assert compared(message(field(versions="0+")), message(field(versions="0-3"))) == []  # the same versions


@pytest.mark.requirement("V-13")
def test_the_lowest_version_of_a_field_must_not_change() -> None:
    old = message(A, field(name="B", versions="1+"))
    assert compared(old, message(A, B)) == [("V-13", "B")]
    assert compared(old, message(A, field(name="B", versions="2+"))) == [("V-13", "B")]
    dropped = {"validVersions": "1-3"}
    assert compared(message(A, B, **dropped), message(A, field(name="B", versions="1+"), **dropped)) == []


@pytest.mark.requirement("V-47", "SDEF-119")
def test_a_field_must_not_be_added_to_more_released_versions() -> None:
    old = message(A, field(name="B", versions="0-1"))
    assert compared(old, message(A, field(name="B", versions="0-2"))) == [("V-47", "B")]
    assert compared(message(A, B), message(A, B, **NEXT)) == []  # 0+ takes a new version in


# Order and names


@pytest.mark.requirement("V-48", "V-24", "SDEF-32", "SDEF-121")
def test_fields_must_keep_their_order_even_if_alike() -> None:
    assert compared(message(A, C), message(C, A)) == [("V-48", "A")]
    assert compared(message(A, B), message(B, A)) == [("V-48", "A")]  # Kafka sees two int32 and lets it pass
    assert compared(message(A, B, C), message(A, field(name="D", versions="4+"), B, C, **NEXT)) == []


@pytest.mark.requirement("V-48")
def test_the_smallest_set_of_moved_fields_is_reported() -> None:
    fields = [field(name=name) for name in "ABCDEFG"]
    moved = [fields[5], *fields[:5], fields[6]]
    assert compared(message(*fields), message(*moved)) == [("V-48", "F")]


@pytest.mark.requirement("V-48")
def test_fields_without_a_common_version_have_no_order() -> None:
    early, late = field(name="Early", versions="0-1"), field(name="Late", versions="2+")
    assert compared(message(early, late), message(late, early)) == []
    assert compared(message(A, tagged(0)), message(tagged(0), A)) == []


@pytest.mark.requirement("V-25")
def test_a_field_renamed_in_place_is_noted_and_allowed() -> None:
    assert noted(message(A, B, C), message(A, field(name="Renamed"), C)) == [("V-25", "Renamed")]
    assert noted(message(A, tagged(0)), message(A, tagged(0, name="Renamed"))) == [("V-25", "Renamed")]
    assert noted(message(struct(A)), message(struct(B))) == [("V-25", "Items.B")]


@pytest.mark.requirement("V-25", "V-23", "V-21")
@pytest.mark.parametrize(
    "other",
    [
        field("int64", "New"),
        field(name="New", versions="1+"),
        field("string", "New"),
        field("[]int32", "New"),
    ],
    ids=lambda other: f"{other['type']} {other['versions']}",
)
def test_a_removed_and_a_different_new_field_are_not_a_rename(other: dict[str, Any]) -> None:
    assert compared(message(A, B, C), message(A, other, C)) == [("V-23", "B"), ("V-21", "New")]


@pytest.mark.requirement("V-25", "V-23")
def test_a_renamed_field_keeps_its_position() -> None:
    assert compared(message(A, B, C), message(A, C, field(name="New"))) == [("V-23", "B"), ("V-21", "New")]


@pytest.mark.requirement("V-25", "V-50")
def test_a_renamed_field_keeps_its_default() -> None:
    assert compared(message(A, B), message(A, field(name="New", default="1"))) == [("V-50", "New")]


@pytest.mark.requirement("V-25", "V-51")
def test_bytes_and_records_have_the_same_wire_form() -> None:
    """As in Kafka 2.7, where a fetched partition's Records became RecordSet."""
    assert noted(message(field("bytes", "Records")), message(field("records", "RecordSet"))) == [
        ("V-25", "RecordSet"),
        ("V-51", "RecordSet"),
    ]
    assert noted(message(field("records")), message(field("bytes"))) == [("V-51", "Amount")]
    nullable = field("records", nullableVersions="0+")
    assert compared(message(field("bytes")), message(nullable)) == [("V-15", "Amount")]


@pytest.mark.requirement("V-50", "V-51")
def test_bytes_and_records_have_other_defaults() -> None:
    """Bytes are empty by default and records are null, which readers of versions without the field fill in."""
    always = review(schema.parse(message(field("bytes"))), schema.parse(message(field("records"))))
    assert [(finding.rule, finding.kind, finding.message) for finding in always] == [
        (
            "V-51",
            "note",
            "type bytes becomes records; the bytes of released versions are the same, the default empty becomes null",
        )
    ]
    later = {"versions": "1+"}
    for old, new in (("bytes", "records"), ("records", "bytes")):
        assert compared(message(field(old, **later)), message(field(new, **later))) == [("V-50", "Amount")]
    nullable = {**later, "nullableVersions": "1+"}
    null = field("bytes", **nullable, default="null")
    assert compared(message(null), message(field("records", **nullable))) == []
    assert compared(message(field("bytes", **nullable)), message(field("records", **nullable))) == [("V-50", "Amount")]


RIGID = {"flexibleVersions": "none"}


@pytest.mark.requirement("V-21", "V-23", "V-28")
def test_a_struct_equals_its_fields_without_a_tag_section() -> None:
    """As in Kafka 2.7, where PartitionHeader came and went in fetched partitions."""
    apart, around = message(A, B, C, **RIGID), message(struct(A, B, type_="Item", name="Head"), C, **RIGID)
    assert noted(apart, around) == [("V-23", "A"), ("V-23", "B"), ("V-21", "Head")]
    assert noted(around, apart) == [("V-23", "Head"), ("V-21", "A"), ("V-21", "B")]
    flexible = [definition.replace('"none"', '"1+"') for definition in (apart, around)]
    assert compared(*flexible) == [("V-23", "A"), ("V-23", "B"), ("V-21", "Head")]
    unlike = message(struct(B, A, type_="Item", name="Head"), C, **RIGID)
    assert compared(apart, unlike) == [("V-23", "A"), ("V-23", "B"), ("V-21", "Head")]
    nullable = message(struct(A, B, type_="Item", name="Head", nullableVersions="0+"), C, **RIGID)
    assert compared(apart, nullable) == [("V-23", "A"), ("V-23", "B"), ("V-21", "Head")]


@pytest.mark.requirement("V-21", "V-25", "V-50")
def test_fields_keep_name_and_default_inside_a_struct() -> None:
    apart = message(A, B, **RIGID)
    inside = message(struct(A, field(name="New", default="1"), type_="Item", name="Head"), **RIGID)
    found = review(schema.parse(apart), schema.parse(inside))
    assert {(finding.rule, finding.where, finding.kind) for finding in found} == {
        ("V-23", "Order.A", "note"),
        ("V-23", "Order.B", "note"),
        ("V-21", "Order.Head", "note"),
        ("V-25", "Order.New", "note"),
        ("V-50", "Order.New", "violation"),
    }


@pytest.mark.requirement("V-25")
def test_a_field_can_be_renamed_across_fields_of_other_versions() -> None:
    """As UpdateMetadataRequest's PartitionStatesV0 in Kafka 2.4."""
    old_only = field(name="PartitionStatesV0", versions="0-1")
    later = field("string", "TopicStates", versions="2+")
    renamed = old_only | {"name": "Legacy"}
    assert noted(message(A, later, old_only, C), message(A, renamed, later, C)) == [("V-25", "Legacy")]


@pytest.mark.requirement("V-25", "V-51")
def test_a_name_may_be_reused_by_a_field_of_new_versions() -> None:
    """As AcceptableRecoveryLag of StreamsGroupHeartbeatResponse in Kafka 4.4."""
    lag, count = field(name="Lag"), field(name="Count")
    new = message(field(name="LagLegacy", versions="0-3"), count, field("int64", "Lag", versions="4+"), **NEXT)
    assert noted(message(lag, count), new) == [("V-25", "LagLegacy")]
    swapped = message(count, lag)
    assert compared(message(lag, count), swapped) == [("V-48", "Lag")]


@pytest.mark.requirement("V-46", "V-51")
def test_a_name_may_be_reused_with_another_type_without_common_versions() -> None:
    """As IsMigratingZkBroker of Kafka 3.4's BrokerRegistrationRequest: tagged in version 0, a bool in version 1."""
    old, new = message(tagged(0, name="Flag"), validVersions="0-1"), field("bool", "Flag", versions="2+")
    assert noted(old, message(new, validVersions="0-2")) == [("V-46", "Flag"), ("V-51", "Flag")]


# What stays the same in all versions


@pytest.mark.requirement("V-50", "V-17", "SDEF-123")
@pytest.mark.parametrize(
    ("type_", "old", "new"),
    [
        ("int32", None, "1"),
        ("int32", "5000", None),
        ("bool", "true", "false"),
        ("string", None, "x"),
        ("float64", "1.5", "2.5"),
        ("float64", "0.0", "-0.0"),
        ("uuid", None, "AAAAAAAAAAAAAAAAAAAAAQ"),
    ],
)
def test_a_default_must_not_change(type_: str, old: str | None, new: str | None) -> None:
    assert compared(message(field(type_, default=old)), message(field(type_, default=new))) == [("V-50", "Amount")]
    assert compared(message(field(type_, default=old)), message(field(type_, default=old), **NEXT)) == []


@pytest.mark.requirement("V-50", "SDEF-123")
@pytest.mark.parametrize("type_", ["string", "bytes", "[]int32"])
def test_a_default_must_not_become_null(type_: str) -> None:
    nullable = field(type_, nullableVersions="0+")
    assert compared(message(nullable), message(nullable | {"default": "null"})) == [("V-50", "Amount")]
    assert compared(message(nullable), message(nullable, **NEXT)) == []


@pytest.mark.requirement("V-17", "V-50")
@pytest.mark.parametrize(
    ("type_", "old", "new"),
    [
        ("int32", "0", None),
        ("int32", "0x10", "16"),
        ("int8", "017", "15"),
        ("bool", "FALSE", None),
        ("float64", "1", "1e0"),
    ],
)
def test_a_default_in_another_notation_is_the_same(type_: str, old: str, new: str | None) -> None:
    """Kafka compares the texts and rejects this."""
    assert compared(message(field(type_, default=old)), message(field(type_, default=new))) == []


@pytest.mark.requirement("V-51", "V-11", "SDEF-125")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int32", "int64"),
        ("int64", "int32"),
        ("int32", "uint32"),
        ("int8", "bool"),
        ("string", "bytes"),
        ("int32", "[]int32"),
        ("[]string", "[]bytes"),
    ],
)
def test_a_type_must_not_change(old: str, new: str) -> None:
    assert compared(message(field(old)), message(field(new))) == [("V-51", "Amount")]
    assert compared(message(field(old)), message(field(new), **NEXT)) == [("V-51", "Amount")]
    added = field(new, "Other", versions="4+")
    assert compared(message(field(old)), message(field(old, versions="0-3"), added, **NEXT)) == []


@pytest.mark.requirement("V-51", "V-11")
def test_a_struct_must_not_become_an_array_or_a_primitive() -> None:
    single = struct(A, name="Item", type_="Item")
    assert compared(message(single), message(struct(A, name="Item"))) == [("V-51", "Item")]
    assert compared(message(single), message(field("int32", "Item"))) == [("V-51", "Item")]


@pytest.mark.requirement("V-11")
def test_a_struct_may_be_renamed() -> None:
    assert noted(message(struct(A)), message(struct(A, type_="[]Line"))) == [("V-11", "Items")]
    assert compared(message(struct(A)), message(struct(A, B, type_="[]Line"))) == [("V-21", "Items.B")]


@pytest.mark.requirement("V-51", "SDEF-126", "T-23")
def test_array_elements_may_become_structs_without_a_tag_section() -> None:
    rigid = {"flexibleVersions": "none"}
    old = message(field("[]int32", "Items"), **rigid)
    assert noted(old, message(struct(A), **rigid)) == [("V-51", "Items")]
    more = field("string", "More", versions="4+")
    assert compared(old, message(struct(A, more), **rigid, **NEXT)) == []
    later = {"flexibleVersions": "4+"}
    assert compared(message(field("[]int32", "Items"), **rigid), message(struct(A), **later, **NEXT)) == []
    for wrong in (
        [field("int64", "A")],
        [A, B],
        [field("[]int32", "A")],
        [],
        [field(name="A", versions="1+")],
        [struct(A, name="Inner", type_="[]Inner")],
    ):
        assert compared(old, message(struct(*wrong), **rigid)) == [("V-51", "Items")]
    assert noted(old, message(struct(struct(A, name="Inner", type_="Inner")), **rigid)) == [("V-51", "Items")]
    nullable = field("string", "A", nullableVersions="0+")
    assert compared(message(field("[]string", "Items"), **rigid), message(struct(nullable), **rigid)) == [
        ("V-51", "Items")
    ]


@pytest.mark.requirement("T-23", "V-51")
def test_array_elements_must_stay_primitive_if_structs_have_a_tag_section() -> None:
    assert compared(message(field("[]int32", "Items")), message(struct(A))) == [("V-51", "Items")]
    assert compared(message(field("[]int32", "Items", versions="0")), message(struct(A, versions="0"))) == []


@pytest.mark.requirement("V-51", "SDEF-126")
def test_structs_of_one_primitive_may_become_it_without_a_tag_section() -> None:
    rigid = {"flexibleVersions": "none"}
    new = message(field("[]int32", "Items"), **rigid)
    assert noted(message(struct(A), **rigid), new) == [("V-51", "Items")]
    assert compared(message(struct(A, B), **rigid), new) == [("V-51", "Items")]
    assert compared(message(struct(A)), message(field("[]int32", "Items"))) == [("V-51", "Items")]


# Null and the compact form


@pytest.mark.requirement("V-14", "T-19")
@pytest.mark.parametrize(("old", "new"), [("0+", "0-2"), ("0+", None), ("2+", None), ("1-2", "1")])
def test_a_released_version_must_stay_nullable(old: str, new: str | None) -> None:
    """Kafka compares the wrong pairs and accepts that a field nullable from version 0 loses nullability."""
    was, now = field("string", nullableVersions=old), field("string", nullableVersions=new)
    assert compared(message(was), message(now)) == [("V-14", "Amount")]
    assert compared(message(was), message(was, **NEXT)) == []


@pytest.mark.requirement("V-14", "SDEF-57")
def test_a_new_version_may_reject_null() -> None:
    was, now = field("string", nullableVersions="0+"), field("string", nullableVersions="0-3")
    assert compared(message(was), message(now, **NEXT)) == []


@pytest.mark.requirement("V-15", "T-19")
@pytest.mark.parametrize(("old", "new"), [(None, "0+"), (None, "3+"), ("2+", "1+"), ("1+", "2+")])
def test_the_lowest_nullable_version_must_not_change(old: str | None, new: str) -> None:
    was, now = field("string", nullableVersions=old), field("string", nullableVersions=new)
    assert compared(message(was), message(now)) == [("V-15", "Amount")]


@pytest.mark.requirement("V-15", "T-19", "SDEF-57")
def test_a_new_version_may_allow_null() -> None:
    """Kafka rejects this, since it treats a field that is never null as nullable up to version -1."""
    assert compared(message(field("string")), message(field("string", nullableVersions="4+"), **NEXT)) == []


@pytest.mark.requirement("V-47")
def test_more_released_versions_must_not_become_nullable() -> None:
    was, now = field("string", nullableVersions="0-1"), field("string", nullableVersions="0-2")
    assert compared(message(was), message(now)) == [("V-47", "Amount")]


@pytest.mark.requirement("V-16", "V-47")
def test_the_flexible_versions_of_a_field_must_not_change() -> None:
    plain, never = field("string"), field("string", flexibleVersions="none")
    assert compared(message(plain), message(never)) == [("V-16", "Amount")]
    assert compared(message(never), message(plain)) == [("V-47", "Amount")]
    assert compared(message(never), message(never, **NEXT)) == []


# Tagged fields


@pytest.mark.requirement("V-40", "V-27", "S482-13", "S482-48", "S482-98", "SDEF-62")
def test_a_tagged_field_may_join_flexible_versions() -> None:
    """Kafka's checker rejects this, against KIP-482."""
    assert noted(message(A), message(A, tagged(0))) == [("V-40", "Tagged0")]
    assert noted(message(struct(A)), message(struct(A, tagged(0)))) == [("V-40", "Items.Tagged0")]
    later = tagged(0, versions="3+", taggedVersions="3+")
    assert noted(message(A, later), message(A, tagged(0))) == [("V-40", "Tagged0")]


@pytest.mark.requirement("V-41", "S482-49")
def test_a_tagged_field_must_not_join_other_versions() -> None:
    old = message(A, flexibleVersions="2+")
    assert compared(old, message(A, tagged(0), flexibleVersions="1+")) == [("V-42", ""), ("V-41", "Tagged0")]
    late = tagged(0, versions="2+", taggedVersions="2+")
    assert compared(old, message(A, late, flexibleVersions="2+")) == []


@pytest.mark.requirement("V-43", "S482-51", "S482-99", "SDEF-67", "SDEF-68")
def test_a_tag_must_not_be_reused() -> None:
    other = tagged(0, name="Other", type="string")
    assert compared(message(A, tagged(0)), message(A, other)) == [("V-43", "Other")]
    swapped = [tagged(0, name="Tagged1"), tagged(1, name="Tagged0")]
    assert compared(message(A, tagged(0), tagged(1)), message(A, *swapped)) == [
        ("V-43", "Tagged0"),
        ("V-43", "Tagged1"),
    ]
    assert compared(message(A, tagged(0)), message(A, tagged(0), tagged(1))) == []


@pytest.mark.requirement("V-43", "S482-51", "SDEF-67")
def test_a_tag_must_not_be_reused_in_a_new_version() -> None:
    other = tagged(0, name="Other", type="string", versions="4+", taggedVersions="4+")
    assert compared(message(A, tagged(0)), message(A, other, **NEXT)) == [("V-43", "Other")]


@pytest.mark.requirement("V-43", "S482-51")
@pytest.mark.parametrize("inside", [False, True], ids=["in the message", "in a struct"])
def test_the_tag_of_a_removed_field_stays_reserved(inside: bool) -> None:
    def definition(*fields: dict[str, Any]) -> str:
        return message(struct(A, *fields)) if inside else message(A, *fields)

    with_tag, without = definition(tagged(0)), definition()
    other = definition(tagged(0, name="Other", type="string"))
    history = [schema.parse(with_tag)]
    path = "Items." if inside else ""
    assert noted(with_tag, without) == [("V-46", f"{path}Tagged0")]
    assert compared(without, other) == []  # who does not know the past cannot tell
    assert compared(without, other, history=history) == [("V-43", f"{path}Other")]
    assert compared(without, definition(tagged(0)), history=history) == []  # the same thing again


@pytest.mark.requirement("V-43", "S482-38")
def test_each_struct_has_its_own_tags() -> None:
    history = [schema.parse(message(A, tagged(0), struct(B)))]
    old, new = message(A, struct(B)), message(A, struct(B, tagged(0, type="string")))
    assert compared(old, new, history=history) == []


@pytest.mark.requirement("V-44", "S482-52", "S482-53", "S482-54", "S482-100")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"type": "int64"}),
        ({"type": "[]int32"}, {"type": "[]Item", "fields": [A]}),
        ({"type": "string"}, {"type": "string", "nullableVersions": "1+"}),
        ({"type": "string", "nullableVersions": "1+"}, {"type": "string"}),
        ({}, {"taggedVersions": "3+"}),
    ],
    ids=["type", "elements", "null gained", "null lost", "positional again"],
)
def test_the_format_of_a_tagged_field_must_not_change(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert compared(message(A, tagged(0, **old)), message(A, tagged(0, **new))) == [("V-44", "Tagged0")]
    assert compared(message(A, tagged(0, **old)), message(A, tagged(0, **old), **NEXT)) == []


@pytest.mark.requirement("V-44", "V-26", "S482-52")
def test_a_tagged_field_must_keep_its_tag() -> None:
    """Kafka does not compare tags."""
    old, new = message(A, tagged(0)), message(A, tagged(1, name="Tagged0"), tagged(0, name="New", type="string"))
    assert compared(old, new) == [("V-44", "Tagged0"), ("V-43", "New")]


@pytest.mark.requirement("V-45", "S482-55", "S482-56")
def test_a_field_may_become_tagged_in_a_new_version() -> None:
    tag = {"tag": 0, "taggedVersions": "4+"}
    assert compared(message(A, B), message(A, B | tag, **NEXT)) == []
    assert compared(message(A, B), message(A, B | tag | {"taggedVersions": "3+"}, **NEXT)) == [("V-47", "B")]


@pytest.mark.requirement("V-46", "SDEF-66")
def test_a_tagged_field_may_be_removed_from_versions() -> None:
    late = tagged(0, versions="2+", taggedVersions="2+")
    assert noted(message(A, tagged(0)), message(A, late)) == [("V-46", "Tagged0")]
    assert noted(message(A, tagged(0)), message(A)) == [("V-46", "Tagged0")]
    positional = field(name="Tagged0", versions="0+", tag=0, taggedVersions="1+")
    assert compared(message(A, positional), message(A)) == [("V-23", "Tagged0")]


# Encodings (KIP-625)


def encoded(type_: str, *encodings: tuple[str, str], tag: bool = False, **attributes: Any) -> Message:
    made = schema.parse(message(tagged(0, type=type_) if tag else field(type_), **attributes))
    ranges = tuple((Versions.parse(versions), name) for versions, name in encodings)
    item = replace(made.struct.fields[0], encodings=ranges)
    return replace(made, struct=replace(made.struct, fields=(item,)))


@pytest.mark.requirement("V-55", "S625-08", "S625-39", "I-22")
def test_an_encoding_may_change_only_in_a_new_version() -> None:
    old = encoded("int32")
    later = encoded("int32", ("0-3", "fixed32"), ("4+", "upacked32"), **NEXT)
    assert schema.compare(old, later) == []
    [violation] = schema.compare(old, encoded("int32", ("0-2", "fixed32"), ("3+", "packed32")))
    assert (violation.rule, violation.versions) == ("V-55", "3")
    assert "fixed32 becomes packed32" in violation.message
    [violation] = schema.compare(encoded("int32", ("0+", "packed32")), encoded("int32", ("0+", "upacked32")))
    assert (violation.rule, violation.versions) == ("V-55", "0-3")


@pytest.mark.requirement("V-55", "V-51", "I-21", "S625-16", "S625-34")
def test_an_integer_may_widen_if_released_versions_keep_their_bytes() -> None:
    old = encoded("int32")
    wide = encoded("int64", ("0-3", "fixed32"), ("4+", "fixed64"), **NEXT)
    assert [finding.rule for finding in review(old, wide)] == ["V-55"]
    assert schema.compare(old, wide) == []
    [violation] = schema.compare(old, encoded("int64", ("0-2", "fixed32"), ("3+", "fixed64"), **NEXT))
    assert (violation.rule, violation.versions) == ("V-51", "3")


@pytest.mark.requirement("V-44", "V-55")
def test_the_encoding_of_a_tagged_field_must_not_change() -> None:
    [violation] = schema.compare(encoded("int32", tag=True), encoded("int32", ("1+", "packed32"), tag=True))
    assert violation.rule == "V-44"


# What is free


@pytest.mark.requirement("V-26")
@pytest.mark.parametrize(
    "change",
    [{"ignorable": True}, {"entityType": "brokerId"}, {"about": "text"}],
    ids=lambda change: next(iter(change)),
)
def test_attributes_without_a_wire_form_may_change(change: dict[str, Any]) -> None:
    assert compared(message(A), message(A | change)) == []
    assert compared(message(A | change), message(A)) == []


@pytest.mark.requirement("V-26")
def test_other_attributes_without_a_wire_form_may_change() -> None:
    assert compared(message(struct(A)), message(struct(A | {"mapKey": True}))) == []
    assert compared(message(field("bytes")), message(field("bytes", zeroCopy=True))) == []
    assert compared(request(A), request(A, listeners=["broker"], deprecatedVersions="0-1")) == []
    assert noted(request(A), request(A, latestVersionUnstable=True)) == [("V-26", "")]


@pytest.mark.requirement("V-28")
def test_an_inline_struct_may_become_a_common_one_and_back() -> None:
    inline = message(struct(A, C))
    shared = message(field("[]Item", "Items"), commonStructs=[common("Item", A, C)])
    assert compared(inline, shared) == []
    assert compared(shared, inline) == []
    less = message(field("[]Item", "Items"), commonStructs=[common("Item", A)])
    assert compared(inline, less) == [("V-23", "Items.C")]


@pytest.mark.requirement("V-47", "SDEF-119")
def test_only_the_unstable_version_may_change_freely() -> None:
    unstable = {"latestVersionUnstable": True}
    old = request(A, field(name="B", versions="3+"), **unstable)
    for new in (
        request(A, field("string", "B", versions="3+", default="x")),
        request(A, **unstable),
        request(A, validVersions="0-2"),
        request(field(name="B", versions="3+"), A, **unstable),
        request(A, field(name="B", versions="3+"), field("bytes", "D", versions="3+")),
        request(field(name="A", versions="0-2")),
    ):
        assert compared(old, new) == []
    assert compared(old, request(A, field(name="B", versions="2+"))) == [("V-21", "B")]
    assert compared(old, request(**unstable)) == [("V-23", "A")]
    assert compared(old, request(A, validVersions="0-1")) == [("V-04", "")]


@pytest.mark.requirement("V-43", "V-47")
def test_a_tag_of_an_unstable_version_is_not_reserved() -> None:
    tag = tagged(0, versions="3+", taggedVersions="3+")
    old = request(A, tag, flexibleVersions="3+", latestVersionUnstable=True)
    assert compared(old, request(A, tag | {"name": "Other", "type": "string"}, flexibleVersions="3+")) == []


@pytest.mark.requirement("V-47")
def test_a_response_is_unstable_if_its_request_is() -> None:
    old = message(A, type="response", name="OrderResponse", apiKey=9000)
    new = message(A, field(name="B", versions="3+"), type="response", name="OrderResponse", apiKey=9000)
    assert compared(old, new) == [("V-21", "B")]
    assert compared(old, new, released=Versions(0, 2)) == []


# The whole


@pytest.mark.requirement("SDEF-118")
def test_all_violations_are_reported_together() -> None:
    old = request(A, B, struct(A, tagged(0)), tagged(0), latestVersionUnstable=False)
    new = request(
        field("int64", "A"),
        struct(field(name="A", default="1"), tagged(0, name="Other", type="string")),
        tagged(0, type="string"),
        apiKey=9001,
        validVersions="1-3",
    )
    assert sorted(compared(old, new)) == sorted(
        [
            ("V-01", ""),
            ("V-53", ""),
            ("V-23", "B"),
            ("V-51", "A"),
            ("V-44", "Tagged0"),
            ("V-43", "Items.Other"),
            ("V-50", "Items.A"),
        ]
    )


def test_a_violation_in_a_common_struct_is_reported_once() -> None:
    def definition(*fields: dict[str, Any]) -> str:
        uses = [field("[]Item", "First"), field("[]Item", "Second", versions="2+")]
        return message(*uses, commonStructs=[common("Item", *fields)])

    assert compared(definition(A, B), definition(A, B | {"default": "1"})) == [("V-50", "First.B")]


def test_a_violation_reports_cause_location_and_remedy() -> None:
    old, new = message(A, struct(B)), message(A, struct(B, field(name="New", versions="2+")))
    [violation] = schema.compare(schema.parse(old), schema.parse(new))
    assert violation == Violation(
        rule="V-21",
        where="Order.Items.New",
        message="added to versions 2-3",
        advice="add it in a new version, 4+, or make it a tagged field",
        versions="2-3",
    )
    assert str(violation) == f"Order.Items.New: {violation.message}; {violation.advice} [V-21]"


def test_a_common_struct_is_compared_once_for_all_its_uses() -> None:
    """Fifteen structs, each used twice by the next: 32,768 paths from the message to the last."""

    def definition(suffix: str, last: str = "int32") -> str:
        structs = [common(f"S0{suffix}", field(last, "Last"))]
        for i in range(1, 15):
            uses = [field(f"S{i - 1}{suffix}", f"X{suffix}"), field(f"S{i - 1}{suffix}", f"Y{suffix}")]
            structs.append(common(f"S{i}{suffix}", *uses))
        return message(field(f"S14{suffix}", f"Top{suffix}"), commonStructs=structs)

    assert compared(definition(""), definition("New")) == []
    assert [rule for rule, _ in compared(definition(""), definition("", "int64"))] == ["V-51"]


@pytest.mark.parametrize("versions", ["0-32766", "0"])
def test_the_cost_does_not_grow_with_the_number_of_versions(versions: str) -> None:
    fields = [field(name=f"F{i}") for i in range(200)]
    valid = {"validVersions": versions, "flexibleVersions": "none"}
    assert compared(message(*fields, **valid), message(*fields[:-1], **valid)) == [("V-23", "F199")]
