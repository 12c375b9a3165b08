"""Choosing topics: assign, subscribe, and Java patterns in Python's syntax."""

from __future__ import annotations

import re

import pytest

from kwire.errors import OptionError
from kwire.spark.options.topics import (
    Matching,
    parse_assign,
    parse_pattern,
    parse_subscribe,
    select,
    translate_java_regex,
)

THERE = [
    ("orders", 0),
    ("orders", 1),
    ("orders-eu", 0),
    ("ids.v2", 0),
    ("__consumer_offsets", 0),
    ("__cluster_metadata", 0),
    ("__mine", 0),
]


def names(selection: Matching) -> list[str]:
    return sorted({topic for topic, _ in select(selection, THERE)[0]})


def test_assign_selects_its_partitions_and_reports_missing_ones() -> None:
    chosen, missing = select(parse_assign('{"orders":[1,7],"ids.v2":[0],"gone":[0]}'), THERE)
    assert chosen == [("ids.v2", 0), ("orders", 1)]
    assert missing == ["gone-0", "orders-7"]


@pytest.mark.parametrize(
    "text",
    [
        "orders",
        "[1]",
        "{}",
        '{"orders":0}',
        '{"orders":["0"]}',
        '{"orders":[true]}',
        '{"orders":[-1]}',
        '{"orders":[2147483648]}',
        '{"orders":[0],"orders":[1]}',
        '{"orders":[0]',
        "{" * 100_000,
    ],
)
def test_assign_rejects_anything_but_a_map_of_partition_lists(text: str) -> None:
    with pytest.raises(OptionError, match="assign"):
        parse_assign(text)


def test_subscribe_accepts_a_comma_separated_list_with_spaces() -> None:
    chosen, missing = select(parse_subscribe(" orders, gone,,ids.v2 "), THERE)
    assert chosen == [("ids.v2", 0), ("orders", 0), ("orders", 1)]
    assert missing == ["gone"]
    with pytest.raises(OptionError, match="No topics to subscribe to"):
        parse_subscribe(" , ")


def test_an_internal_topic_is_read_if_named_but_not_matched_by_patterns() -> None:
    assert select(parse_subscribe("__consumer_offsets"), THERE)[0] == [("__consumer_offsets", 0)]
    assert names(Matching(None, False)) == ["__mine", "ids.v2", "orders", "orders-eu"]
    assert names(Matching(None, True)) == sorted({topic for topic, _ in THERE})
    assert names(parse_pattern("__.*", include_internal=False)) == ["__mine"]
    assert names(parse_pattern("__.*", include_internal=True)) == ["__cluster_metadata", "__consumer_offsets", "__mine"]


def test_a_pattern_matches_the_whole_name() -> None:
    assert names(parse_pattern("orders", include_internal=False)) == ["orders"]
    assert names(parse_pattern("ord", include_internal=False)) == []
    assert names(parse_pattern("orders.*|ids\\.v2", include_internal=False)) == ["ids.v2", "orders", "orders-eu"]


# Java pattern, names it matches as a whole, names it does not.
JAVA_PATTERNS = [
    (r"\Qids.v2\E", ["ids.v2"], ["idsxv2"]),
    (r"\Qa.b", ["a.b"], ["axb"]),
    (r"\Qa\E.", ["ab"], ["a"]),
    (r"(?<part>ab)-\k<part>", ["ab-ab"], ["ab-ba"]),
    (r"\p{Alpha}+-\p{Digit}", ["orders-1"], ["orders-x", "1-1"]),
    (r"[\p{Lower}_]+", ["a_b"], ["A"]),
    (r"\P{Upper}+", ["abc"], ["aBc"]),
    (r"\pL+", ["abc"], ["ab1"]),
    (r"(?i)ORDERS", ["orders"], ["order"]),
    (r"(?:a|b)++c", ["abc"], ["ab"]),
    (r"(?>a|ab)c", ["ac"], ["abc"]),
    (r"a\z|b\Z", ["a", "b"], ["ab"]),
    (r"\w+\.\w{2,3}", ["ids.v2"], ["ids.v"]),
    (r"^orders$", ["orders"], ["orders-eu"]),
    (r"(?!orders).*", ["ids"], ["orders-eu"]),
    (r"[^-]*", ["ids"], ["a-b"]),
]


@pytest.mark.parametrize(("pattern", "matching", "others"), JAVA_PATTERNS, ids=[case[0] for case in JAVA_PATTERNS])
def test_java_patterns_are_translated(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = re.compile(translate_java_regex(pattern), re.ASCII)
    assert [name for name in matching + others if compiled.fullmatch(name)] == matching


@pytest.mark.parametrize(
    "pattern",
    ["[a-z&&[^b]]", "[a[b]]", "[]a]", r"\G", r"\p{IsGreek}", r"[\P{Alpha}]", "(?U)a", "a(?i)b", "(a", "*a", "", " "],
)
def test_untranslatable_patterns_are_rejected_and_reported(pattern: str) -> None:
    with pytest.raises(OptionError, match=r"subscribePattern"):
        parse_pattern(pattern, include_internal=False)
