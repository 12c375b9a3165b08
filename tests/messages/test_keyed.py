"""Arrays with map keys: lookup in constant time, stable order."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from tests.schema.writing import field, message

from kwire import schema
from kwire.messages import MetadataResponse
from kwire.messages.keyed import KeyedList
from kwire.messages.metadata_response import MetadataResponseTopic as Topic

TWO_KEYS: Any = schema.compile(
    schema.parse(
        message(
            field(
                "[]Item",
                "Items",
                nullableVersions="0+",
                default="null",
                fields=[
                    field("string", "Name", mapKey=True),
                    field("int32", "Partition", mapKey=True),
                    field("int64", "Count"),
                ],
            )
        )
    )
)


def topics(*names: str) -> list[Topic]:
    return [Topic(name=name, error_code=i) for i, name in enumerate(names)]


@pytest.mark.requirement("W-72", "W-73", "W-75", "W-76", "SDEF-112", "SDEF-114", "SDEF-115", "SDEF-116", "SDEF-117")
def test_find_returns_the_first_of_equal_keys_and_find_all_every_one_in_order() -> None:
    made = MetadataResponse(topics=topics("b", "a", "b"))
    assert [topic.name for topic in made.topics] == ["b", "a", "b"]
    assert made.topics.find("b") is made.topics[0]
    assert made.topics.find(name="a") is made.topics[1]
    assert made.topics.find("c") is None
    assert [topic.error_code for topic in made.topics.find_all("b")] == [0, 2]
    assert made.topics == topics("b", "a", "b")
    assert MetadataResponse().topics.find("a") is None


def test_find_works_after_decoding_pickling_and_copying() -> None:
    made = MetadataResponse(topics=topics("a", "b"))
    for other in (
        MetadataResponse.decode(made.encode(version=9), version=9),
        pickle.loads(pickle.dumps(made)),
        copy.copy(made),
        copy.deepcopy(made),
        MetadataResponse.from_json(made.to_json(version=9), version=9),
    ):
        found = other.topics.find("b")
        assert found is not None
        assert found.error_code == 1
        assert other == made
    assert isinstance(made.topics.copy(), KeyedList)
    assert isinstance(copy.copy(made.topics), KeyedList)


CHANGES = [
    lambda t: t.append(Topic(name="x")),
    lambda t: t.extend([Topic(name="x")]),
    lambda t: t.insert(0, Topic(name="x")),
    lambda t: t.__setitem__(0, Topic(name="x")),
    lambda t: t.__setitem__(slice(0, 1), [Topic(name="x")]),
    lambda t: t.__iadd__([Topic(name="x")]),
]


@pytest.mark.parametrize("change", CHANGES)
def test_added_elements_are_found(change: Any) -> None:
    made = MetadataResponse(topics=topics("a", "b"))
    assert made.topics.find("x") is None
    change(made.topics)
    assert made.topics.find("x") == Topic(name="x")


REMOVALS = [
    lambda t: t.clear(),
    lambda t: t.pop(0),
    lambda t: t.remove(t[0]),
    lambda t: t.__delitem__(0),
    lambda t: t.__imul__(0),
]


@pytest.mark.parametrize("change", REMOVALS)
def test_removed_elements_are_not_found(change: Any) -> None:
    made = MetadataResponse(topics=topics("a", "b"))
    assert made.topics.find("a") is not None
    change(made.topics)
    assert made.topics.find("a") is None


def test_reordering_changes_which_of_equal_keys_is_first() -> None:
    made = MetadataResponse(topics=topics("a", "a"))
    assert made.topics.find("a") is made.topics[0]
    made.topics.reverse()
    found = made.topics.find("a")
    assert found is not None
    assert found.error_code == 1
    made.topics.sort(key=lambda topic: topic.error_code)
    found = made.topics.find("a")
    assert found is not None
    assert found.error_code == 0


def test_several_keys_are_positional_or_named() -> None:
    made = TWO_KEYS(items=[TWO_KEYS.Item(name="a", partition=p, count=p * 10) for p in range(3)])
    assert made.items.find("a", 2).count == 20
    assert made.items.find("a", partition=1).count == 10
    assert made.items.find(partition=1, name="a").count == 10
    for keys, named in [(("a",), {}), (("a", 1, 2), {}), (("a",), {"name": "a"}), (("a",), {"count": 1}), ((), {})]:
        with pytest.raises(TypeError, match="find needs each of the keys name, partition once"):
            made.items.find(*keys, **named)


def test_a_keyed_array_may_be_null() -> None:
    assert TWO_KEYS().items is None
    assert TWO_KEYS.decode(TWO_KEYS().encode(version=1), version=1).items is None


def test_an_assigned_list_supports_find() -> None:
    made = MetadataResponse()
    made.topics = topics("a")
    assert made.topics.find("a") == topics("a")[0]
    assert isinstance(made.topics, KeyedList)


def test_an_index_is_built_once() -> None:
    class Counting:
        MAP_KEYS = ("name",)
        reads = 0

        def __init__(self, name: int) -> None:
            self._name = name

        @property
        def name(self) -> int:
            Counting.reads += 1
            return self._name

    elements = KeyedList(Counting(i) for i in range(100))
    for i in range(100):
        found = elements.find(i)
        assert found is not None
        assert found._name == i
    assert Counting.reads == 100
