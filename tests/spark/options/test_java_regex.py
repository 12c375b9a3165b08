"""Java patterns in Python's syntax."""

from __future__ import annotations

import re

import pytest

from kwire.errors import OptionError
from kwire.spark.options.java_regex import translate_java_regex
from kwire.spark.options.query import parse_pattern

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
        parse_pattern("subscribePattern", pattern)
