"""Subclasses of messages: with methods, without fields."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.compiled import needs_compiled_code
from tests.plan.conftest import codec_of

from kwire.messages import FetchRequest, ListOffsetsResponse
from kwire.messages.base import Struct

__all__ = ["codec_of"]

WIRE = FetchRequest(max_bytes=7, rack_id="r", topics=[FetchRequest.FetchTopic(topic="t")]).encode(version=12)


def make(name: str, namespace: dict[str, Any], bases: tuple[type, ...] = (FetchRequest,), **options: Any) -> Any:
    """Make a class as a statement does."""
    return type(FetchRequest)(name, bases, {"__module__": __name__, **namespace}, **options)


@pytest.mark.parametrize(
    ("namespace", "error"),
    [
        ({"__annotations__": {"extra": int}, "extra": 1}, "field 'extra' is not in the definition of FetchRequest"),
        ({"__annotations__": {"rack_id": str}, "rack_id": "a"}, "field 'rack_id' is defined again"),
        ({"__annotations__": {"rack_id": str}}, "field 'rack_id' is defined again"),
        ({"rack_id": "a"}, "field 'rack_id' is defined again"),
        ({"rack_id": property(lambda self: "a")}, "field 'rack_id' is defined again"),
        ({"__post_init__": lambda self: None}, "__post_init__ is not supported"),
    ],
)
def test_a_subclass_that_codecs_cannot_fill_is_refused(namespace: dict[str, Any], error: str) -> None:
    """A field of a subclass once shifted every decoded value by one field."""
    with pytest.raises(TypeError, match=f"class Mine: {error}"):
        make("Mine", namespace)
    below = make("Below", {})
    with pytest.raises(TypeError, match="class Mine: "):
        make("Mine", namespace, (below,))


def test_fields_are_refused_however_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="class Mine: field 'extra' is not in the definition of FetchTopic"):

        class Mine(FetchRequest.FetchTopic):
            extra: int = 1

    with pytest.raises(TypeError, match="class Mine: field 'extra' is not in the definition of FetchRequest"):
        msgspec.defstruct("Mine", [("extra", int, 1)], bases=(FetchRequest,))


def test_classes_with_other_fields_have_no_codec(codec_of: Any) -> None:
    class Extra(Struct, kw_only=True):
        extra: int = 1

    made = make("Nested", {"FetchTopic": Extra})
    for use in (lambda: codec_of(made, 12), lambda: made.decode(WIRE, version=12), lambda: made().encode(version=12)):
        with pytest.raises(TypeError, match="class Extra does not have the fields of its definition: expected topic, "):
            use()


@pytest.mark.parametrize("options", [{}, {"gc": True, "weakref": True}, {"gc": True, "dict": True}, {"frozen": True}])
def test_subclasses_with_methods_are_read_and_written(codec_of: Any, options: dict[str, Any]) -> None:
    mine = make("Mine", {"size": property(lambda self: len(self.topics)), "FIXED": 1}, **options)
    read = codec_of(mine, 12).decode(WIRE)
    assert (type(read), read.max_bytes, read.rack_id, read.size, read.topics[0].topic) == (mine, 7, "r", 1, "t")
    assert (read.session_epoch, read.replica_state, read.unknown_tagged_fields) == (-1, FetchRequest.ReplicaState(), [])
    assert codec_of(mine, 12).encode(read) == WIRE
    assert mine.decode(WIRE, version=12) == read


@needs_compiled_code
def test_a_subclass_of_a_message_reads_its_own_structs() -> None:
    class Topic(ListOffsetsResponse.ListOffsetsTopicResponse):
        pass

    class Mine(ListOffsetsResponse):
        ListOffsetsTopicResponse = Topic

    wire = Mine(topics=[Topic(name="t")]).encode(version=6)
    assert type(Mine.decode(wire, version=6).topics[0]) is Topic
    assert type(ListOffsetsResponse.decode(wire, version=6).topics[0]) is ListOffsetsResponse.ListOffsetsTopicResponse
