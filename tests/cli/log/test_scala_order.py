"""The order of Scala's hash tables, compared with the output of Kafka 3.9.1 for crafted transactions."""

from __future__ import annotations

import random

import pytest

from kwire.cli.log.scala_order import partition_hash, table_order

LONG = "t" * 30
MANY = [
    *("__consumer_offsets-15", "a-0", "a-32", "été-ü-37", "été-ü-5", "txn-7", "été-ü-0", "txn-36", "orders-15", "a-25"),
    *("txn-1", "orders-19", "txn-30", "été-ü-8", f"{LONG}-24", "été-ü-19", "orders-26", "__consumer_offsets-28"),
    *("orders-32", "txn-19", "orders-2", "a-7", "__consumer_offsets-3", f"{LONG}-39"),
]
ONE_TOPIC = [298, 491, 875, 393, 231, 388, 935, 162, 995, 610, 505, 984, 725]


def split(names: list[str]) -> list[tuple[str, int]]:
    return [(topic, int(number)) for topic, _, number in (name.rpartition("-") for name in names)]


@pytest.mark.parametrize("seed", range(5))
def test_partitions_are_in_the_order_of_kafka_3_9(seed: int) -> None:
    chance = random.Random(seed)
    additions = []
    for topic in ("été-ü", "txn", "a", "__consumer_offsets", LONG, "orders"):  # as the record names them
        named = [partition for partition in split(MANY) if partition[0] == topic]
        additions.append(chance.sample(named, len(named)))
    assert table_order(additions, partition_hash) == split(MANY)
    shuffled = [("txn", number) for number in chance.sample(ONE_TOPIC, len(ONE_TOPIC))]
    assert table_order([shuffled], partition_hash) == [("txn", number) for number in ONE_TOPIC]


def test_the_hash_of_a_partition_is_javas() -> None:
    assert partition_hash(("", 2)) == 33 * 31
    assert partition_hash(("orders", 0)) == (31 * 31 + 0xC3DF62E5) & 0xFFFF_FFFF


def test_adding_one_entry_resizes_the_table_below_three_quarters_full() -> None:
    numbers = [16, 1]
    assert table_order([[n] for n in (*numbers, *range(2, 11))], lambda n: n)[:3] == [16, 1, 2]
    assert table_order([[n] for n in (*numbers, *range(2, 12))], lambda n: n)[-1] == 16  # the twelfth element
