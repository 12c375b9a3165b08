"""Selection of topics: assign, subscribe, subscribePattern."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kwire.errors import OptionError
from kwire.spark.options.query import (
    Matching,
    parse_assign,
    parse_pattern,
    parse_subscribe,
    select,
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


def pattern(text: str) -> Matching:
    return parse_pattern("subscribePattern", text)


def names(selection: Matching) -> list[str]:
    return sorted({topic for topic, _ in select(selection, THERE)[0]})


def test_assign_selects_its_partitions_and_reports_missing_ones() -> None:
    chosen, missing = select(parse_assign("assign", '{"orders":[1,7],"ids.v2":[0],"gone":[0]}'), THERE)
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
        parse_assign("assign", text)


def test_subscribe_accepts_a_comma_separated_list_with_spaces() -> None:
    chosen, missing = select(parse_subscribe("subscribe", " orders, gone,,ids.v2 "), THERE)
    assert chosen == [("ids.v2", 0), ("orders", 0), ("orders", 1)]
    assert missing == ["gone"]
    with pytest.raises(OptionError, match="No topics to subscribe to"):
        parse_subscribe("subscribe", " , ")


def test_an_internal_topic_is_read_if_named_but_not_matched_by_patterns() -> None:
    assert select(parse_subscribe("subscribe", "__consumer_offsets"), THERE)[0] == [("__consumer_offsets", 0)]
    assert names(Matching(None, False)) == ["__mine", "ids.v2", "orders", "orders-eu"]
    assert names(Matching(None, True)) == sorted({topic for topic, _ in THERE})
    assert names(pattern("__.*")) == ["__mine"]
    assert names(replace(pattern("__.*"), include_internal=True)) == [
        "__cluster_metadata",
        "__consumer_offsets",
        "__mine",
    ]


def test_a_pattern_matches_the_whole_name() -> None:
    assert names(pattern("orders")) == ["orders"]
    assert names(pattern("ord")) == []
    assert names(pattern("orders.*|ids\\.v2")) == ["ids.v2", "orders", "orders-eu"]
