"""Subscription patterns: RE2's syntax, whole names, bounded time."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.broker.groups.topic_regex import TopicRegex
from kwire.errors import BrokerError
from kwire.protocol.error_codes import ErrorCode

NAMES = ["a", "aa", "b", "ab", "orders", "orders-1", "orders-22", "Orders", "x.y", "x_y", "xay", "-", "1", "a.b-c_d"]

# Patterns that Python's re takes for the same, as far as topic names go.
SAME = [
    "a", "a*", "a+", "a?b?", "(a|b)+", "orders", "orders-.*", "orders(-[0-9]+)?", r"orders-\d{1,2}", "[a-c]+",
    "[^a-c]+",
    "x.y", r"x\.y", "x[._]y", r"\w+", r"\W", r"[\w.-]+", "^orders$", "a{2}", "a{1,}", "a{0,1}", "(?:a|b){2}",
    "(?i)orders",
    "(?i:o)rders", "(?P<n>a)+", "a|", "", "()", "(a|b|)*", "[-a]+", "[a-]+", r"\bx\b.y", r"a\.b-c_d", "o.*?s", "[]a]",
    r"\x61", r"\141", "(?i)[o]RDERS.*", r"[^\d]*", "((a))", "aa", "(a*)*b", r"\Aa\b",
]  # fmt: skip


@pytest.mark.parametrize("pattern", SAME)
def test_common_patterns_match_as_in_re2(pattern: str) -> None:
    compiled = TopicRegex(pattern)
    assert {n for n in NAMES if compiled.matches(n)} == {n for n in NAMES if re.fullmatch(pattern, n)}


# Of RE2 alone, with the names that match.
ONLY_RE2 = [
    ("[[:alpha:]]+", {"a", "aa", "b", "ab", "orders", "Orders", "xay"}),
    ("[[:^alpha:]]+", {"-", "1"}),
    (r"\pL", {"a", "b"}),
    (r"\p{Lu}.*", {"Orders"}),
    (r"\P{L}", {"-", "1"}),
    (r"\p{Greek}", set()),
    (r"\Qx.y\E", {"x.y"}),
    (r"\x{61}", {"a"}),
    (r"a\z", {"a"}),
    ("(?<n>a)", {"a"}),
    ("(?U)a+", {"a", "aa"}),
    ("a(?i)B", {"ab"}),
    ("(?-i)a", {"a"}),
    ("{", set()),
    ("a{,2}", set()),
    ("[a\u00e9]", {"a"}),
]


@pytest.mark.parametrize(("pattern", "matching"), ONLY_RE2)
def test_re2_only_syntax_is_supported(pattern: str, matching: set[str]) -> None:
    compiled = TopicRegex(pattern)
    assert {name for name in NAMES if compiled.matches(name)} == matching


WRONG = [
    "(", ")", "[", "[a", "a)", "(a", "*", "+a", "a**", "a{2}{3}", "a{1001}", "a{3,2}", "[b-a]", "\\", r"\1", r"(a)\1",
    "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "(?P=n)", "(?P<>a)", "(?P<a b>x)", "(?x)a", "[[:foo:]]",
    r"\p{foo}", r"\xzz",
    r"\y", "[a-\\d]", "(?", "(?i", r"\p{", "[\\", "(" * 200 + ")" * 200, "a" * 5000,
    "((a{99}){99}){99}", "(?i--i)a", r"\x{110000}",
]  # fmt: skip


@pytest.mark.parametrize("pattern", WRONG)
def test_invalid_patterns_are_rejected(pattern: str) -> None:
    with pytest.raises(BrokerError) as refused:
        TopicRegex(pattern)
    assert refused.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION


HOSTILE = ["(a+)+$", "(a|a)*b", "(a*)*c", "(.*a){20}", "(a?){200}a{200}", "((a{1,60}){1,40})b", "(.*)(.*)(.*)(.*)(.*)x"]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_matching_time_is_bounded(pattern: str) -> None:
    with contextlib.suppress(BrokerError):
        compiled = TopicRegex(pattern)
        for number in range(200):
            compiled.matches("a" * (249 - number) + "b")


def test_a_plain_pattern_matches_many_topics_quickly() -> None:
    compiled = TopicRegex(r"^(orders|payments)-[a-z]+(-\d{1,4})?$")
    assert sum(compiled.matches(f"orders-eu-{number}") for number in range(20_000)) == 10_000


@given(st.text(st.sampled_from("ab.*+?|()[]^$\\{}1,-dwQE:i<>P"), max_size=14))
def test_any_text_is_a_pattern_or_an_error(pattern: str) -> None:
    try:
        compiled = TopicRegex(pattern)
    except BrokerError:
        return
    matching = {name for name in NAMES if compiled.matches(name)}
    try:
        theirs = re.compile(pattern)
    except (re.error, FutureWarning):
        return
    if not re.search(
        r"\\[QEpPCz]|\[\[|\[.*[\[\]&|~-]{2}|\(\?|[*+?}]\+|\{,|\$.|\\Z|\\u", pattern
    ):  # where the two differ
        assert matching == {name for name in NAMES if theirs.fullmatch(name)}
