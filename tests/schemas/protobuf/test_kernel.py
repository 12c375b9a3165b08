"""The kernel of Protobuf: random schemas compared with google.protobuf and plain Python, and odd but legal messages."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError as GoogleError
from tests.compiled import needs_compiled_code
from tests.fuzz.protobuf import compare, run
from tests.schemas.protobuf.drawing import Drawing, Writer, varint
from tests.schemas.protobuf.test_protobuf import expected, fill, text

from kwire import native
from kwire.errors import Malformed
from kwire.schemas.protobuf import Decoder, Encoder, parse
from kwire.schemas.protobuf.columns import _plain
from kwire.schemas.protobuf.encode_plan import compile_encode_plan
from kwire.schemas.protobuf.reading import MAX_DEPTH, read_message
from kwire.schemas.protobuf.types import build_node
from kwire.schemas.protobuf.writing import write_message
from kwire.schemas.schema_codec import Decoded
from kwire.wire.protobuf_rows import MAX_ONEOFS, PUT


@pytest.fixture(params=["kernel", "plain"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(native, "LEVEL", None)
    elif native.LEVEL is None:
        pytest.skip("without compiled code")


def decode(source: str, *values: bytes | str | None, columns: list[str] | None = None) -> Decoded:
    """Decode bytes, or hexadecimal text, as the first message of a file."""
    data = [bytes.fromhex(each) if isinstance(each, str) else each for each in values]
    decoder = Decoder(parse(source).messages[0], columns)
    found = decoder.decode(pa.array(data, pa.binary()), np.zeros(len(data), np.int64), np.zeros(len(data), np.int32))
    found.array.validate(full=True)
    return found


def one(source: str, value: bytes | str, columns: list[str] | None = None) -> Any:
    """Return the one value, of which nothing is wrong."""
    found = decode(source, value, columns=columns)
    assert not found.errors
    return found.array[0].as_py()


def fault(source: str, value: bytes | str) -> str:
    """Return what is wrong with a value; its neighbours are not touched."""
    found = decode(source, b"", value, b"")
    assert found.array.is_null().to_pylist() == [False, True, False]
    (error,) = found.errors
    assert error.row == 1
    return f"{error.what}, at byte {error.position}"


PROTO3, PROTO2 = 'syntax = "proto3"; ', 'syntax = "proto2"; '


# Random schemas


def rows_of(decoded: Decoded) -> list[Any]:
    """Return rows as google.protobuf's are compared: maps as dicts, times as microseconds."""
    found: list[Any] = decoded.array.cast(_plain(decoded.array.type)).to_pylist(maps_as_pydicts="strict")
    return found


def check_with_google(seed: int, schemas: int) -> tuple[int, int]:
    """Compare values of drawn schemas with google.protobuf; returns how many both read, and how many both refused."""
    source = random.Random(seed)
    read = refused = 0
    for _ in range(schemas):
        drawing = Drawing(source, maps=source.random() < 0.3, recursion=False)
        message, theirs, writer = drawing.ours(), drawing.theirs(), Writer(source)
        values = [writer.message(theirs.DESCRIPTOR) for _ in range(6)]
        for _ in range(3):  # what their serializer writes, one after the other: messages are merged
            made = theirs(), theirs()
            for each in made:
                for field in each.DESCRIPTOR.fields:
                    if source.random() < 0.5:
                        fill(each, field, source, 3)
            values.append(b"".join(each.SerializePartialToString() for each in made))
        values += [value[: source.randrange(len(value) + 1)] for value in values]
        decoded = Decoder(message).decode(
            pa.array(values, pa.binary()), np.zeros(len(values), np.int64), np.zeros(len(values), np.int32)
        )
        bad, node = {error.row: error for error in decoded.errors}, build_node(message)
        for row, (value, found) in enumerate(zip(values, rows_of(decoded), strict=True)):
            try:
                wanted = expected(theirs.FromString(value), node)
            except (GoogleError, UnicodeDecodeError):
                assert row in bad, (drawing.file, value.hex())
                refused += 1
                continue
            if row in bad:
                assert "out of range" in bad[row].what, (drawing.file, value.hex(), bad[row])
                continue
            assert text(found) == text(wanted), (drawing.file, value.hex())
            read += 1
    return read, refused


@pytest.mark.slow
def test_values_of_random_schemas_are_those_of_google_protobuf() -> None:
    read, refused = check_with_google(5, 100)
    assert read > 1000
    assert refused > 100


@pytest.mark.slow
def test_values_of_many_random_schemas_are_those_of_google_protobuf() -> None:
    check_with_google(6, 5000)


@pytest.mark.slow
@needs_compiled_code
def test_mutated_values_through_the_kernel_and_plain_python() -> None:
    run(5000, seed=11)


@needs_compiled_code
@pytest.mark.slow
def test_many_mutated_values_through_the_kernel_and_plain_python() -> None:
    run(500_000, seed=13)


@needs_compiled_code
def test_nothing_outside_of_buffers_is_touched() -> None:
    code = "from tests.fuzz.protobuf import run; run(800, 12, True)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@needs_compiled_code
def test_a_value_cut_at_every_place_and_with_any_byte_changed() -> None:
    source = random.Random(7)
    for _ in range(15):
        drawing = Drawing(source)
        decoder, kind = Decoder(drawing.ours()), drawing.theirs().DESCRIPTOR
        data = Writer(source).message(kind)[:60]
        values = [data[:cut] for cut in range(len(data))]
        for place in range(len(data)):
            values += [data[:place] + bytes([byte]) + data[place + 1 :] for byte in (0, 1, 0x7F, 0x80, data[place] ^ 1)]
        compare(decoder, values)


# Odd but legal


@pytest.mark.usefixtures("path")
def test_the_last_of_several_values_counts() -> None:
    source = PROTO3 + "message M { int32 a = 1; string b = 2; bool c = 3; uint64 d = 4; }"
    assert one(source, "0801 120161 1801 2001 0802 1203626363 1800 2002") == {"a": 2, "b": "bcc", "c": False, "d": 2}


@pytest.mark.usefixtures("path")
def test_occurrences_of_a_message_are_merged() -> None:
    source = PROTO3 + "message M { A a = 1; } message A { int32 x = 1; repeated int32 l = 2; A2 s = 3; string t = 4; }"
    source += " message A2 { int32 y = 1; int32 z = 2; }"
    value = "0a06 0801 12020102" + "0a0b 120103 1a020807 22027575" + "0a04 1a021009"
    found = {"x": 1, "l": [1, 2, 3], "s": {"y": 7, "z": 9}, "t": "uu"}
    assert one(source, value) == {"a": found}


@pytest.mark.usefixtures("path")
def test_occurrences_of_times_and_boxed_values_are_merged() -> None:
    source = PROTO3 + 'import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";'
    source += "message M { google.protobuf.Timestamp t = 1; google.protobuf.Int32Value v = 2; N n = 3; }"
    source += "message N { google.protobuf.Timestamp t = 1; google.protobuf.Int32Value v = 2; }"
    merged = "0a020805 0a0310d80f 12020803 1200"
    (first, second) = (
        decode(source, merged, "1a00 1a06 0a0208051200")
        .array.cast(
            pa.struct([("t", pa.int64()), ("v", pa.int32()), ("n", pa.struct([("t", pa.int64()), ("v", pa.int32())]))])
        )
        .to_pylist()
    )
    assert first == {"t": 5_000_002, "v": 3, "n": None}
    assert second == {"t": None, "v": None, "n": {"t": 5_000_000, "v": 0}}  # absent in the first n


@pytest.mark.usefixtures("path")
def test_parts_of_a_merged_message_are_messages() -> None:
    source = PROTO3 + "message M { A a = 1; } message A { bytes x = 1; }"
    assert fault(source, "0a010a 0a010a") == "a.x: a varint continues after the end, at byte 3"  # together they are one


@pytest.mark.usefixtures("path")
def test_the_last_member_of_a_oneof_counts_also_if_it_is_not_asked_for() -> None:
    source = PROTO3 + "message M { oneof o { int32 a = 1; A b = 2; string c = 3; } } message A { int32 x = 1; }"
    assert one(source, "0801 12020805 1a0161") == {"a": None, "b": None, "c": "a"}
    assert one(source, "12020805 0801 12020000"[:-4] + "1000") == {"a": None, "b": {"x": 0}, "c": None}
    assert one(source, "0801 1a0161", ["a"]) == {"a": None}
    assert one(source, "1a0161 0801", ["a"]) == {"a": 1}
    assert one(source, "0801 1800", ["a"]) == {"a": 1}  # c with another wire type is an unknown field


@pytest.mark.usefixtures("path")
def test_a_bad_member_of_a_oneof_is_a_fault_though_another_follows() -> None:
    source = PROTO3 + "message M { oneof o { A a = 1; int32 b = 2; } } message A { int32 x = 1; }"
    assert fault(source, "0a0108 1001").startswith("a.x: a varint continues")


@pytest.mark.usefixtures("path")
def test_numbers_are_read_packed_or_not_whatever_their_declaration() -> None:
    for packed in ("true", "false"):
        source = PROTO3 + f"message M {{ repeated sint32 a = 1 [packed = {packed}]; repeated fixed32 b = 2; }}"
        assert one(source, "0a020102 0803 0a00 1501000000 1208 0200000003000000") == {"a": [-1, 1, -2], "b": [1, 2, 3]}
    assert fault(PROTO3 + "message M { repeated fixed32 b = 1; }", "0a0500000000 01").startswith("b: 4 bytes expected")


@pytest.mark.usefixtures("path")
def test_varints_keep_the_low_bits_of_their_type() -> None:
    source = PROTO3 + "message M { int32 a = 1; uint32 b = 2; bool c = 3; sint32 d = 4; E e = 5; } enum E { Z = 0; }"
    minus = "ff" * 9 + "01"
    value = f"08{minus} 10{minus} 18{'80' * 8}01 20{minus} 28{minus}"
    assert one(source, value) == {"a": -1, "b": 2**32 - 1, "c": True, "d": -(2**31), "e": "-1"}
    assert one(source, f"08{'ff' * 9}7f 8800 05"[:22] + "8880800005") == {"a": 5, "b": 0, "c": False, "d": 0, "e": "Z"}


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("08", "a: a varint continues after the end, at byte 1"),
        ("08" + "80" * 10 + "00", "a: a varint of more than 10 bytes, at byte 1"),
        ("888080808000 01", "a varint of more than 5 bytes, at byte 0"),
        ("0001", "not a field's tag: number 0, wire type 0, at byte 0"),
        ("0e", "not a field's tag: number 1, wire type 6, at byte 0"),
        ("ffffffff7f", "not a field's tag: number"),
        ("0c", "the end of a group without its start, number 1, at byte 1"),
        ("9b0608019c07", "the end of group 115 inside of group 99"),
        ("1202ff", "b: 2 bytes expected, 1 remaining"),
        ("12ffffffffffffffffff01", "b: 18446744073709551615 bytes expected, 0 remaining"),
        ("1202c328", "b: not UTF-8, at byte 2"),
        ("1203eda080", "b: not UTF-8"),
        ("3a0108", "c.x: a varint continues after the end"),
        ("fd0f0000", "4 bytes expected, 2 remaining"),
    ],
)
def test_faults_have_a_path_and_a_position(value: str, message: str) -> None:
    source = PROTO3 + "message M { int32 a = 1; string b = 2; A c = 7; } message A { int32 x = 1; }"
    assert fault(source, value).startswith(message)


@pytest.mark.usefixtures("path")
def test_groups_are_read_merged_and_skipped() -> None:
    source = PROTO2 + "message M { optional group G = 1 { optional int32 x = 1; optional string y = 2; } }"
    assert one(source, "0b 0801 0c 0b 120161 0c") == {"g": {"x": 1, "y": "a"}}
    assert one(source, "0b 0801 1b 0b 0c 1c 0c 1b 0801 1c") == {"g": {"x": 1, "y": None}}
    assert one(source, "0a020801") == {"g": None}  # as a message with a length
    assert one(source, "9b06" * 100 + "9c06" * 100) == {"g": None}
    assert "more than 100 deep" in fault(source, "9b06" * 101 + "9c06" * 101)


@pytest.mark.usefixtures("path")
def test_proto2_fields_are_null_if_absent() -> None:
    source = PROTO2 + "message M { optional int32 a = 1 [default = 5]; required bool b = 2; optional E c = 3; }"
    assert one(source + "enum E { X = 4; }", "") == {"a": None, "b": None, "c": None}


@pytest.mark.usefixtures("path")
def test_maps_have_each_key_once_with_its_last_value() -> None:
    source = PROTO3 + "message M { map<string, A> m = 1; map<uint64, E> e = 2; }"
    source += " message A { int32 x = 1; bytes y = 2; } enum E { NONE = 0; SOME = 1; }"
    a = "0a07 0a016b 12020801", "0a07 0a016c 12020802", "0a03 0a016b", "0a00"
    value = "".join(a[:2]) + "12040805 1001 1200"
    key = {"x": 0, "y": b""}
    assert one(source, value) == {
        "m": [("k", {"x": 1, "y": b""}), ("l", {"x": 2, "y": b""})],
        "e": [(5, "SOME"), (0, "NONE")],
    }
    assert one(source, "".join(a[:3]))["m"] == [("k", key), ("l", {"x": 2, "y": b""})]
    assert one(source, a[3] + a[0] + a[3])["m"] == [("", key), ("k", {"x": 1, "y": b""})]
    swapped = "0a0b 12020801 0a016b 12021000"
    assert one(source, swapped)["m"] == [("k", {"x": 1, "y": b""})]


def entry(key: bytes, value: int) -> bytes:
    body = key + b"\x10" + varint(value)
    return b"\x0a" + varint(len(body)) + body


@pytest.mark.usefixtures("path")
def test_large_maps_and_keys_of_every_type() -> None:
    keys = [b"\x08" + varint(i) for i in range(3000)]
    for kind in ("uint64", "int32", "sint64"):
        source = PROTO3 + f"message M {{ map<{kind}, int32> m = 1; string s = 2; }}"
        data = b"".join(entry(key, i) for i, key in enumerate(keys)) + b"\x12\1x"
        rows = decode(source, b"", data, data + entry(keys[7], 5), data).array.to_pylist()
        assert [len(row["m"]) for row in rows] == [0, 3000, 3000, 3000]
        assert [row["m"][7][1] for row in rows[1:]] == [7, 5, 7]
        assert [row["s"] for row in rows] == ["", "x", "x", "x"]
    source = PROTO3 + "message M { map<string, int32> m = 1; }"
    data = b"".join(entry(b"\x0a" + varint(i % 40) + b"k" * (i % 40), i) for i in range(80))
    assert one(source, data)["m"] == [("k" * i, i + 40) for i in range(40)]
    source = PROTO3 + "message M { map<bool, int32> m = 1; }"
    assert one(source, entry(b"\x08\1", 1) + entry(b"", 2) + entry(b"\x08\5", 3))["m"] == [(True, 3), (False, 2)]


@pytest.mark.usefixtures("path")
def test_a_message_inside_of_itself_is_its_bytes() -> None:
    source = PROTO3 + "message T { int32 v = 1; T left = 2; repeated T all = 3; map<int32, T> m = 4; }"
    found = one(source, "1202 0801 1202 ffff 1a01aa 1a00 2202 0805")
    assert found == {"v": 0, "left": b"\x08\x01\xff\xff", "all": [b"\xaa", b""], "m": [(5, b"")]}
    assert one(source, "1202 0801", ["left"]) == {"left": b"\x08\x01"}  # as it is with all columns


@pytest.mark.usefixtures("path")
def test_times_out_of_range_are_faults() -> None:
    source = PROTO3 + 'import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp t = 1; }'
    assert fault(source, "0a0a08" + "ff" * 8 + "7f") == "t: out of range, at byte 2"
    assert one(source, "0a00")["t"].timestamp() == 0


@pytest.mark.sampled
@pytest.mark.usefixtures("path")
def test_large_field_numbers_and_wide_messages() -> None:
    numbers = [1, 255, 256, 300, 19999, 2**29 - 1]
    source = PROTO3 + f"message M {{ {' '.join(f'int32 f{i} = {n};' for i, n in enumerate(numbers))} }}"
    value = b"".join(varint(n << 3) + varint(n % 1000) for n in reversed(numbers)) + varint(4000 << 3) + b"\1"
    assert list(one(source, value).values()) == [n % 1000 for n in numbers]
    wide = PROTO3 + f"message W {{ {' '.join(f'int64 f{i} = {i + 1};' for i in range(1000))} }}"
    value = b"".join(varint(i + 1 << 3) + varint(i) for i in range(1000))
    assert list(one(wide, value).values()) == list(range(1000))
    assert one(wide, value, ["f999", "f3"]) == {"f999": 999, "f3": 3}


@pytest.mark.usefixtures("path")
def test_values_may_be_null_sliced_large_or_of_no_writer() -> None:
    message = parse(PROTO3 + "message M { int32 a = 1; }").messages[0]
    values = pa.array([b"x", b"id\x08\1", None, b"\x08\2", b"", b"\x08\3"], pa.large_binary())[1:]
    decoded = Decoder(message).decode(values, np.array([2, 0, 0, 9, 0]), np.array([0, 0, 0, 0, -1], np.int32))
    assert decoded.array.to_pylist() == [{"a": 1}, None, {"a": 2}, {"a": 0}, None]
    empty = Decoder(message).decode(values[:0], np.zeros(0, np.int64), np.zeros(0, np.int32))
    assert (len(empty.array), empty.errors) == (0, [])


@needs_compiled_code
def test_rows_that_plain_python_reads_are_in_their_places() -> None:
    source = PROTO3 + "message M { map<int32, int32> m = 1; int32 a = 2; }"
    twice = entry(b"\x08\1", 1) + entry(b"\x08\1", 2)
    found = decode(source, *([b"\x10\1", twice, b"\x10", None, twice + b"\x10\5"] * 100))
    assert found.array.to_pylist()[:5] == [
        {"m": [], "a": 1},
        {"m": [(1, 2)], "a": 0},
        None,
        None,
        {"m": [(1, 2)], "a": 5},
    ]
    assert found.array.to_pylist() == found.array.to_pylist()[:5] * 100
    assert [error.row for error in found.errors] == list(range(2, 500, 5))


def test_oneofs_beyond_those_that_a_kernel_counts_share_a_number() -> None:
    """It has a bit for each; rows with two members of one number are encoded in Python."""
    oneofs = "".join(f" oneof o{n} {{ int32 a{n} = {2 * n + 1}; int32 b{n} = {2 * n + 2}; }}" for n in range(66))
    node = build_node(parse(f"{PROTO3} message M {{{oneofs} }}").messages[0])
    plan = compile_encode_plan(node, node.type)
    numbers = [row[PUT.index("PUT_ONEOF")] for row in plan.rows]
    assert sorted(set(numbers)) == [-1, *range(MAX_ONEOFS)]
    value = {f"a{n}": n + 1 for n in range(66)} | {f"b{n}": None for n in range(66)}
    values = pa.array([value], node.type)
    encoder = Encoder(parse(f"{PROTO3} message M {{{oneofs} }}").messages[0], node.type)
    (encoded,) = encoder.encode(values, b"").array.to_pylist()
    assert encoded == write_message(node, value)


def test_groups_inside_of_a_message_count_its_depth() -> None:
    node = build_node(parse(PROTO3 + "message M { A a = 1; } message A { int32 x = 1; }").messages[0])

    def is_read(groups: int, *, inside: bool) -> bool:
        data = b"\x13" * groups + b"\x14" * groups  # of number 2, which no message knows
        try:
            read_message(node, b"\x0a" + varint(len(data)) + data if inside else data)
        except Malformed:
            return False
        return True

    assert [is_read(MAX_DEPTH + more, inside=False) for more in (0, 1)] == [True, False]
    assert [is_read(MAX_DEPTH - 1 + more, inside=True) for more in (0, 1)] == [True, False]
