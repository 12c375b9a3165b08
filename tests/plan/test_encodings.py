"""Integers in KIP-625's encodings, on both interpreters, in columns and in JSON."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.plan.conftest import CodecOf
from tests.plan.definitions import compiled, field
from tests.wire.test_integer_encoding import CASES

from kwire import plan
from kwire.errors import DecodeError, EncodeError, Malformed, Truncated
from kwire.plan import rows
from kwire.plan.columns import ColumnReader
from kwire.plan.compiler import compile_message
from kwire.plan.nested_columns import NestedReader
from kwire.plan.nested_writing import NestedWriter
from kwire.wire.varint import write_unsigned_varint

NAMES = [f"{form}{bits}" for form in ("fixed", "packed", "upacked") for bits in (16, 32, 64)]
# All encodings of an int64, and behind them a number that shows where they end.
Nine: Any = compiled(*(field(name.title(), "int64", encoding=name) for name in NAMES), field("End", "int8"))
# A version for each of them, tagged too.
ByVersion: Any = compiled(
    field("Number", "int64", encoding={str(i): name for i, name in enumerate(NAMES[:8])} | {"8+": NAMES[8]}),
    field("Tagged", "int64", tag=0, taggedVersions="0+", default=-1,
          encoding={str(i): name for i, name in enumerate(NAMES[:8])} | {"8+": NAMES[8]}),
    valid="0-8", flexible="0+",
)  # fmt: skip
TooSmall: Any = compiled(field("TooSmall", "int64", encoding={"0-1": "fixed32", "2+": "fixed64"}), flexible="none")
Leader: Any = compiled(
    field("LeaderId", {"0-9": "int32", "10+": "unsigned_varint32"}, entityType="brokerId"),  # type: ignore[arg-type]
    valid="0-10", flexible="none",
)  # fmt: skip


@pytest.mark.requirement("I-01", "I-20", "I-24", "I-42", "I-43", "S625-45")
@pytest.mark.parametrize("name", NAMES)
def test_the_worked_bytes_positional_and_tagged(codec_of: CodecOf, name: str) -> None:
    version = NAMES.index(name)
    codec = codec_of(ByVersion, version)
    reader = ColumnReader(ByVersion.SPEC, version, ["number", "tagged"])
    for encoding, value, data in CASES:
        if encoding != name:
            continue
        obj = ByVersion(number=value)
        if data is None:
            with pytest.raises(EncodeError, match=f"{value} does not fit {name}.*version {version}") as caught:
                codec.encode(obj)
            assert caught.value.path == ("number",)
            with pytest.raises(EncodeError, match=f"{value} does not fit {name}") as caught:
                codec.encode(ByVersion(tagged=value))
            assert caught.value.path == ("tagged",)
            for broken in (obj.to_json, lambda v=value, **k: ByVersion.from_json({"number": v}, **k)):
                with pytest.raises(EncodeError, match=f"{value} does not fit {name}"):
                    broken(version=version)
            continue
        assert codec.encode(obj) == data + b"\0"
        assert codec.decode(data + b"\0") == obj
        assert codec.encoded_size(obj) == len(data) + 1
        assert ByVersion.from_json(obj.to_json(version=version), version=version) == obj
        wire = data + b"\0"
        if value != -1:
            obj = ByVersion(number=value, tagged=value)
            wire = data + bytes([1, 0, len(data)]) + data
            assert codec.encode(obj) == wire
            assert codec.decode(wire) == obj
            with pytest.raises(DecodeError) as bad:  # the stated size is that of the encoded value
                codec.decode(data + bytes([1, 0, len(data) + 1]) + data + b"\0")
            assert bad.value.path == ("tagged",)
        assert reader.read_all([wire]).to_pylist() == [{"number": value, "tagged": value}]


@pytest.mark.requirement("S625-17", "S625-44")
def test_the_leader_of_the_kip(codec_of: CodecOf) -> None:
    for leader, fixed, packed in ((1001, "000003e9", "e907"), (-1, "ffffffff", "ffffffff0f")):
        for version, wire in ((0, fixed), (9, fixed), (10, packed)):
            codec = codec_of(Leader, version)
            assert codec.encode(Leader(leader_id=leader)).hex() == wire
            assert codec.decode(bytes.fromhex(wire)) == Leader(leader_id=leader)


@pytest.mark.requirement("I-20", "I-21", "S625-33", "S625-34", "S625-35", "S625-36", "S625-37", "S625-38")
def test_a_field_that_was_too_small(codec_of: CodecOf) -> None:
    for value, version, wire in (
        (7, 0, "00000007"),
        (7, 1, "00000007"),
        (-7, 1, "fffffff9"),  # promoted with its sign
        (7, 2, "0000000000000007"),
        (2**31, 2, "0000000080000000"),
    ):
        codec = codec_of(TooSmall, version)
        assert codec.encode(TooSmall(too_small=value)).hex() == wire
        assert codec.decode(bytes.fromhex(wire)) == TooSmall(too_small=value)
    with pytest.raises(EncodeError, match=r"2147483648 does not fit fixed32: 32 bits, .*version 1") as caught:
        codec_of(TooSmall, 1).encode(TooSmall(too_small=2**31))
    assert caught.value.path == ("too_small",)


@pytest.mark.requirement("I-25", "I-48", "W-10")
def test_neighbours_in_all_encodings_are_cut_and_refused_where_they_should(codec_of: CodecOf) -> None:
    codec = codec_of(Nine, 0)
    values = {name: (-1) ** i * (2**14 + i) for i, name in enumerate(NAMES)}
    obj = Nine(**values, end=5)
    wire = codec.encode(obj)
    assert codec.decode(wire) == obj
    ends = [note.end for note in codec.annotate(wire).notes]
    for cut in range(len(wire)):
        with pytest.raises(Truncated) as caught:
            codec.decode(wire[:cut])
        # In the field whose bytes are missing, at its first byte.
        assert caught.value.path == ([*NAMES, "end"][sum(end <= cut for end in ends)],)
        assert caught.value.position == max([end for end in ends if end <= cut], default=0)
    one = Nine(packed16=1).encode(version=0)
    for long, taken in (("828000", True), ("82808000", True), ("8280808000", True), ("828080808000", False)):
        data = one[:14] + bytes.fromhex(long) + one[15:]
        if taken:
            assert codec.decode(data).packed16 == 1
        else:
            with pytest.raises(Malformed, match="packed16: unsigned varint longer than 5 bytes") as bad:
                codec.decode(data)
            assert (bad.value.path, bad.value.position) == (("packed16",), 14)
    with pytest.raises(Malformed, match="more than 16 bits"):
        codec.decode(one[:14] + bytes.fromhex("808004") + one[15:])


def test_wrong_values_are_refused_with_their_path(codec_of: CodecOf) -> None:
    codec = codec_of(Nine, 0)
    for name in NAMES:
        for value in (None, True, 1.0, "1", b"1", 2**63, 2**64, -(2**63) - 1, 10**5000, object()):
            with pytest.raises(EncodeError) as caught:
                codec.encode(Nine(**{name: value}))
            assert caught.value.path == (name,), value


def test_annotations_name_the_encoding(codec_of: CodecOf) -> None:
    obj = Nine(**dict.fromkeys(NAMES, 300))
    notes = codec_of(Nine, 1).annotate(obj.encode(version=1)).notes
    assert [note.type for note in notes] == [*NAMES[:2], "int64", *NAMES[3:], "int8", "count of tagged fields"]
    assert {note.value for note in notes[:9]} == {300}


def test_runs_of_fixed_numbers_stay_one_row() -> None:
    plain = compiled(*(field(f"F{i}", kind) for i, kind in enumerate(("int16", "int32", "int64") * 2)), flexible="none")
    narrow = compiled(
        field("A", "int64", encoding="fixed16"), field("B", "int32"), field("C", "int32", encoding="packed32"),
        field("D", "int32", encoding="upacked16"), field("E", "int16"), flexible="none",
    )  # fmt: skip
    assert [row[0] for row in compile_message(plain.SPEC, 0).rows if row[0] != rows.ABSENT] == [
        *(rows.STRUCT, rows.FIXED, rows.END)
    ]
    assert [row[0] for row in compile_message(narrow.SPEC, 0).rows if row[0] != rows.ABSENT] == [
        *(rows.STRUCT, rows.FIXED, rows.VARINTS, rows.FIXED, rows.END)
    ]


def test_a_number_before_a_struct_is_a_column_of_its_own_struct() -> None:
    cls = compiled(field("Number", "int32"), field("Inner", "In", fields=[field("N", "varint32")]), flexible="none")
    bodies = [cls(number=7, inner=cls.In(n=-8)).encode(version=0)]
    assert ColumnReader(cls.SPEC, 0, ["number", "inner.n"]).read_all(bodies).to_pylist() == [
        {"number": 7, "inner.n": -8}
    ]


# An array of an int64 in each of the encodings: a version for each, positional and tagged.
RANGES = {str(i): name for i, name in enumerate(NAMES[:8])} | {"8+": NAMES[8]}
Lists: Any = compiled(
    field("Numbers", "[]int64", encoding=RANGES, nullableVersions="0+"),
    field("Tagged", "[]int64", tag=0, taggedVersions="0+", encoding=RANGES),
    valid="0-8", flexible="0+",
)  # fmt: skip


@pytest.mark.requirement("I-46", "I-20", "I-24", "I-42", "I-43")
@pytest.mark.parametrize("name", NAMES)
def test_the_worked_bytes_as_elements_of_arrays(codec_of: CodecOf, name: str) -> None:
    version = NAMES.index(name)
    codec = codec_of(Lists, version)
    fit = [(value, data) for encoding, value, data in CASES if encoding == name and data is not None]
    for cases in ([], *([case] for case in fit), fit):
        values, data = [value for value, _ in cases], b"".join(data for _, data in cases)
        obj = Lists(numbers=values)
        wire = bytes([len(values) + 1]) + data + b"\0"
        assert codec.encode(obj) == wire
        assert codec.decode(wire) == obj
        assert codec.encoded_size(obj) == len(wire)
        assert Lists.from_json(obj.to_json(version=version), version=version) == obj
        rows = ColumnReader(Lists.SPEC, version, ["numbers", "tagged"]).read_all([wire]).to_pylist()
        assert rows == [{"numbers": values, "tagged": []}]
        nested = NestedReader(Lists.SPEC, version).read(pa.array([wire], pa.binary()))
        assert nested.to_pylist() == [{"numbers": values, "tagged": []}]
        assert NestedWriter(Lists.SPEC, version, Lists).write(nested).to_pylist() == [wire]
        if values:
            obj = Lists(tagged=values)
            value = bytes([len(values) + 1]) + data
            size = bytearray()
            write_unsigned_varint(size, len(value))
            wire = b"\1\1\0" + size + value
            assert codec.encode(obj) == wire
            assert codec.decode(wire) == obj
    for encoding, value, data in CASES:
        if encoding == name and data is None:
            for attr in ("numbers", "tagged"):
                with pytest.raises(EncodeError, match=f"{value} does not fit {name}.*version {version}") as caught:
                    codec.encode(Lists(**{attr: [1, value]}))
                assert caught.value.path == (attr, 1)
            for broken in (Lists(numbers=[value]).to_json, lambda v=value, **k: Lists.from_json({"numbers": [v]}, **k)):
                with pytest.raises(EncodeError, match=f"{value} does not fit {name}") as caught:
                    broken(version=version)
                assert caught.value.path == ("numbers", 0)


@pytest.mark.requirement("I-46", "W-17")
@pytest.mark.parametrize("version", range(9))
def test_a_list_of_packed_integers_may_be_null_cut_or_too_long(codec_of: CodecOf, version: int) -> None:
    codec = codec_of(Lists, version)
    assert codec.decode(b"\0\0") == Lists(numbers=None)
    assert codec.encode(Lists(numbers=None)) == b"\0\0"
    assert ColumnReader(Lists.SPEC, version, ["numbers"]).read_all([b"\0\0"]).to_pylist() == [{"numbers": None}]
    wire = codec.encode(Lists(numbers=[1, -300, 300]))
    for cut in range(len(wire)):
        with pytest.raises(DecodeError):
            codec.decode(wire[:cut])
        with pytest.raises(DecodeError):
            ColumnReader(Lists.SPEC, version, ["numbers"]).read_all([wire[:cut]])
    for count in (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff\x07"):
        with pytest.raises(Truncated, match=r"^numbers: array of \d+ ") as caught:
            codec.decode(count + b"\1" * 20)
        assert (caught.value.position, caught.value.path) == (0, ("numbers",))


@pytest.mark.requirement("I-25", "I-46")
def test_the_path_of_a_bad_element_has_its_index(codec_of: CodecOf) -> None:
    with pytest.raises(Malformed, match="packed16") as caught:
        codec_of(Lists, NAMES.index("packed16")).decode(b"\4\2\2" + b"\xff\xff\xff\x0f" + b"\0")
    assert (caught.value.path, caught.value.position) == (("numbers", 2), 3)
    with pytest.raises(EncodeError, match=r"None|null") as refused:
        codec_of(Lists, NAMES.index("packed64")).encode(Lists(numbers=[1, None]))
    assert refused.value.path == ("numbers", 1)
    with pytest.raises(EncodeError, match="'x' is not a valid packed64 value") as refused:
        codec_of(Lists, NAMES.index("packed64")).encode(Lists(numbers=["x"]))


def test_notes_name_the_encoding_of_each_element() -> None:
    version = NAMES.index("packed32")
    wire = Lists(numbers=[1, 300]).encode(version=version)
    notes = plan.codec(Lists.SPEC, version, Lists, kernels=False).annotate(wire).notes
    assert [(note.path, note.type, note.value, note.end - note.start) for note in notes[:3]] == [
        (("numbers",), "count", 2, 1), (("numbers", 0), "packed32", 1, 1), (("numbers", 1), "packed32", 300, 2),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.requirement("I-46")
def test_large_lists_grow_the_room_of_both_kernels(codec_of: CodecOf) -> None:
    """A byte of the wire may become nine of MessagePack, and three of those ten of the wire."""
    for name, value in (("packed64", -1), ("upacked64", -1), ("packed64", 2**63 - 1), ("upacked16", 32767)):
        codec = codec_of(Lists, NAMES.index(name))
        obj = Lists(numbers=[value] * 100_000, tagged=[value] * 50_000)
        wire = codec.encode(obj)
        assert codec.decode(wire) == obj
        assert codec.encode(obj) == wire


@pytest.mark.requirement("I-46")
def test_lists_in_arrays_of_structs_and_in_structs_that_may_be_null() -> None:
    cls = compiled(
        field("Rows", "[]Row", fields=[
            field("Name", "string"), field("A", "[]int64", encoding="packed32"),
            field("B", "[]int16", encoding="upacked16"), field("C", "[]int64", encoding="fixed16"),
        ]),
        field("Maybe", "Inner", nullableVersions="0+", fields=[field("N", "[]varint32"), field("M", "varint32")]),
        field("Last", "int32"),
    )  # fmt: skip
    values = [[], [1], [-(2**15), 2**15 - 1, 0], [7] * 300]
    rows = [cls.Row(name=str(i), a=v, b=v, c=v) for i, v in enumerate(values)]
    objects = [cls(rows=rows, maybe=cls.Inner(n=[5, -6], m=3), last=9), cls(maybe=None, last=-1)]
    bodies = [obj.encode(version=1) for obj in objects]
    table = ColumnReader(cls.SPEC, 1, ["rows[].a", "rows[].b", "rows[].c", "rows[].name", "last"]).read_all(bodies)
    assert [str(kind) for kind in table.schema.types[:3]] == [f"list<element: int{bits}>" for bits in (64, 16, 64)]
    assert table.select([0, 1, 2]).to_pylist() == [{f"rows[].{name}": value for name in "abc"} for value in values]
    maybe = ColumnReader(cls.SPEC, 1, ["maybe.n", "maybe.m"]).read_all(bodies).to_pylist()
    assert maybe == [{"maybe.n": [5, -6], "maybe.m": 3}, {"maybe.n": None, "maybe.m": None}]
    nested = NestedReader(cls.SPEC, 1).read(pa.array(bodies, pa.binary()))
    nested.validate(full=True)
    assert nested[0].as_py()["rows"][2] == {"name": "2", "a": values[2], "b": values[2], "c": values[2]}
    assert nested[1].as_py() == {"rows": [], "maybe": None, "last": -1}
    assert NestedWriter(cls.SPEC, 1, cls).write(nested).to_pylist() == bodies


def test_arrays_of_numbers_without_encodings_keep_their_rows() -> None:
    plain = compiled(*(field(f"F{i}", f"[]{kind}") for i, kind in enumerate(("int16", "int32", "int64"))))
    own = compiled(
        field("F0", "[]int16", encoding="fixed16"), field("F1", {"0+": "[]int32"}), field("F2", "[]int64"),  # type: ignore[arg-type]
    )  # fmt: skip
    assert compile_message(plain.SPEC, 1).rows == compile_message(own.SPEC, 1).rows
    assert not {row[0] for row in compile_message(plain.SPEC, 1).rows} & {rows.VARINTS, rows.VARLIST}


def test_more_packed_numbers_than_one_row_holds(codec_of: CodecOf) -> None:
    many = compiled(*(field(f"F{i}", "int64", encoding="packed64") for i in range(40)), flexible="none")
    for value in (0, -(2**63), 2**63 - 1):
        obj = many(**{f"f{i}": value for i in range(40)})
        codec = codec_of(many, 0)
        assert codec.decode(codec.encode(obj)) == obj


def test_columns_have_the_type_of_the_field_whatever_the_encoding() -> None:
    cls = compiled(
        field("Rows", "[]Row", fields=[
            *(field(f"{kind}{bits}", kind, encoding=f"{form}{bits}")
              for kind, widths in (("int16", (16,)), ("int32", (16, 32)), ("int64", (16, 32, 64)))
              for bits in widths for form in ("upacked",)),
            field("Name", "string"),
        ]),
        field("Maybe", "Inner", nullableVersions="0+", fields=[field("N", "int64", encoding="packed32")]),
    )  # fmt: skip
    names = [f"int{wide}{narrow}" for wide, narrow in ((16, 16), (32, 16), (32, 32), (64, 16), (64, 32), (64, 64))]
    made = [cls.Row(**dict.fromkeys(names, value), name="x" * value) for value in (0, 1, 300)]
    bodies = [cls(rows=made, maybe=maybe).encode(version=1) for maybe in (cls.Inner(n=-5), None)]
    table = ColumnReader(cls.SPEC, 1, [*(f"rows[].{name}" for name in names), "rows[].name"]).read_all(bodies)
    assert [str(kind) for kind in table.schema.types[:-1]] == [f"int{w}" for w in (16, 32, 32, 64, 64, 64)]
    assert table.column(0).to_pylist() == [0, 1, 300] * 2
    assert table.select(range(6)).to_pylist()[2] == {f"rows[].{name}": 300 for name in names}
    assert ColumnReader(cls.SPEC, 1, ["maybe.n"]).read_all(bodies).column(0).to_pylist() == [-5, None]
    with pytest.raises(DecodeError, match="message 1") as caught:
        ColumnReader(cls.SPEC, 1, ["maybe.n"]).read_all([bodies[0], bodies[0][:-3] + b"\xff" * 6])
    assert caught.value.path == ("maybe", "n")
