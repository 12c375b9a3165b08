"""What a codec promises beside the wire rules: types of fields, kinds of buffers, errors, threads."""

from __future__ import annotations

import enum
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from tests.plan.conftest import CodecOf
from tests.plan.definitions import Everything, FooResponse, Probe, compiled, field
from tests.waiting import HANG_S

from kwire import native, plan
from kwire.errors import DecodeError, EncodeError, SchemaError
from kwire.messages import registry
from kwire.plan.nested_columns import NestedReader

Fetch: Any = registry.get("FetchResponse")
SIZES = (0, 1, 15, 16, 17, 100, 4095, 4096, 4097, 40_000)
VERSION = 12


def fetch_response(sizes: tuple[int, ...] = SIZES) -> Any:
    partitions = [Fetch.PartitionData(partition_index=i, records=bytes([i]) * n) for i, n in enumerate(sizes)]
    partitions.append(Fetch.PartitionData(partition_index=99, records=None))
    return Fetch(responses=[Fetch.FetchableTopicResponse(topic="t", partitions=partitions)])


@pytest.mark.parametrize("sizes", [SIZES, SIZES[:6], (16, 16, 16), (40_000, 16, 40_000)])
def test_records_are_bytes_of_any_size_and_views_when_asked_for(codec_of: CodecOf, sizes: tuple[int, ...]) -> None:
    codec, obj = codec_of(Fetch, VERSION), fetch_response(sizes)
    wire = codec.encode(obj)
    as_bytes, as_views = codec.decode(wire), codec.decode(wire, views=True)
    assert as_bytes == as_views == obj
    for kind, read in ((bytes, as_bytes), (memoryview, as_views)):
        *given, null = read.responses[0].partitions
        assert {type(p.records) for p in given} == {kind}
        assert null.records is None
    last = as_views.responses[0].partitions[0].records
    assert last.obj is wire  # of the input itself, no copy of it
    assert codec.encode(as_views) == wire


def test_views_of_arrays_and_of_tagged_and_missing_bytes(codec_of: CodecOf) -> None:
    codec = codec_of(Everything, 1)
    obj = Everything(onebytes=b"one", manybytes=[b"", b"x" * 16, b"y" * 5000], taggedbytes=b"tagged")
    read = codec.decode(codec.encode(obj), views=True)
    assert read == obj
    assert {type(x) for x in (read.onebytes, *read.manybytes, read.taggedbytes)} == {memoryview}
    assert codec.decode(codec.encode(Everything()), views=True).taggedbytes == b""  # not sent: the default


@pytest.mark.parametrize(
    "kind", [bytes, bytearray, memoryview, lambda b: memoryview(bytearray(b"??" + b + b"?"))[2:-1]]
)
def test_any_contiguous_buffer_is_read(codec_of: CodecOf, kind: Any) -> None:
    codec, obj = codec_of(Fetch, VERSION), fetch_response()
    data = kind(codec.encode(obj))
    assert codec.decode(data) == obj
    assert codec.decode(data, views=True) == obj
    assert codec.decode_from(data, 0)[0] == obj
    with pytest.raises(DecodeError):
        codec.decode(data[:-1])


def test_what_is_no_buffer_is_a_type_error(codec_of: CodecOf) -> None:
    for data in ("text", 5, None):
        with pytest.raises(TypeError):
            codec_of(Probe, 0).decode(data)


def test_arguments_are_those_of_the_signature(codec_of: CodecOf) -> None:
    codec = codec_of(Probe, 0)
    wire = codec.encode(Probe())
    assert codec.decode(data=wire, views=1, lenient=0) == codec.decode_from(wire, pos=0, lenient=True)[0] == Probe()
    assert codec.decode(wire + b"?", False, False, True) == Probe()
    for args, named in (
        ((), {}),
        ((wire,) * 5, {}),
        ((wire,), {"view": True}),
        ((wire,), {"data": wire}),
        ((), {"views": True}),
    ):
        with pytest.raises(TypeError):
            codec.decode(*args, **named)
    for args in ((wire,), (wire, "0"), (wire, None)):
        with pytest.raises(TypeError):
            codec.decode_from(*args)


@pytest.mark.parametrize("pos", [-1, 100, 2**62])
def test_a_position_outside_the_input_is_an_error(codec_of: CodecOf, pos: int) -> None:
    with pytest.raises(DecodeError, match="starts at byte"):
        codec_of(Probe, 0).decode_from(bytes(99), pos)


LEAKS = """
import contextlib, gc, sys
from uuid import UUID, SafeUUID
from kwire import plan
from kwire.errors import DecodeError
from tests.plan.definitions import Everything

obj = Everything(
    onestring="text", onebytes=b"bytes", oneuuid=UUID(int=5), oneint64=2**40, manystring=["one", "two"],
    manyint32=[1000, 2000], taggedstring="tagged", unknown_tagged_fields=[(100, b"unknown")],
)
codec = plan.codec(Everything.SPEC, 1, Everything)
wire = codec.encode(obj)
shared = None, True, UUID, Everything, SafeUUID

def growth(rounds):
    gc.collect()
    before = *map(sys.getrefcount, shared), sys.getallocatedblocks()
    for cut in [*range(len(wire) + 1)] * rounds:
        for views in (False, True):
            with contextlib.suppress(DecodeError):
                codec.decode(wire[:cut], views)
            codec.decode_from(wire, 0, views)
    gc.collect()
    after = *map(sys.getrefcount, shared), sys.getallocatedblocks()
    return max(b - a for a, b in zip(before, after))

# A leak shows in each run, with one block or more a round. The interpreter's own caches grow too, in the first runs.
print(any(growth(20) < 20 for _ in range(20)))
"""


def test_decoding_leaves_nothing_behind() -> None:
    """Neither messages nor rejected input keep memory or references, however far they were read."""
    done = subprocess.run([sys.executable, "-c", LEAKS], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"


# Values that are no builtins of the field's type and still mean one, in both interpreters alike.
Colour = enum.IntEnum("Colour", {"RED": 7})
Word = enum.Enum("Word", {"YES": "yes"})


@pytest.mark.parametrize(
    ("attribute", "given", "read"),
    [
        ("oneint32", Colour.RED, 7),
        ("oneint64", np.int64(2**40), 2**40),
        ("manyint32", (1, 2), [1, 2]),
        ("manyint32", {5}, [5]),
        ("manyint32", [np.int32(5)], [5]),
        ("onestring", Word.YES, "yes"),
        ("onefloat64", 3, 3.0),
        ("onefloat64", 2**62, float(2**62)),
        ("onefloat64", 2**64 - 1, float(2**64 - 1)),
        ("onefloat64", 10**300, 1e300),
        ("onefloat64", np.float64(1.5), 1.5),
        ("manyfloat64", [1, 2.5], [1.0, 2.5]),
        ("onebytes", bytearray(b"ab"), b"ab"),
        ("onebytes", memoryview(b"abcd")[::2], b"ac"),
        ("oneuuid", bytes(15) + b"\x01", UUID(int=1)),
        ("manystring", ("a", "b"), ["a", "b"]),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_values_that_stand_for_another_are_taken(
    codec_of: CodecOf, attribute: str, given: Any, read: Any, version: int
) -> None:
    codec = codec_of(Everything, version)
    assert getattr(codec.decode(codec.encode(Everything(**{attribute: given}))), attribute) == read


@pytest.mark.parametrize(
    ("attribute", "given"),
    [
        *(
            (f"one{kind}", wrong)
            for kind in ("int8", "uint16", "int64")
            for wrong in ("5", 1.0, b"5", True, [], Decimal(5))
        ),
        *(("onebool", wrong) for wrong in (0, 1, "true", b"")),
        *(("onefloat64", wrong) for wrong in ("1.5", True, b"", [], Decimal("1.5"))),
        *(("oneuuid", wrong) for wrong in ("0" * 32, bytes(15), bytes(17), 5, str(UUID(int=1)))),
        *(("onestring", wrong) for wrong in (b"x", 5, ["x"], UUID(int=1))),
        *(("onebytes", wrong) for wrong in ("x", 5, [1], object())),
        *(("manyint32", wrong) for wrong in ("12", b"12", 5, {1: 2}, object())),
        *(("manyint32", wrong) for wrong in ([1.5], ["x"], [True], [None], [[1]])),
        *(("manystring", wrong) for wrong in ("ab", [5], [b"x"], [object()])),
        *(("taggedint32", wrong) for wrong in ("5", None, 1.5, object())),
        *(("taggedstring", wrong) for wrong in (b"x", 5, object())),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_path(codec_of: CodecOf, attribute: str, given: Any) -> None:
    with pytest.raises(EncodeError, match=r"Probe version 1") as caught:
        codec_of(Everything, 1).encode(Everything(**{attribute: given}))
    assert caught.value.path[0] == attribute


def test_dates_become_text_as_msgspec_writes_them(codec_of: CodecOf) -> None:
    """The weak point of going through msgspec: in a string field its text forms of other types are taken."""
    codec = codec_of(Everything, 0)
    assert codec.decode(codec.encode(Everything(onestring=datetime(2026, 1, 2)))).onestring == "2026-01-02T00:00:00"


def test_structs_of_another_message_or_shape_are_refused(codec_of: CodecOf) -> None:
    codec = codec_of(FooResponse, 9)
    for wrong in (5, None, "x", Probe(), object(), {"baz": 7}, [1, 2]):
        with pytest.raises(EncodeError) as caught:
            codec.encode(FooResponse(foos=[FooResponse.Foo(), wrong]))
        assert caught.value.path[:2] == ("foos", 1)
    for wrong in (5, None, Probe(), object()):
        with pytest.raises(EncodeError):
            codec.encode(wrong)


def test_objects_that_contain_themselves_are_refused(codec_of: CodecOf) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(EncodeError):
        codec_of(FooResponse, 9).encode(FooResponse(foos=loop))


def test_errors_show_values_short_and_escaped(codec_of: CodecOf) -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    with pytest.raises(EncodeError) as caught:
        codec_of(Everything, 1).encode(Everything(oneint32="x" * 10_000 + "\x1b[31m"))
    assert len(str(caught.value)) < 200
    assert "\x1b" not in str(caught.value)
    for rude in (Rude(), 10**5000):
        with pytest.raises(EncodeError, match="int32") as caught:
            codec_of(Everything, 1).encode(Everything(oneint32=rude))
        assert len(str(caught.value)) < 200


def test_more_fields_than_one_row_or_one_header_byte_holds(codec_of: CodecOf) -> None:
    cls = compiled(
        *(field(f"F{i}", "int8") for i in range(40)),
        *(field(f"T{i}", "int8", "1+", tag=i, taggedVersions="1+") for i in range(20)),
    )
    for version in (0, 1):
        codec = codec_of(cls, version)
        for tags in ({}, {"t3": 5}, {f"t{i}": i + 1 for i in range(20)}):
            obj = cls(**{f"f{i}": i for i in range(40)}, **(tags if version else {}))
            assert codec.decode(codec.encode(obj)) == obj


LEVELS = 100
"""That definitions allow; the inner structs are common ones, because JSON nests twice for each level."""
NESTING: dict[str, dict[str, Any]] = {
    "arrays": {"type": "[]S{}"},
    "structs": {"type": "S{}"},
    "nullable structs": {"type": "S{}", "nullableVersions": "0+", "default": "null"},
    "tagged arrays": {"type": "[]S{}", "versions": "1+", "taggedVersions": "1+", "tag": 0},
    "tagged structs": {"type": "S{}", "versions": "1+", "taggedVersions": "1+", "tag": 0},
    "structs that become tagged": {"type": "S{}", "taggedVersions": "1+", "tag": 0},
}


def nested(levels: int, inner: dict[str, Any]) -> Any:
    """Return a message whose structs nest in each other."""
    structs = [{"name": "S0", "versions": "0+", "fields": [field("X", "int8"), field("Y", "int8")]}]
    for level in range(1, levels):
        within = {"name": "A", "versions": "0+", **inner, "type": inner["type"].format(level - 1)}
        structs.append({"name": f"S{level}", "versions": "0+", "fields": [within, field("B", "int8")]})
    return compiled(field("A", f"[]S{levels - 1}"), commonStructs=structs)


@pytest.mark.sampled
@pytest.mark.parametrize("inner", NESTING.values(), ids=NESTING)
def test_definitions_as_deep_as_the_language_allows_are_compiled(inner: dict[str, Any]) -> None:
    """From 16 levels on, messages were read and written by the walker, 10 to 40 times slower."""
    cls = nested(LEVELS, inner)
    for version in (0, 1):
        codecs = [plan.codec(cls.SPEC, version, cls, kernels=kernels) for kernels in (True, False)]
        assert [codec.decode.__name__ for codec in codecs] == ["decode", "_decode"]
        assert codecs[0].encode.__name__ == "encode"
        obj = cls.S0(x=5)
        for level in range(1, LEVELS):
            if version in cls.SPEC.structs[level].fields[0].versions:
                obj = getattr(cls, f"S{level}")(a=[obj] if inner["type"].startswith("[]") else obj, b=7)
            else:
                obj = getattr(cls, f"S{level}")(b=7)
        whole = cls(a=[obj, obj])
        wires = [codec.encode(whole) for codec in codecs]
        assert wires[0] == wires[1]
        assert [codec.decode(wires[0]) for codec in codecs] == [whole, whole]
        errors = []
        for codec in codecs:
            with pytest.raises(DecodeError) as caught:
                codec.decode(wires[0][:-1])
            errors.append(str(caught.value))
        assert errors[0] == errors[1]
        reader, wires = NestedReader(cls.SPEC, version), [wires[0], wires[0][:-1], wires[0]]
        structs = reader.read(wires, permissive=True)
        assert structs.is_valid().to_pylist() == [True, False, True]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "LEVEL", None)
            assert reader.read(wires, permissive=True).equals(structs)


@pytest.mark.parametrize("inner", NESTING.values(), ids=NESTING)
def test_the_language_allows_no_deeper_definitions(inner: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match=f"structs nested deeper than {LEVELS} levels"):
        nested(LEVELS + 1, inner)


def test_output_that_outgrows_its_first_buffer(codec_of: CodecOf) -> None:
    """Defaults that a version lacks make objects larger than their bytes, ints smaller than theirs."""
    cls = compiled(
        field("E", "[]Es", fields=[field("Long", "string", "2+", default="d" * 500), field("X", "int8")]),
        field("Ints", "[]int64"),
    )
    codec = codec_of(cls, 0)
    for count in (1, 100, 3000):
        obj = cls(e=[cls.Es(x=i % 100) for i in range(count)], ints=[1] * count)
        for _ in range(2):
            assert codec.decode(codec.encode(obj)) == obj


def test_large_messages_one_after_the_other(codec_of: CodecOf) -> None:
    """They are packed into a buffer that is kept, at most once, from call to call."""
    codec, small, large = codec_of(Fetch, VERSION), fetch_response((5,)), fetch_response((500_000, 3))
    wires = {id(obj): codec.encode(obj) for obj in (small, large)}
    bad = fetch_response((500_000,))
    bad.responses[0].partitions[0].high_watermark = "x"
    strange = fetch_response((500_000,))
    strange.responses[0].partitions[0].high_watermark = object()
    for obj in (large, large, bad, large, strange, large, small, large, small, small, large):
        if id(obj) in wires:
            assert codec.encode(obj) == wires[id(obj)]
            assert codec.decode(codec.encode(obj)) == obj
        else:
            with pytest.raises(EncodeError) as caught:
                codec.encode(obj)
            assert caught.value.path == ("responses", 0, "partitions", 0, "high_watermark")


def test_threads_share_a_codec(codec_of: CodecOf) -> None:
    codec, objs = codec_of(Fetch, VERSION), [fetch_response((i, 300_000 - i)) for i in range(8)]
    wires = [codec.encode(obj) for obj in objs]
    start = threading.Barrier(8)

    def work(i: int) -> bool:
        start.wait()
        return all(codec.decode(wires[i]) == objs[i] and codec.encode(objs[i]) == wires[i] for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_a_codec_is_not_disturbed_by_one_that_runs_inside_it(codec_of: CodecOf) -> None:
    """A value whose text is made by the same codec, in the middle of writing another object."""
    codec = codec_of(Everything, 1)

    class Reentrant(enum.Enum):
        VALUE = "v"

        def __getattribute__(self, name: str) -> Any:
            if name == "value":
                codec.encode(Everything(onestring="inside" * 100))
            return super().__getattribute__(name)

    assert codec.decode(codec.encode(Everything(onestring=Reentrant.VALUE))).onestring == "v"


def test_errors_are_the_same_from_both_interpreters() -> None:
    walker, kernel = (plan.codec(FooResponse.SPEC, 9, FooResponse, kernels=k) for k in (False, True))
    wire = walker.encode(FooResponse(user_agent="x", foos=[FooResponse.Foo(bar="y"), FooResponse.Foo(baz=5)]))
    for at in range(len(wire)):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            data = wire[:at] + bytes([value]) + wire[at + 1 :]
            outcomes = []
            for codec in (walker, kernel):
                try:
                    outcomes.append(repr(codec.decode(data)))
                except DecodeError as error:
                    outcomes.append(repr((type(error), error.args)))
            assert outcomes[0] == outcomes[1]
