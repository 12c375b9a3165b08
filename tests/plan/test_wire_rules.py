"""The W rules and T traps of docs/spec/messages.md, part 3, on both interpreters."""

from __future__ import annotations

import math
import struct
from typing import Any
from uuid import UUID

import pytest
from tests.plan.conftest import CodecOf
from tests.plan.definitions import Everything, FooResponse, Moved, MovedOld, Probe, compiled, field

from kwire.errors import DecodeError, EncodeError, Malformed, Truncated, UnsupportedVersion
from kwire.messages import registry
from kwire.wire.lengths import write_compact_length, write_length

Z = "00" * 24


def hexed(text: str) -> bytes:
    """Bytes of hex; Z stands for 24 zero bytes, as in messages.md 8.2."""
    return bytes.fromhex(text.replace("Z", Z))


# messages.md 8.2: attributes, version, bytes that Kafka writes (with the recommended answer to its traps)
WRITTEN: list[tuple[dict[str, Any], int, str]] = [
    ({}, 0, "00 0000"),
    ({}, 1, "00 01 01 01 00 Z 01 00"),
    ({}, 2, "00 01 00000007 01 01 00 Z 01 00"),
    ({"s": None}, 2, "00 00 00000007 01 01 00 Z 01 00"),
    ({"t1": None}, 1, "00 01 01 01 00 Z 01 01 01 01 00"),
    (
        {"t0": 5, "t1": "ab", "t2": Probe.Ns(p="x")},
        1,
        "00 01 01 01 00 Z 01 03 00 02 0005 01 03 03 6162 02 04 01 02 78 00",
    ),
    ({"unknown_tagged_fields": [(9, b"\x01")]}, 1, "00 01 01 01 00 Z 01 01 09 01 01"),
    ({"t0": 5, "unknown_tagged_fields": [(9, b"\x01")]}, 1, "00 01 01 01 00 Z 01 02 00 02 0005 09 01 01"),
]


@pytest.mark.requirement("SDEF-74", "SDEF-75", "SDEF-80", "SDEF-81")
@pytest.mark.requirement("SDEF-28", "SDEF-30", "SDEF-31", "SDEF-35", "SDEF-55", "SDEF-60")
@pytest.mark.requirement(
    "W-12", "W-13", "W-16", "W-17", "W-20", "W-21", "W-22", "W-23", "S482-09", "S482-11", "S482D-07"
)
@pytest.mark.parametrize(("values", "version", "wire"), WRITTEN)
def test_messages_are_written_and_read_as_kafka_does(
    codec_of: CodecOf, values: dict[str, Any], version: int, wire: str
) -> None:
    codec, obj = codec_of(Probe, version), Probe(**values)
    assert codec.encode(obj) == hexed(wire)
    assert codec.decode(hexed(wire)) == obj
    assert codec.encoded_size(obj) == len(hexed(wire))


# The bytes of a value in a version without compact types, and in one with them.
TYPES: list[tuple[str, Any, str, str]] = [
    ("bool", True, "01", "01"),
    ("int8", -2, "fe", "fe"),
    ("int16", -2, "fffe", "fffe"),
    ("uint16", 0xFFFE, "fffe", "fffe"),
    ("int32", -2, "fffffffe", "fffffffe"),
    ("uint32", 0xFFFF_FFFE, "fffffffe", "fffffffe"),
    ("int64", -2, "fffffffffffffffe", "fffffffffffffffe"),
    ("float64", -1.5, "bff8000000000000", "bff8000000000000"),
    ("uuid", UUID(int=1 << 124 | 2), "10000000000000000000000000000002", "10000000000000000000000000000002"),
    ("string", "é", "0002 c3a9", "03 c3a9"),
    ("bytes", b"\xff", "00000001 ff", "02 ff"),
    ("records", b"\xff", "00000001 ff", "02 ff"),
    ("[]int16", [1, -2], "00000002 0001 fffe", "03 0001 fffe"),
]


@pytest.mark.requirement("SDEF-38", "SDEF-39", "SDEF-40", "SDEF-41", "SDEF-42", "SDEF-43", "SDEF-44", "SDEF-45")
@pytest.mark.requirement("SDEF-46", "SDEF-47", "SDEF-71", "SDEF-72", "SDEF-73")
@pytest.mark.parametrize(("kind", "value", "wire", "compact"), TYPES, ids=[kind for kind, *_ in TYPES])
def test_every_type_has_its_bytes(codec_of: CodecOf, kind: str, value: Any, wire: str, compact: str) -> None:
    cls = compiled(field("F", kind))
    for version, data in ((0, hexed(wire)), (1, hexed(f"{compact} 00"))):
        assert codec_of(cls, version).encode(cls(f=value)) == data
        assert codec_of(cls, version).decode(data) == cls(f=value)


@pytest.mark.requirement("SDEF-127", "T-23")
def test_structs_are_not_boxed(codec_of: CodecOf) -> None:
    """A list of structs of one field is a list of that field, byte for byte, unless tag sections follow each."""
    numbers = [7, -1, 2**31 - 1]
    plain = compiled(field("Items", "[]int32"), flexible="1+")
    boxed = compiled(field("Items", "[]Item", fields=[field("A", "int32")]), flexible="1+")
    old, new = plain(items=numbers), boxed(items=[boxed.Item(a=number) for number in numbers])
    wire = codec_of(plain, 0).encode(old)
    assert wire == hexed("00000003 00000007 ffffffff 7fffffff")
    assert codec_of(boxed, 0).encode(new) == wire
    assert codec_of(boxed, 0).decode(wire) == new
    assert codec_of(plain, 0).decode(codec_of(boxed, 0).encode(new)) == old
    assert codec_of(plain, 1).encode(old) == hexed("04 00000007 ffffffff 7fffffff 00")
    assert codec_of(boxed, 1).encode(new) == hexed("04 00000007 00 ffffffff 00 7fffffff 00 00")


@pytest.mark.requirement("SDEF-12", "SDEF-61", "SDEF-70", "SDEF-71", "SDEF-72", "SDEF-73")
@pytest.mark.requirement("W-23", "W-31", "S482-40", "S482-41", "S482-61", "S482-65", "S482-68", "S482-72", "S482-94")
@pytest.mark.requirement("S482-19", "S482D-13")
@pytest.mark.parametrize(
    ("foo", "agent", "version", "wire"),
    [
        ({}, "", 8, "00000001 0007"),
        ({}, "", 9, "02 0007 00 00"),
        ({"bar": "hi"}, "abc", 9, "02 0007 01 00 03 03 6869 01 00 04 04 616263"),
        ({"bar": ""}, "", 9, "02 0007 01 00 01 01 00"),
    ],
)
def test_the_example_of_kip_482(codec_of: CodecOf, foo: dict[str, Any], agent: str, version: int, wire: str) -> None:
    codec = codec_of(FooResponse, version)
    obj = FooResponse(user_agent=agent, foos=[FooResponse.Foo(baz=7, **foo)])
    assert codec.encode(obj) == hexed(wire)
    assert codec.decode(hexed(wire)) == obj


@pytest.mark.requirement("SDEF-82", "SDEF-104")
@pytest.mark.requirement("W-01", "W-02")
def test_reading_sets_every_field_and_versions_are_arguments(codec_of: CodecOf) -> None:
    obj = codec_of(Probe, 0).decode(hexed("05 0001 78"))
    assert (obj.a, obj.s, obj.only2, obj.t1, obj.t2, obj.u) == (5, "x", 7, "", None, UUID(int=0))
    assert codec_of(Probe, 1).encode(obj) == hexed("05 02 78 01 01 00 Z 01 00")


@pytest.mark.requirement("W-03")
@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("int8", -(2**7), 2**7 - 1),
        ("int16", -(2**15), 2**15 - 1),
        ("uint16", 0, 2**16 - 1),
        ("int32", -(2**31), 2**31 - 1),
        ("uint32", 0, 2**32 - 1),
        ("int64", -(2**63), 2**63 - 1),
    ],
)
def test_integers_reach_both_ends_of_their_type_and_no_further(
    codec_of: CodecOf, kind: str, low: int, high: int
) -> None:
    one, many, tagged = (f"{prefix}{kind}" for prefix in ("one", "many", "tagged"))
    codec = codec_of(Everything, 1)
    for value in (low, high):
        obj = Everything(**{one: value, many: [value, low, high], tagged: value})
        assert codec.decode(codec.encode(obj)) == obj
    for value in (low - 1, high + 1, 2**64, -(2**70)):
        for attribute, broken, path in (
            (one, value, (one,)),
            (many, [0, value], (many, 1)),
            (tagged, value, (tagged,)),
        ):
            with pytest.raises(EncodeError, match=f"does not fit {kind}.*version 1") as caught:
                codec.encode(Everything(**{attribute: broken}))
            assert caught.value.path == path


@pytest.mark.requirement("W-04")
def test_a_version_that_is_not_valid_is_refused(codec_of: CodecOf) -> None:
    for version in (4, -1, 100):
        with pytest.raises(UnsupportedVersion, match="0-3"):
            codec_of(Probe, version)


@pytest.mark.requirement("W-05")
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 300, 16382, 16383, 16384, 32767])
def test_the_size_of_a_tagged_value_is_exact_at_every_width(codec_of: CodecOf, size: int) -> None:
    codec = codec_of(Everything, 1)
    obj = Everything(taggedstring="x" * size)
    assert codec.decode(codec.encode(obj)) == obj
    assert codec.encoded_size(obj) == len(codec.encode(obj))


@pytest.mark.requirement("W-06")
def test_bytes_behind_a_message_are_for_the_caller_to_judge(codec_of: CodecOf) -> None:
    codec, wire = codec_of(Probe, 0), hexed("00 0000")
    assert codec.decode_from(wire + b"rest", 0) == (Probe(), 3)
    assert codec.decode_from(b"rest" + wire, 4) == (Probe(), 7)
    with pytest.raises(Malformed, match="1 byte remaining after the message, at byte 3"):
        codec.decode(wire + b"\xff")
    for pos in (-1, 8, 2**62):
        with pytest.raises(Truncated):
            codec.decode_from(wire, pos)


@pytest.mark.requirement("W-10", "S482-86", "S482-87", "S482-88", "S482-89", "S482-91")
@pytest.mark.parametrize("length", ["02", "8200", "828000", "82808000", "8280808000", "8280808010", "8280808070"])
def test_long_forms_of_small_lengths_are_read(codec_of: CodecOf, length: str) -> None:
    assert codec_of(Probe, 1).decode(hexed(f"00 {length} 78 01 01 00 Z 01 00")).s == "x"


@pytest.mark.requirement("W-10", "W-40")
@pytest.mark.parametrize(
    ("length", "error"), [("8080808080", Malformed), ("808080808001", Malformed), ("80", Truncated)]
)
def test_lengths_of_more_than_five_bytes_are_refused(codec_of: CodecOf, length: str, error: type[DecodeError]) -> None:
    with pytest.raises(error) as caught:
        codec_of(Probe, 1).decode(hexed(f"00 {length}"))
    assert (caught.value.path, caught.value.position) == (("s",), 1)


@pytest.mark.requirement("W-11", "T-11")
def test_a_compact_length_of_two_to_the_31_is_an_error_and_null_in_kafka(codec_of: CodecOf) -> None:
    data = hexed("00 ffffffff0f 00000007 01 01 00 Z 01 00")
    codec = codec_of(Probe, 2)
    with pytest.raises(DecodeError) as caught:
        codec.decode(data)
    assert caught.value.path == ("s",)
    assert codec.decode(data, lenient=True).s is None
    with pytest.raises(DecodeError):
        codec_of(Probe, 1).decode(hexed("00 ffffffff0f 01 01 00 Z 01 00"), lenient=True)  # not nullable in version 1


@pytest.mark.requirement("W-14")
@pytest.mark.parametrize("length", ["ffff", "fffe", "8000"])
def test_any_negative_length_is_null_where_null_may_be(codec_of: CodecOf, length: str) -> None:
    cls = compiled(field("S", "string", nullableVersions="1+"), flexible="none")
    assert codec_of(cls, 1).decode(hexed(length)).s is None
    with pytest.raises(Malformed, match="null") as caught:
        codec_of(cls, 0).decode(hexed(length))
    assert caught.value.path == ("s",)


@pytest.mark.requirement("W-14", "W-41")
@pytest.mark.parametrize("kind", ["string", "bytes", "records", "[]int32", "[]string"])
def test_null_is_refused_where_it_may_not_be(codec_of: CodecOf, kind: str) -> None:
    cls = compiled(field("F", kind))
    for version, wire in ((0, "ffff" if kind == "string" else "ffffffff"), (1, "00 00")):
        with pytest.raises(Malformed, match="null"):
            codec_of(cls, version).decode(hexed(wire))


Nested: Any = compiled(
    field("N", "Ns", nullableVersions="1+", fields=[field("X", "int16")]),
    field("M", "Ms", "1+", nullableVersions="1+", tag=0, taggedVersions="1+", fields=[field("Y", "int16", "1+")]),
    field("O", "Os", "1+", tag=1, taggedVersions="1+", fields=[field("Y", "int16", "1+")]),
)


@pytest.mark.requirement("W-15")
def test_a_positional_struct_has_a_marker_only_where_it_may_be_null(codec_of: CodecOf) -> None:
    assert codec_of(Nested, 0).encode(Nested(n=Nested.Ns(x=7))) == hexed("0007")
    codec = codec_of(Nested, 1)
    assert codec.encode(Nested(n=Nested.Ns(x=7))) == hexed("01 0007 00 00")
    assert codec.encode(Nested(n=None)) == hexed("ff 00")
    for marker in ("ff", "80", "fe"):
        assert codec.decode(hexed(f"{marker} 00")).n is None
    for marker in ("00", "01", "7f"):
        assert codec.decode(hexed(f"{marker} 0007 00 00")).n == Nested.Ns(x=7)


@pytest.mark.requirement("W-16", "W-62")
def test_a_tagged_struct_has_a_marker_only_if_it_may_be_null(codec_of: CodecOf) -> None:
    codec = codec_of(Nested, 1)
    null, given = Nested(n=None, m=None), Nested(n=None, m=Nested.Ms(y=3), o=Nested.Os(y=4))
    assert codec.encode(null) == hexed("ff 01 00 01 00")
    assert codec.encode(given) == hexed("ff 02 00 04 01 0003 00 01 03 0004 00")
    assert codec.decode(codec.encode(null)) == null
    assert codec.decode(codec.encode(given)) == given


@pytest.mark.requirement("S482D-03")
@pytest.mark.requirement("W-17")
def test_a_tagged_null_is_one_zero_byte(codec_of: CodecOf) -> None:
    cls = compiled(*(
        field(name, kind, "1+", nullableVersions="1+", tag=tag, taggedVersions="1+")
        for tag, (name, kind) in enumerate([("A", "string"), ("B", "bytes"), ("C", "[]int32"), ("D", "[]string")])
    ))  # fmt: skip
    obj = cls(a=None, b=None, c=None, d=None)
    assert codec_of(cls, 1).encode(obj) == hexed("04 00 01 00 01 01 00 02 01 00 03 01 00")
    assert codec_of(cls, 1).decode(hexed("04 00 01 00 01 01 00 02 01 00 03 01 00")) == obj


@pytest.mark.requirement("W-18")
@pytest.mark.parametrize("attribute", ["a", "s", "ls", "u", "l"])
def test_writing_null_where_it_may_not_be_names_the_field(codec_of: CodecOf, attribute: str) -> None:
    with pytest.raises(EncodeError, match=f"{attribute}: null where null is not allowed .*version 1") as caught:
        codec_of(Probe, 1).encode(Probe(**{attribute: None}))
    assert caught.value.path == (attribute,)


@pytest.mark.requirement("W-21")
def test_floats_are_compared_as_ieee_754_does(codec_of: CodecOf) -> None:
    cls = compiled(
        field("F", "float64", "1+", tag=0, taggedVersions="1+"),
        field("N", "float64", "1+", tag=1, taggedVersions="1+", default="NaN"),
        field("S", "Fs", "1+", tag=2, taggedVersions="1+", fields=[field("G", "float64", "1+", default="1.5")]),
        field("Old", "float64", "1", default="2.5"),
    )
    codec, nan = codec_of(cls, 2), struct.pack(">d", math.nan).hex()
    always = f"01 08 {nan}"  # NaN is not equal to its own default
    for zero in (0.0, -0.0, 0):
        assert codec.encode(cls(f=zero)) == hexed(f"01 {always}")
    assert codec.encode(cls(f=0.5)) == hexed(f"02 00 08 3fe0000000000000 {always}")
    assert codec.encode(cls(f=math.nan))[:3] == hexed("02 00 08")
    assert codec.encode(cls(s=cls.Fs(g=1.5))) == hexed(f"01 {always}")
    assert codec.encode(cls(s=cls.Fs(g=0))) == hexed(f"02 {always} 02 09 0000000000000000 00")
    with pytest.raises(EncodeError, match="that this version does not have"):
        codec.encode(cls(old=2.0))
    assert math.isnan(codec.decode(hexed("00")).n)


@pytest.mark.requirement("W-21", "S482-12", "S482-39")
@pytest.mark.parametrize(
    "attribute", ["taggedbool", "taggedint8", "taggedint64", "taggedstring", "taggedbytes", "taggeduuid"]
)
def test_a_tagged_field_at_its_default_takes_no_space(codec_of: CodecOf, attribute: str) -> None:
    values = {"taggedbool": True, "taggedint8": -1, "taggedint64": 2**40, "taggedstring": "x", "taggedbytes": b"x"}
    codec, plain = codec_of(Everything, 1), Everything()
    changed = Everything(**{attribute: values.get(attribute, UUID(int=1))})
    assert codec.encode(plain)[-1:] == b"\0"
    assert len(codec.encode(changed)) > len(codec.encode(plain)) + 2
    assert codec.decode(codec.encode(changed)) == changed


@pytest.mark.requirement("W-24", "S482-67")
@pytest.mark.parametrize(
    ("unknown", "where"), [([(9, b""), (7, b"")], 1), ([(9, b""), (9, b"")], 1), ([(4, b""), (5, b""), (5, b"")], 2)]
)
def test_unknown_tags_must_rise(codec_of: CodecOf, unknown: list[tuple[int, bytes]], where: int) -> None:
    with pytest.raises(EncodeError, match="tag") as caught:
        codec_of(Probe, 1).encode(Probe(unknown_tagged_fields=unknown))
    assert caught.value.path == ("unknown_tagged_fields", where)


@pytest.mark.requirement("W-24", "T-12")
@pytest.mark.parametrize("tag", [0, 1, 2, 3])
def test_an_unknown_field_may_not_have_the_tag_of_a_known_one(codec_of: CodecOf, tag: int) -> None:
    """Kafka writes both when nothing stands between them; tag 3 is known in version 3 only."""
    with pytest.raises(EncodeError, match=f"tag {tag} belongs to a field of the definition"):
        codec_of(Probe, 1).encode(Probe(unknown_tagged_fields=[(tag, b"\x01")]))


@pytest.mark.requirement("W-24", "S482-10", "S482-36")
def test_tags_have_31_bits(codec_of: CodecOf) -> None:
    codec = codec_of(Probe, 1)
    largest = Probe(unknown_tagged_fields=[(2**31 - 1, b"x")])
    assert codec.decode(codec.encode(largest)) == largest
    for tag in (2**31, -1, 2**64):
        with pytest.raises(EncodeError, match="31 bits"):
            codec.encode(Probe(unknown_tagged_fields=[(tag, b"")]))
    with pytest.raises(Malformed, match="31 bits"):
        codec.decode(hexed("00 01 01 01 00 Z 01 01 8080808008 00"))


@pytest.mark.requirement("W-24")
@pytest.mark.parametrize(
    "unknown", [None, 5, [5], [(5,)], [(5, "x")], [("5", b"")], [(5, b"", b"")], [(True, b"")], [None]]
)
def test_unknown_fields_are_pairs_of_tag_and_bytes(codec_of: CodecOf, unknown: Any) -> None:
    with pytest.raises(EncodeError) as caught:
        codec_of(Probe, 1).encode(Probe(unknown_tagged_fields=unknown))
    assert caught.value.path[0] == "unknown_tagged_fields"


@pytest.mark.requirement("W-25")
def test_unknown_fields_cannot_be_written_in_a_version_without_tags(codec_of: CodecOf) -> None:
    with pytest.raises(EncodeError, match="that this version does not have") as caught:
        codec_of(Probe, 0).encode(Probe(unknown_tagged_fields=[(9, b"\x01")]))
    assert caught.value.path == ("unknown_tagged_fields",)


@pytest.mark.requirement("SDEF-63")
@pytest.mark.requirement("W-26", "S482-14", "S482-102")
def test_unknown_fields_stay_byte_for_byte_in_every_struct(codec_of: CodecOf) -> None:
    codec = codec_of(FooResponse, 9)
    wire = hexed("02 0007 03 00 02 02 78 05 00 07 02 cafe 01 09 03 000102")
    obj = codec.decode(wire)
    assert obj.foos[0].unknown_tagged_fields == [(5, b""), (7, b"\xca\xfe")]
    assert obj.unknown_tagged_fields == [(9, b"\0\1\2")]
    assert codec.encode(obj) == wire


@pytest.mark.requirement("W-27")
def test_a_tag_of_another_version_is_refused(codec_of: CodecOf) -> None:
    for lenient in (False, True):
        with pytest.raises(Malformed, match="tag 3 is not part of version 1") as caught:
            codec_of(Probe, 1).decode(hexed("00 01 01 01 00 Z 01 01 03 01 05"), lenient=lenient)
        assert caught.value.path == ("t3",)


@pytest.mark.requirement("SDEF-76", "SDEF-105")
@pytest.mark.requirement("W-30", "SDEF-111")
def test_an_ignorable_field_is_dropped_in_versions_without_it(codec_of: CodecOf) -> None:
    obj = Probe(l=5, u=UUID(int=9), r=b"records", isr=[1, 2])
    assert codec_of(Probe, 0).encode(obj) == hexed("00 0000")


@pytest.mark.requirement("W-31", "SDEF-108", "SDEF-109")
@pytest.mark.parametrize(
    ("values", "version", "path"),
    [
        ({"only2": 8}, 1, ("only2",)),
        ({"t0": 5}, 0, ("t0",)),
        ({"t1": None}, 0, ("t1",)),
        ({"t2": Probe.Ns()}, 0, ("t2",)),
        ({"t3": 1}, 2, ("t3",)),
        ({"ls": [Probe.El()]}, 0, ("ls",)),
        ({"by": b"x"}, 0, ("by",)),
        ({"by": None}, 0, ("by",)),
    ],
)
def test_a_value_that_the_version_cannot_hold_is_refused(
    codec_of: CodecOf, values: dict[str, Any], version: int, path: tuple[str, ...]
) -> None:
    with pytest.raises(EncodeError, match=f"version {version}") as caught:
        codec_of(Probe, version).encode(Probe(**values))
    assert caught.value.path == path


@pytest.mark.requirement("W-32")
def test_fields_of_nested_structs_are_held_to_the_version_too(codec_of: CodecOf) -> None:
    obj = FooResponse(foos=[FooResponse.Foo(), FooResponse.Foo(bar="set")])
    with pytest.raises(EncodeError, match="'set'") as caught:
        codec_of(FooResponse, 8).encode(obj)
    assert caught.value.path == ("foos", 1, "bar")
    unknown = FooResponse(foos=[FooResponse.Foo(unknown_tagged_fields=[(5, b"")])])
    with pytest.raises(EncodeError) as caught:
        codec_of(FooResponse, 8).encode(unknown)
    assert caught.value.path == ("foos", 0, "unknown_tagged_fields")


# input behind `00 01 01 00 00 Z 00` (By, R and ISR null) in version 1, outcome: what Kafka does, or our stricter answer
P = "00 01 01 00 00 Z 00"
TAKEN: list[tuple[str, dict[str, Any]]] = [
    ("00", {}),
    ("02 09 01 aa 0a 01 bb", {"unknown_tagged_fields": [(9, b"\xaa"), (10, b"\xbb")]}),
    ("01 00 02 0005", {"t0": 5}),
]


@pytest.mark.requirement("W-28")
@pytest.mark.parametrize(("section", "values"), TAKEN)
def test_tag_sections_that_are_read(codec_of: CodecOf, section: str, values: dict[str, Any]) -> None:
    obj = codec_of(Probe, 1).decode(hexed(f"{P} {section}"))
    assert obj == Probe(by=None, r=None, isr=None, **values)


# W-50: the size of a known field; W-51: order and repetition
LAX: list[tuple[str, dict[str, Any]]] = [
    ("01 00 7f 0005", {"t0": 5}),
    ("01 00 01 0005", {"t0": 5}),
    ("02 00 02 0005 00 02 0006", {"t0": 6}),
    ("02 09 01 aa 08 01 bb", {"unknown_tagged_fields": [(9, b"\xaa"), (8, b"\xbb")]}),
    ("02 09 01 aa 09 01 bb", {"unknown_tagged_fields": [(9, b"\xaa"), (9, b"\xbb")]}),
    ("02 09 01 aa 00 02 0007", {"t0": 7, "unknown_tagged_fields": [(9, b"\xaa")]}),
    ("01 ffffffff0f 01 aa", {"unknown_tagged_fields": [(2**32 - 1, b"\xaa")]}),
    ("02 8080808008 00 ffffffff07 00", {"unknown_tagged_fields": [(2**31, b""), (2**31 - 1, b"")]}),
]


@pytest.mark.requirement("T-14", "W-28", "W-50", "W-51")
@pytest.mark.parametrize(("section", "values"), LAX)
def test_what_kafka_lets_pass_is_an_error_unless_lenient(
    codec_of: CodecOf, section: str, values: dict[str, Any]
) -> None:
    codec, data = codec_of(Probe, 1), hexed(f"{P} {section}")
    with pytest.raises(DecodeError):
        codec.decode(data)
    taken, _ = codec.decode_from(data, 0, lenient=True)
    assert taken == Probe(by=None, r=None, isr=None, **values)


@pytest.mark.requirement("W-49")
@pytest.mark.parametrize("section", ["01 09 05 aa", "01 09 ffffffff0f aa", "01 09", "01", "05 09 00"])
def test_unknown_fields_that_reach_past_the_end_are_refused(codec_of: CodecOf, section: str) -> None:
    for lenient in (False, True):
        with pytest.raises(Truncated):
            codec_of(Probe, 1).decode(hexed(f"{P} {section}"), lenient=lenient)


@pytest.mark.requirement("W-40")
def test_every_cut_names_the_field_that_it_went_through(codec_of: CodecOf) -> None:
    whole = codec_of(Probe, 1).encode(Probe(s="abc", ls=[Probe.El(k=1, v=2.5)], by=b"xyz", isr=[1, 2], t1="tagged"))
    paths = set()
    for cut in range(len(whole)):
        with pytest.raises(Truncated) as caught:
            codec_of(Probe, 1).decode(whole[:cut])
        assert 0 <= caught.value.position <= cut
        paths.add(caught.value.path)
    assert paths == {("a",), ("s",), ("ls",), ("by",), ("r",), ("u",), ("l",), ("isr",), ()}  # (): the tag section


@pytest.mark.requirement("W-42", "W-60")
def test_strings_have_32767_bytes_at_most(codec_of: CodecOf) -> None:
    codec = codec_of(Probe, 1)
    longest = Probe(s="ä" * 16383 + "x")
    assert codec.decode(codec.encode(longest)) == longest
    for cls, version, values in (
        (Probe, 0, {"s": "x" * 32768}),
        (Probe, 1, {"s": "ä" * 16384}),
        (Probe, 1, {"t1": "x" * 32768}),
        (Everything, 1, {"manystring": ["x", "x" * 32768]}),
    ):
        with pytest.raises(EncodeError, match="exceeds the maximum of 32767"):
            codec_of(cls, version).encode(cls(**values))
    too_long = hexed("00 818002") + b"x" * 32768 + hexed("01 01 00 Z 01 00")
    with pytest.raises(Malformed, match="exceeds the maximum of 32767") as caught:
        codec.decode(too_long)
    assert caught.value.path == ("s",)


@pytest.mark.requirement("W-43", "W-44")
@pytest.mark.parametrize(
    ("wire", "path"), [("00 05 78", ("s",)), ("00 01 01 05 78", ("by",)), ("00 01 01 01 7f", ("r",))]
)
def test_lengths_beyond_the_end_name_both_numbers(codec_of: CodecOf, wire: str, path: tuple[str, ...]) -> None:
    with pytest.raises(Truncated, match=r"of \d+ bytes, \d left") as caught:
        codec_of(Probe, 1).decode(hexed(wire))
    assert caught.value.path == path


def elements(n: int, version: int) -> bytes:
    """Return the length of an array of n elements."""
    out = bytearray()
    write_compact_length(out, n) if version else write_length(out, n, 4)
    return bytes(out)


@pytest.mark.requirement("W-45")
@pytest.mark.parametrize("version", [0, 1])
def test_arrays_have_a_million_elements_at_most(codec_of: CodecOf, version: int) -> None:
    """Kafka 4.4.0 reads no more of them, whatever is left of the message."""
    numbers = compiled(field("Numbers", "[]int8"), flexible="1+")
    structs = compiled(field("Items", "[]Item", fields=[field("A", "[]int8")]), flexible="1+")
    end = b"\0" if version else b""  # no tagged fields
    most = elements(1_000_000, version) + b"\7" * 1_000_000
    assert codec_of(numbers, version).decode(most + end) == numbers(numbers=[7] * 1_000_000)
    more = elements(1_000_001, version) + b"\7" * 1_000_001
    wide = elements(1_000_001, version) + (elements(0, version) + end) * 1_000_001
    outer = elements(1, version)
    for cls, data, path, position in (
        (numbers, more, ("numbers",), 0),
        (structs, wide, ("items",), 0),
        (structs, outer + more + end, ("items", 0, "a"), len(outer)),
    ):
        for lenient in (False, True):
            with pytest.raises(Malformed, match="array of 1000001 elements exceeds the maximum of 1000000") as caught:
                codec_of(cls, version).decode(data + end, lenient=lenient)
            assert (caught.value.path, caught.value.position) == (path, position)


@pytest.mark.requirement("W-28", "W-48")
def test_tag_sections_have_ten_thousand_fields_at_most(codec_of: CodecOf) -> None:
    def fields(n: int) -> list[tuple[int, bytes]]:
        return [(tag, b"") for tag in range(100, 100 + n)]

    codec = codec_of(Probe, 1)
    section = len(codec.encode(Probe())) - 1  # the section of no fields is its last byte
    most = Probe(unknown_tagged_fields=fields(10_000))
    assert codec.decode(codec.encode(most)) == most
    more = codec.encode(Probe(unknown_tagged_fields=fields(10_001)))
    for lenient in (False, True):
        with pytest.raises(Malformed, match="10001 tagged fields exceed the maximum of 10000") as caught:
            codec.decode(more, lenient=lenient)
        assert (caught.value.path, caught.value.position) == ((), section)
        with pytest.raises(Truncated, match="4294967295 tagged fields"):
            codec.decode(hexed(f"{P} ff ff ff ff 0f"), lenient=lenient)


@pytest.mark.requirement("W-45")
@pytest.mark.parametrize(
    ("wire", "what"),
    [
        ("00 01 02 0000", "array of 1 element of at least 13 bytes"),
        ("00 01 80808008 00", "array of"),
        ("00 01 01 01 00 Z 05 01", "array of 4 int32 of 4 bytes, 1 left"),
        ("00 01 01 01 00 Z ffffffff07 01", "array of 2147483646 int32"),
    ],
)
def test_counts_are_checked_against_what_is_left_before_anything_is_made(
    codec_of: CodecOf, wire: str, what: str
) -> None:
    with pytest.raises(Truncated, match=what):
        codec_of(Probe, 1).decode(hexed(wire))


@pytest.mark.requirement("W-45")
def test_elements_of_no_bytes_count_as_one(codec_of: CodecOf) -> None:
    """Else four bytes could ask for two thousand million objects; Kafka refuses them too."""
    cls = compiled(field("E", "[]Es", fields=[field("Later", "int8", "1+")]))
    with pytest.raises(Truncated):
        codec_of(cls, 0).decode(hexed("00000002"))
    assert codec_of(cls, 0).decode(hexed("00000000")).e == []


@pytest.mark.requirement("W-45")
def test_elements_of_no_bytes_are_written_only_if_they_can_be_read(codec_of: CodecOf) -> None:
    """Bytes that no reader accepts, Kafka's neither, were written without an error."""
    es = field("E", "[]Es", fields=[field("Later", "int8", "1+")])
    alone, before = compiled(es), compiled(es, field("N", "int16"))
    assert codec_of(alone, 0).encode(alone()) == hexed("00000000")
    assert codec_of(alone, 1).decode(codec_of(alone, 1).encode(alone(e=[alone.Es()] * 3))).e == [alone.Es()] * 3
    for count in range(1, 4):
        made = before(e=[before.Es()] * count, n=5)
        if count <= 2:  # as many bytes follow
            assert codec_of(before, 0).decode(codec_of(before, 0).encode(made)) == made
            continue
        with pytest.raises(EncodeError, match="too many elements that take no bytes") as caught:
            codec_of(before, 0).encode(made)
        assert caught.value.path == ("e",)
    with pytest.raises(EncodeError, match="too many elements that take no bytes"):
        codec_of(alone, 0).encode(alone(e=[alone.Es()]))


@pytest.mark.requirement("T-13", "W-46")
@pytest.mark.parametrize(
    ("text", "at"), [("ff", 2), ("61c328", 3), ("eda080", 2), ("f8888080", 2), ("c0", 2), ("c080", 2)]
)
def test_malformed_utf_8_is_an_error_unless_lenient(codec_of: CodecOf, text: str, at: int) -> None:
    codec, size = codec_of(Probe, 1), len(text) // 2 + 1
    data = hexed(f"00 {size:02x} {text} 01 01 00 Z 01 00")
    with pytest.raises(Malformed, match="UTF-8") as caught:
        codec.decode(data)
    assert (caught.value.path, caught.value.position) == (("s",), at)
    assert "\ufffd" in codec.decode(data, lenient=True).s


@pytest.mark.requirement("T-13")
def test_half_a_surrogate_pair_is_not_written(codec_of: CodecOf) -> None:
    for values, path in (({"s": "a\ud800"}, ("s",)), ({"t1": "\udfff"}, ("t1",))):
        with pytest.raises(EncodeError, match="surrogate") as caught:
            codec_of(Probe, 1).encode(Probe(**values))
        assert caught.value.path == path


@pytest.mark.requirement("W-47")
@pytest.mark.parametrize("kind", ["string", "bytes"])
def test_elements_are_never_null(codec_of: CodecOf, kind: str) -> None:
    cls = compiled(field("F", f"[]{kind}", nullableVersions="0+"))
    for version, null in (
        (0, "00000002 0000 ffff" if kind == "string" else "00000002 00000000 ffffffff"),
        (1, "03 01 00"),
    ):
        with pytest.raises(Malformed, match="null") as caught:
            codec_of(cls, version).decode(hexed(null + " 00" * 6))
        assert caught.value.path == ("f", 1)
        with pytest.raises(EncodeError, match="null") as refused:
            codec_of(cls, version).encode(cls(f=["x" if kind == "string" else b"x", None]))
        assert refused.value.path == ("f", 1)


@pytest.mark.requirement("W-52")
def test_any_bool_but_zero_is_true(codec_of: CodecOf) -> None:
    cls = compiled(field("B", "bool"), field("L", "[]bool"))
    obj = codec_of(cls, 0).decode(hexed("80 00000003 00 01 ff"))
    assert (obj.b, obj.l) == (True, [False, True, True])
    assert codec_of(cls, 0).encode(obj) == hexed("01 00000003 00 01 01")


@pytest.mark.requirement("T-15", "W-62")
@pytest.mark.parametrize("letters", [123, 124, 125, 126, 127, 16378, 16379, 16380, 16381, 16382])
def test_tagged_structs_that_may_be_null_have_the_right_size_at_its_borders(codec_of: CodecOf, letters: int) -> None:
    """Kafka computes one byte too few at 127 and overflows its buffer."""
    codec, obj = codec_of(Probe, 1), Probe(t2=Probe.Ns(p="x" * letters))
    wire = codec.encode(obj)
    value = b"\x01" + (bytes([letters + 1]) if letters < 127 else bytes([letters + 1 & 127 | 128, letters + 1 >> 7]))
    value += b"x" * letters + b"\0"
    size = bytes([len(value)]) if len(value) < 128 else bytes([len(value) & 127 | 128, len(value) >> 7 & 127])
    if len(value) >= 1 << 14:
        size = bytes([len(value) & 127 | 128, len(value) >> 7 & 127 | 128, len(value) >> 14])
    assert wire == hexed("00 01 01 01 00 Z 01 01 02") + size + value
    assert codec.decode(wire) == obj


@pytest.mark.requirement("T-16")
def test_tagged_zero_copy_bytes(codec_of: CodecOf) -> None:
    cls = compiled(field("B", "bytes", "1+", tag=0, taggedVersions="1+", zeroCopy=True))
    assert codec_of(cls, 1).encode(cls(b=b"xy")) == hexed("01 00 03 03 7879")
    assert codec_of(cls, 1).decode(hexed("01 00 03 03 7879")).b == b"xy"


@pytest.mark.requirement("W-61")
@pytest.mark.parametrize("size", [0, 126, 127, 128, 16382, 16383, 70000])
def test_bytes_of_any_size(codec_of: CodecOf, size: int) -> None:
    for version in (0, 1):
        codec = codec_of(Everything, version)
        obj = Everything(onebytes=bytes(size), manybytes=[b"", bytes(size)])
        assert codec.decode(codec.encode(obj)) == obj


@pytest.mark.requirement("S482-55", "S482-56", "V-45", "W-12")
@pytest.mark.parametrize("cls", [Moved, MovedOld])
def test_a_field_may_be_positional_in_one_version_and_tagged_in_another(codec_of: CodecOf, cls: Any) -> None:
    if cls is Moved:
        full = Moved(first="f", plain=1, inner=Moved.In(x=2, y=[3, 4], z="z"), last=5)
        positional = "02 66 00000001 0002 03 00000003 00000004 02 7a 00 05 00"
        tagged = "00000001 05 02 00 10 0002 02 7a 01 00 09 03 00000003 00000004 01 02 02 66"
    else:
        full = MovedOld(plain=1, moving=2**40, last=5)
        positional = "00000001 0000010000000000 05 00"
        tagged = "00000001 05 01 00 08 0000010000000000"
    assert codec_of(cls, 1).encode(full) == hexed(positional)
    assert codec_of(cls, 1).decode(hexed(positional)) == full
    assert codec_of(cls, 2).encode(full) == hexed(tagged)
    assert codec_of(cls, 2).decode(hexed(tagged)) == full
    unknown = full.__copy__()
    unknown.unknown_tagged_fields = [(9, b"kept")]
    for version in (1, 2):
        codec = codec_of(cls, version)
        assert codec.decode(codec.encode(unknown)) == unknown
        for cut in range(len(codec.encode(unknown))):
            with pytest.raises(DecodeError):
                codec.decode(codec.encode(unknown)[:cut])


@pytest.mark.requirement("W-12", "W-27")
def test_a_positional_field_of_a_version_without_tags_keeps_its_place(codec_of: CodecOf) -> None:
    full = MovedOld(plain=1, moving=2**40, last=5)
    assert codec_of(MovedOld, 0).encode(full) == hexed("00000001 0000010000000000 05")
    assert codec_of(MovedOld, 0).decode(hexed("00000001 0000010000000000 05")) == full
    with pytest.raises(EncodeError) as caught:
        codec_of(MovedOld, 0).encode(MovedOld(first="set"))
    assert caught.value.path == ("first",)
    with pytest.raises(Malformed, match="tag 0 is not part of version 1") as refused:
        codec_of(MovedOld, 1).decode(hexed("00000001 0000010000000000 05 01 00 08 0000010000000000"))
    assert refused.value.path == ("moving",)


@pytest.mark.requirement("W-82", "W-83")
def test_the_client_id_keeps_its_two_byte_length_in_header_version_2(codec_of: CodecOf) -> None:
    cls: Any = registry.get("RequestHeader")
    header = cls(request_api_key=3, request_api_version=9, correlation_id=7, client_id="me")
    assert (
        codec_of(cls, 0).encode(cls(request_api_key=7, correlation_id=7, client_id=None)) == hexed("0007 0000 00000007")
        if 0 in cls.VALID_VERSIONS
        else True
    )
    assert codec_of(cls, 1).encode(header) == hexed("0003 0009 00000007 0002 6d65")
    assert codec_of(cls, 2).encode(header) == hexed("0003 0009 00000007 0002 6d65 00")
