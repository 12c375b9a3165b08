"""Compiled code and the walker write the same objects into the same bytes, and refuse the same."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from kwire import native, plan, schema
from kwire.errors import EncodeError
from kwire.messages import FetchResponse, MetadataResponse

DEFINITION = """
{
  "apiKey": 9000, "type": "request", "name": "OddRequest", "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Number", "type": "int32", "versions": "0+"},
    {"name": "Text", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "Numbers", "type": "[]int64", "versions": "0+"},
    {"name": "Ids", "type": "[]uuid", "versions": "0+"},
    {"name": "Real", "type": "float64", "versions": "0+"},
    {"name": "Tagged", "type": "bytes", "versions": "0+", "taggedVersions": "0+", "tag": 0},
    {"name": "Parts", "type": "[]Part", "versions": "0+", "taggedVersions": "0+", "tag": 1, "fields": [
      {"name": "Data", "type": "bytes", "versions": "0+", "nullableVersions": "0+"},
      {"name": "More", "type": "bytes", "versions": "0+", "taggedVersions": "0+", "tag": 0}
    ]},
    {"name": "Share", "type": "float64", "versions": "0+", "taggedVersions": "0+", "tag": 2, "default": "0.5"}
  ]
}
"""
Odd: Any = schema.compile(schema.parse(DEFINITION))
if native.LEVEL is None:
    pytest.skip("compares compiled code, which KWIRE_KERNEL=0 switches off", allow_module_level=True)
COMPILED = plan.codec(Odd.SPEC, 0, Odd, kernels=True)
WALKER = plan.codec(Odd.SPEC, 0, Odd, kernels=False)


class Level(enum.IntEnum):
    """An int with a name."""

    LOW = 7


class Loud(int):
    """An int whose own conversions are not used."""

    def __index__(self) -> int:
        raise AssertionError("compiled code runs no Python")

    __int__ = __index__


class Names(list[int]):
    """A list that iterates in another way than it is."""

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("compiled code runs no Python")


def written(codec: plan.Codec, obj: object) -> bytes | str:
    """Return the bytes, or the error."""
    try:
        return codec.encode(obj)
    except EncodeError as error:
        return str(error)


def released() -> memoryview:
    """A memoryview that cannot be read."""
    view = memoryview(b"abc")
    view.release()
    return view


ODD_VALUES: list[dict[str, Any]] = [
    *(
        {"number": value}
        for value in (True, None, 1.0, "1", Level.LOW, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**64)
    ),
    *({"text": value} for value in (None, "", "é" * 100, "\ud800", "x" * 32767, "x" * 32768, b"x", "日" * 10922, 5)),
    *({"numbers": value} for value in ([], (1, 2), {1}, None, [2**63 - 1, -(2**63)], [2**63], [True], [None], "12")),
    *(
        {"ids": [value]}
        for value in (UUID(int=0), UUID(int=2**64), UUID(int=2**128 - 1), UUID(int=2**63), b"x" * 16, 1)
    ),
    *({"real": value} for value in (1, 2**53 + 1, 2**63, True, float("inf"), "1", None, 10**400)),
    *(
        {"tagged": value}
        for value in (bytearray(b"ab"), memoryview(b"abcd")[::2], memoryview(b"ab"), "ab", UUID(int=5))
    ),
    *({"share": value} for value in (0.5, 0, 1, True, None, float("nan"), -0.0)),
    *(
        {"unknown_tagged_fields": value}
        for value in (
            *([(3, b"x")], [[3, b"x"]], ((3, b"x"),), [(0, b"x")], [(4, b"x"), (3, b"y")], [(3, b""), (3, b"")], None),
            *([(2**31 - 1, b"x")], [(2**31, b"x")], [(-1, b"x")], [(True, b"x")], [(3,)], [(3, "x")], [3], {3: b"x"}),
            *([(3, b"x" * 5000), (9, b"y" * 100)],),
        )
    ),
    {"parts": [Odd.Part(data=None), Odd.Part(more=b"x"), Odd.Part(data=b"y" * 70000)]},
    {"parts": [None]},
    {"parts": [Odd()]},
    {"parts": [(b"x", b"", [])]},
]


@pytest.mark.parametrize("values", ODD_VALUES, ids=range(len(ODD_VALUES)))
@pytest.mark.requirement("W-21", "W-24")
def test_values_of_any_type_are_written_or_refused_alike(values: dict[str, Any]) -> None:
    assert written(COMPILED, Odd(**values)) == written(WALKER, Odd(**values))


def test_no_python_of_the_objects_runs() -> None:
    expected = WALKER.encode(Odd(number=5, numbers=[1, 2]))
    assert COMPILED.encode(Odd(number=Loud(5), numbers=Names([1, 2]))) == expected


def test_a_released_view_is_an_error() -> None:
    with pytest.raises(EncodeError, match="is not bytes"):
        COMPILED.encode(Odd(tagged=released()))


@pytest.mark.parametrize("obj", [None, 5, (), Odd.Part(), MetadataResponse()])
def test_objects_of_other_classes_are_refused(obj: object) -> None:
    assert written(COMPILED, obj) == written(WALKER, obj)
    assert isinstance(written(COMPILED, obj), str)


def test_an_object_without_a_value_is_refused() -> None:
    obj = Odd()
    del obj.text
    for codec in (COMPILED, WALKER):
        with pytest.raises(EncodeError, match=r"OddRequest without a value in a field: .*'text'"):
            codec.encode(obj)


@pytest.mark.parametrize("before", [*range(20), *range(4060, 4110)])
def test_values_of_any_length_in_and_before_tagged_fields(before: int) -> None:
    """Lengths around those at which bytes stay where they are, and at which sizes take another byte."""
    for size in (0, 1, 120, 127, 128, 4095, 4096, 4097, 16383, 16384):
        parts = [Odd.Part(data=b"a" * before, more=b"b" * size), Odd.Part(data=b"c" * size, more=b"d" * before)]
        obj = Odd(tagged=b"e" * size, parts=parts, unknown_tagged_fields=[(3, b"f" * size), (5, b"g" * before)])
        assert COMPILED.encode(obj) == WALKER.encode(obj)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("size", [*range(65500, 65560), 2**21 - 20, 2**21, 2**21 + 20])
def test_outputs_that_outgrow_the_buffer(size: int) -> None:
    text, rest = "x" * 32000, "y" * (size % 32000)
    parts = [Odd.Part(data=b"z" * 4000) for _ in range(size // 4000)]
    for obj in (
        Odd(text=rest, parts=parts, numbers=range_of(size)),
        Odd(text=text, numbers=range_of(size - 32000), ids=[UUID(int=size)] * 3),
        Odd(text=rest, ids=[UUID(int=i << 60) for i in range(size // 16)], tagged=b"t" * 3000),
    ):
        assert COMPILED.encode(obj) == WALKER.encode(obj)


def range_of(size: int) -> list[int]:
    """Return numbers that take `size` bytes or a few less."""
    return list(range(size // 8))


@pytest.mark.parametrize("count", [255, 256, 257, 600])
@pytest.mark.parametrize("size", [4095, 4096, 5000])
def test_more_long_values_than_are_left_where_they_are(count: int, size: int) -> None:
    parts = [Odd.Part(data=bytes([i & 255]) * (size + i % 3)) for i in range(count)]
    obj = Odd(parts=parts, number=count, tagged=b"q" * size)
    assert COMPILED.encode(obj) == WALKER.encode(obj)


def test_frames_of_long_records() -> None:
    topics = [
        FetchResponse.FetchableTopicResponse(
            topic="t",
            partitions=[FetchResponse.PartitionData(partition_index=i, records=bytes([i]) * n) for i in range(3)],
        )
        for n in (0, 100, 4096, 70000)
    ]
    message = FetchResponse(responses=topics)
    for version in (4, 11, 12):
        compiled = plan.codec(FetchResponse.SPEC, version, FetchResponse, kernels=True)
        walker = plan.codec(FetchResponse.SPEC, version, FetchResponse, kernels=False)
        assert compiled.encode(message) == walker.encode(message)


def test_subclasses_without_fields_are_written_as_their_message() -> None:
    class Mine(MetadataResponse):  # type: ignore[misc]  # made when it runs
        def topic_names(self) -> list[str | None]:
            return [topic.name for topic in self.topics]

    for version in (0, 9):
        assert Mine(cluster_id="c" if version else None).encode(version=version) == MetadataResponse(
            cluster_id="c" if version else None
        ).encode(version=version)
