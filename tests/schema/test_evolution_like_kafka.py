"""Results of Kafka's own checker (docs/spec/messages.md, 5.1 and 8.4), and the differences of ours.

Its results for the cases below, and for random pairs, were recorded from its published jar (kafka_checker).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.schema import kafka_checker
from tests.schema.writing import common, field, message, request, tagged

from kwire import schema
from kwire.schema.evolution.kafka_checker import kafka_violations

A, B, C = field(name="A"), field(name="B"), field("string", "C")
NEXT = {"validVersions": "0-4"}


def kafka(old: str, new: str) -> list[str]:
    """Return the rules by which Kafka's checker rejects a change."""
    (before, _), (after, _) = (schema.check(text, dialect="kafka") for text in (old, new))
    assert before is not None
    assert after is not None
    return [violation.rule for violation in kafka_violations(before, after, as_written=True)]


def ours(old: str, new: str) -> list[str]:
    return [violation.rule for violation in schema.compare(schema.parse(old), schema.parse(new))]


def inline(*fields: dict[str, Any], type_: str = "[]Item") -> dict[str, Any]:
    return field(type_, "Items", fields=list(fields))


null = "nullableVersions"
LAXER = {
    "two alike fields swapped": (message(A, B), message(B, A), "V-48"),
    "tags of two fields swapped": (
        message(A, tagged(0), tagged(1)),
        message(A, tagged(1, name="Tagged0"), tagged(0, name="Tagged1")),
        "V-43",
    ),
    "flexible 1+ becomes 0+": (message(A), message(A, flexibleVersions="0+"), "V-42"),
    "lowest version raised": (message(A), message(A, validVersions="1-3"), "V-53"),
    "0+ becomes tagged from 1+": (message(A), message(A | {"tag": 0, "taggedVersions": "1+"}), "V-47"),
    "nullable 0+ becomes 0-1": (message(C | {null: "0+"}), message(C | {null: "0-1"}), "V-14"),
    "nullable 0+ becomes none": (message(C | {null: "0+"}), message(C), "V-14"),
}
STRICTER = {
    "default 0 becomes absent": (message(A | {"default": "0"}), message(A), "V-17"),
    "default 0x10 becomes 16": (message(A | {"default": "0x10"}), message(A | {"default": "16"}), "V-17"),
    "nullable from a new version on": (message(C), message(C | {null: "4+"}, **NEXT), "V-14"),
    "a tagged field joins": (message(A), message(A, tagged(0)), "V-27"),
    "a tagged field joins in front": (message(A, B), message(tagged(0, type="string"), A, B), "V-27"),
    "a struct renamed": (message(inline(A)), message(inline(A, type_="[]Line")), "V-11"),
    "flexible versions that begin later, with the messages": (
        message(A, flexibleVersions="4+"),
        message(A, flexibleVersions="5+", validVersions="0-5"),
        "V-03",
    ),
    "bytes become records": (message(field("bytes")), message(field("records")), "V-11"),
    "[]int32 becomes []S that holds one": (
        message(field("[]int32", "Items"), flexibleVersions="none"),
        message(inline(A), flexibleVersions="none"),
        "V-11",
    ),
}
SAME = {
    "api key": (message(A, apiKey=1), message(A, apiKey=2), "V-01"),
    "api key gone": (message(A, apiKey=1), message(A), "V-01"),
    "kind": (message(A), message(A, type="metadata"), "V-02"),
    "flexible narrowed": (message(A), message(A, flexibleVersions="2+"), "V-03"),
    "highest version dropped": (message(A), message(A, validVersions="0-2"), "V-04"),
    "lowest version back": (message(A, validVersions="1-3"), message(A), "V-05"),
    "field outside the valid versions": (message(A), message(A, field(name="B", versions="7+")), "V-06"),
    "message renamed": (message(A), message(A, name="Purchase"), "V-10"),
    "highest version of a field drops": (message(A), message(A | {"versions": "0-2"}), "V-12"),
    "lowest version of a field rises": (message(A), message(A | {"versions": "1+"}), "V-13"),
    "nullable 1+ becomes none": (message(C | {null: "1+"}), message(C), ("V-15", "V-14")),
    "none becomes nullable 0+": (message(C), message(C | {null: "0+"}), ("V-14", "V-15")),
    "own flexible versions shrink": (message(C), message(C | {"flexibleVersions": "2+"}), "V-16"),
    "new field in old versions": (message(A), message(A, B), "V-21"),
    "field gone from the middle": (message(A, C, B), message(A, B), "V-23"),
    "unlike fields swapped": (message(A, C), message(C, A), ("V-24", "V-48")),
    "[]int32 becomes []S in flexible versions": (
        message(field("[]int32", "Items")),
        message(inline(A)),
        ("V-11", "V-51"),
    ),
    "default": (message(A), message(A | {"default": "1"}), ("V-17", "V-50")),
}
BOTH_PASS = {
    "new version": (message(A, C), message(A, C, **NEXT)),
    "new field in a new version": (message(A), message(field(name="New", versions="4+"), A, **NEXT)),
    "field capped with a new version": (message(A, B), message(A, B | {"versions": "0-3"}, **NEXT)),
    "field renamed": (message(A, B), message(A, field(name="New"))),
    "ignorable": (message(A), message(A | {"ignorable": True})),
    "listeners and deprecation": (request(A), request(A, listeners="broker", deprecatedVersions="0")),
}

CASES = [(old, new) for old, new, *_ in [*LAXER.values(), *STRICTER.values(), *SAME.values(), *BOTH_PASS.values()]]

# What is in the complaint of Kafka's checker, which takes fields for each other by their places, and the rules that say
# it better.
PAIRED = {"V-21", "V-23", "V-24", "V-27"}
COMPLAINTS = {
    "Initial apiKey": {"V-01"},
    "Initial type": {"V-02"},
    "Initial flexibleVersions": {"V-03"},
    "Initial maximum valid version": {"V-04"},
    "Initial minimum valid version": {"V-05"},
    "but the message versions are only": {"V-06"},
    "Field type for": {"V-10", "V-11", *PAIRED},
    "Maximum effective valid version": {"V-12", *PAIRED},
    "Minimum effective valid version": {"V-13", *PAIRED},
    "Maximum effective nullable version": {"V-14", *PAIRED},
    "Minimum effective nullable version": {"V-15", *PAIRED},
    "Flexible versions for": {"V-16", *PAIRED},
    "Default for": {"V-17", *PAIRED},
    "should be present in message1": {"V-21", "V-27"},
    "Unable to locate a specification": {"V-28"},
    "was specified twice": {"T-19"},
}


@pytest.mark.requirement("V-01", "V-02", "V-03", "V-04", "V-05", "V-06", "V-10", "V-11", "V-12", "V-13", "V-14", "V-15")
@pytest.mark.requirement("V-16", "V-17", "V-20", "V-21", "V-22", "V-23", "V-24", "V-25", "V-26", "V-27", "T-19", "T-20")
@pytest.mark.parametrize("release", kafka_checker.RELEASES)
def test_like_kafka_equals_every_recorded_result_of_kafkas_checker(release: str) -> None:
    seen: Counter[str] = Counter()
    for pair in kafka_checker.recorded():
        response, found = pair.responses[release], set(kafka(pair.old, pair.new))
        if pair.responses["4.0.0"] == "never ends":  # the last field is gone; later releases let that pass
            assert found == {"V-23"}
            continue
        if release != "4.0.0":
            found.discard("T-19")  # as with --allow T-19
        rules = [each for text, each in COMPLAINTS.items() if text in response]
        assert len(rules) == (response != "passes"), response
        assert bool(found) == bool(rules), (response, found, pair.old, pair.new)
        assert not rules or rules[0] & found, (response, found, pair.old, pair.new)
        seen[response.partition(":")[0]] += 1
    cases = {(kafka_checker.compact(old), kafka_checker.compact(new)) for old, new in CASES}
    assert cases <= {(pair.old, pair.new) for pair in kafka_checker.recorded()}
    assert min(seen["passes"], seen["refused"]) > 100


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.parametrize("release", kafka_checker.RELEASES)
def test_kafkas_checker_gives_the_recorded_results(release: str) -> None:
    pairs = kafka_checker.recorded()
    responses = kafka_checker.responses([(pair.old, pair.new) for pair in pairs], release)
    assert responses == [pair.responses[release] for pair in pairs]


@pytest.mark.requirement("V-24", "V-26", "V-53", "V-42", "V-14", "T-19")
@pytest.mark.parametrize(("old", "new", "rule"), LAXER.values(), ids=LAXER)
def test_kafka_accepts_changes_that_break_released_versions(old: str, new: str, rule: str) -> None:
    assert kafka(old, new) == []
    assert rule in ours(old, new)


@pytest.mark.requirement("V-26", "V-44")
def test_kafka_ignores_a_changed_tag() -> None:
    old = message(A, tagged(0))
    new = message(A, field("string", "New", "4+", tag=0, taggedVersions="4+"), tagged(1, name="Tagged0"), **NEXT)
    assert kafka(old, new) == []
    assert ours(old, new) == ["V-44", "V-43"]


@pytest.mark.requirement("V-11", "V-15", "V-17", "V-27", "V-40", "V-51", "T-19")
@pytest.mark.parametrize(("old", "new", "rule"), STRICTER.values(), ids=STRICTER)
def test_kafka_rejects_allowed_changes(old: str, new: str, rule: str) -> None:
    assert [found for found in kafka(old, new) if found != "T-19"] == [rule]
    assert ours(old, new) == []


@pytest.mark.requirement("V-01", "V-02", "V-03", "V-04", "V-05", "V-06", "V-10", "V-11", "V-12", "V-13", "V-14", "V-15")
@pytest.mark.requirement("V-16", "V-17", "V-21", "V-23", "V-24")
@pytest.mark.parametrize(("old", "new", "rule"), SAME.values(), ids=SAME)
def test_kafka_and_kwire_reject_the_same_changes(old: str, new: str, rule: str | tuple[str, str]) -> None:
    kafkas, own = (rule, rule) if isinstance(rule, str) else rule
    assert kafkas in kafka(old, new)
    assert own in ours(old, new)


@pytest.mark.requirement("V-20", "V-22", "V-25", "V-26", "V-52", "V-54")
@pytest.mark.parametrize(("old", "new"), BOTH_PASS.values(), ids=BOTH_PASS)
def test_kafka_and_kwire_accept_the_same_changes(old: str, new: str) -> None:
    assert kafka(old, new) == ours(old, new) == []


@pytest.mark.requirement("V-07")
def test_a_tag_outside_the_flexible_versions_fails_kafka() -> None:
    outside = message(A, tagged(0, versions="0+", taggedVersions="0+"))
    assert kafka(outside, outside) == ["V-07", "V-07"]


@pytest.mark.requirement("V-23", "T-20")
def test_a_removed_last_field_is_rejected_where_kafka_loops_forever() -> None:
    old, new = message(A, B), message(A)
    assert kafka(old, new) == ["V-23"]
    assert kafka(old, message(A, field(name="New", versions="4+"), **NEXT)) == ["V-23"]
    assert ours(old, new) == ["V-23"]


@pytest.mark.requirement("T-19", "V-28")
def test_kafka_rejects_two_definitions_with_the_same_struct() -> None:
    """Both share one registry; later releases have two."""
    same = message(inline(A))
    assert kafka(same, same) == ["T-19"]
    shared = message(field("[]Item", "Items"), commonStructs=[common("Item", A)])
    assert kafka(same, shared) == ["T-19"]
    assert ours(same, same) == ours(same, shared) == ours(shared, same) == []


@pytest.mark.requirement("V-28")
def test_kafka_looks_up_a_common_struct_by_the_name_of_a_single_field() -> None:
    shared = message(field("Item", "Bought"), commonStructs=[common("Item", A)])
    assert kafka(shared, shared) == ["T-19", "V-28"]
    assert ours(shared, shared) == []


@pytest.mark.requirement("V-28")
def test_kafka_rejects_a_message_without_fields() -> None:
    """It treats a message without fields as a common struct, although metadata records without fields exist."""
    assert kafka(message(), message()) == ["V-28"]
    assert ours(message(), message()) == []


@pytest.mark.requirement("T-22", "V-06")
def test_kafka_rejects_its_request_header_compared_with_itself() -> None:
    client_id = field("string", "ClientId", "1+", nullableVersions="1+", ignorable=True, flexibleVersions="none")
    key = field("int16", "RequestApiKey")
    header = message(key, client_id, type="header", name="RequestHeader", validVersions="1-2", flexibleVersions="2+")
    assert kafka(header, header) == ["V-06", "V-06"]
    assert ours(header, header) == []


@pytest.mark.requirement("V-03", "V-16")
def test_narrowed_flexible_versions_are_reported_once() -> None:
    assert kafka(message(A, C), message(A, C, flexibleVersions="3+")) == ["V-03"]


def test_checked_definitions_can_be_compared_like_kafka() -> None:
    old, new = schema.parse(message(A, C)), schema.parse(message(C, A))
    assert [violation.rule for violation in schema.compare(old, new, like_kafka=True)] == ["V-24"]
    assert schema.compare(old, old, like_kafka=True) == []


def test_each_struct_stops_at_its_first_difference() -> None:
    old, new = message(A, C, B), message(field("int64", "A"), field("bytes", "C"), B)
    assert kafka(old, new) == ["V-11"]
