"""Protobuf values, compared with google.protobuf on random and on mutated bytes.

tests/data/protobuf/order.desc is what protoc 35.1 compiles order.proto to, so names, presence and packing are compared
with the compiler too.
"""

from __future__ import annotations

import base64
import datetime
import math
import random
import time
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory
from google.protobuf.message import DecodeError as GoogleError

from kwire.errors import DecodeError, EncodeError, InvalidSchema
from kwire.schemas.protobuf import Decoder, Encoder, File, Message, parse
from kwire.schemas.protobuf.descriptors import MAX_DEPTH
from kwire.schemas.protobuf.model import WRAPPERS, Enum
from kwire.schemas.protobuf.parsing import MAX_NESTED_BRACES
from kwire.schemas.protobuf.reading import read_message
from kwire.schemas.protobuf.source_text import simplify
from kwire.schemas.protobuf.types import Node, build_node

DATA = Path(__file__).parents[2] / "data" / "protobuf"
TEXTS = {"common.proto": (DATA / "common.proto").read_text("utf-8")}
CLOSED = ("UNKNOWN", "EUR", "USD", "OLD")
DIFFERENT = (b"\xb2\x04", b"\x92\x03", b"\x9a\x03", b"\xa2\x03")
"""Tags of `tree`, whose children stay encoded here, and of maps: google.protobuf's C parser takes entries with unknown
fields out of a map, and Java's does not."""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def google_message(name: str) -> Any:
    """Return google.protobuf's class of a message of order.proto."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString((DATA / "order.desc").read_bytes()).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


GOOGLE = google_message("shop.Order")


@pytest.fixture(scope="module")
def order() -> File:
    return parse((DATA / "order.proto").read_text("utf-8"), TEXTS)


@pytest.fixture(scope="module")
def node(order: File) -> Node:
    return build_node(message_named(order, "shop.Order"))


def message_named(file: File, name: str) -> Message:
    found = file.types[name]
    assert isinstance(found, Message)
    return found


def decode(message: Message, *values: bytes | None) -> Any:
    return Decoder(message).decode(
        pa.array(values, pa.binary()), np.zeros(len(values), np.int64), np.zeros(len(values), np.int32)
    )


def filled(rng: random.Random, without: tuple[str, ...] = ("tree",)) -> Any:
    """Return a message with random fields."""
    made = GOOGLE()
    for field in made.DESCRIPTOR.fields:
        if rng.random() < 0.4 and field.name not in without:
            fill(made, field, rng)
    return made


def fill(made: Any, field: Any, rng: random.Random, depth: int = 0) -> None:
    value = getattr(made, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        for _ in range(rng.randrange(3)):
            key, item = field.message_type.fields
            if item.message_type is not None:
                fill_message(value[scalar(key, rng)], rng, depth + 1)
            else:
                value[scalar(key, rng)] = scalar(item, rng)
    elif field.is_repeated:
        for _ in range(rng.randrange(4)):
            if field.message_type is not None:
                fill_message(value.add(), rng, depth + 1)
            else:
                value.append(scalar(field, rng))
    elif field.message_type is not None:
        value.SetInParent()
        fill_message(value, rng, depth + 1)
    else:
        setattr(made, field.name, scalar(field, rng))


def fill_message(made: Any, rng: random.Random, depth: int) -> None:
    for field in made.DESCRIPTOR.fields:
        required = not field.is_repeated and field.is_required
        if required or (depth < 4 and rng.random() < 0.6):
            fill(made, field, rng, depth)


def scalar(field: Any, rng: random.Random) -> Any:
    kind = field.type
    if field.enum_type is not None:
        known = [each.number for each in field.enum_type.values]
        return rng.choice(known if field.enum_type.is_closed else [*known, 5])
    if kind in (1, 2):
        return rng.choice([0.0, -0.0, 1.5, math.inf, -2.25])
    if kind == 8:
        return rng.random() < 0.5
    if kind == 9:
        return rng.choice(["", "a", "é中😀", "x" * 200])
    if kind == 12:
        return rng.randbytes(rng.choice([0, 1, 20]))
    if field.containing_type.full_name == "google.protobuf.Timestamp" or "Duration" in field.containing_type.full_name:
        return rng.randrange(1_000_000_000)
    bits = 64 if kind in (3, 4, 6, 16, 18) else 32
    unsigned = kind in (4, 6, 7, 13)
    least, greatest = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return rng.choice([0, 1, least, greatest, rng.randint(least, greatest)])


def expected(made: Any, node: Node) -> Any:
    """Return what google.protobuf has read, in the form of read_message."""
    if node.raw:
        return made.SerializeToString()
    name = made.DESCRIPTOR.full_name
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        rounds_up = name.endswith("Duration") and made.nanos < 0  # towards zero, as ToMicroseconds of valid ones
        return made.seconds * 1_000_000 + (-(-made.nanos // 1000) if rounds_up else made.nanos // 1000)
    if name in WRAPPERS:
        return made.value
    found = {}
    for ours in node.message.fields:
        field = made.DESCRIPTOR.fields_by_number[ours.number]
        value = getattr(made, field.name)
        inner = node.members.get(ours.number)
        if ours.shape == "map":
            assert inner is not None
            item = inner.message.fields[1]
            found[ours.name] = {
                key: expected(value[key], inner.members[2]) if item.message else one(value[key], item) for key in value
            }
        elif ours.shape == "list":
            found[ours.name] = [expected(each, inner) if inner else one(each, ours) for each in value]
        elif field.has_presence and not made.HasField(field.name):
            found[ours.name] = None
        else:
            found[ours.name] = expected(value, inner) if inner else one(value, ours)
    return found


def one(value: Any, field: Any) -> Any:
    if field.enum is not None:
        return field.enum.names.get(value, str(value))
    return value


def comparable(value: Any, node: Node) -> Any:
    """Return what read_message returned, with maps as dicts."""
    if not isinstance(value, dict):
        return value
    found = {}
    for field in node.message.fields:
        each, inner = value[field.name], node.members.get(field.number)
        if field.shape == "map":
            assert inner is not None
            item = inner.members.get(2)
            found[field.name] = {key: comparable(one_, item) if item else one_ for key, one_ in each}
        elif field.shape == "list":
            found[field.name] = [comparable(one_, inner) if inner else one_ for one_ in each]
        else:
            unknown = field.name == "currency" and each not in (None, *CLOSED)  # google.protobuf hides those of proto2
            found[field.name] = comparable(each, inner) if inner and each is not None else None if unknown else each
    return found


def text(value: Any) -> str:
    """Return a text that tells values apart as their bytes do: by the sign of a zero, but not by the order of a map."""
    if isinstance(value, dict):
        return repr(sorted((text(key), text(each)) for key, each in value.items()))
    if isinstance(value, list):
        return repr([text(each) for each in value])
    return repr(int(value) if isinstance(value, Decimal) else value)


def test_random_messages_are_read_as_google_protobuf_reads_them(node: Node) -> None:
    rng = random.Random(7)
    for _ in range(300):
        made = filled(rng)
        data = made.SerializeToString()
        assert text(comparable(read_message(node, data), node)) == text(expected(made, node))


def test_mutated_messages_are_read_or_refused_as_google_protobuf_does(node: Node) -> None:
    rng = random.Random(11)
    read = refused = 0
    for _ in range(3000):
        data = mutated(filled(rng, ("tree", "counts", "by_id", "by_flag")).SerializeToString(), rng)
        if any(tag in data for tag in DIFFERENT):
            with suppress(DecodeError):
                read_message(node, data)
            continue
        theirs = GOOGLE()
        try:
            theirs.MergeFromString(data)
            wanted: Any = expected(theirs, node)
        except (GoogleError, UnicodeDecodeError):
            wanted = None
        try:
            found: Any = comparable(read_message(node, data), node)
        except DecodeError:
            found = None
        assert text(found) == text(wanted), data.hex()
        read, refused = read + (wanted is not None), refused + (wanted is None)
    assert min(read, refused) > 300


def mutated(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 3)):
        place = rng.randrange(len(changed) + 1)
        match rng.randrange(4):
            case 0 if changed:
                changed[place % len(changed)] = rng.randrange(256)
            case 1:
                del changed[place:]
            case 2:
                changed[place:place] = rng.randbytes(rng.randrange(1, 4))
            case 3:
                del changed[place : place + rng.randrange(1, 4)]
    return bytes(changed)


def test_encoded_messages_are_read_by_google_protobuf(node: Node, order: File) -> None:
    rng = random.Random(3)
    message = message_named(order, "shop.Order")
    made = [filled(rng) for _ in range(200)]
    decoded = decode(message, *(each.SerializeToString() for each in made), None).array
    encoded = Encoder(message, decoded.type).encode(decoded, b"")
    assert not encoded.errors
    *values, null = encoded.array.to_pylist()
    assert null is None
    for theirs, data in zip(made, values, strict=True):
        assert text(expected(GOOGLE.FromString(data), node)) == text(expected(theirs, node))


def test_a_message_inside_of_itself_stays_encoded(order: File) -> None:
    theirs = google_message("shop.Tree")(name="a")
    theirs.children.add(name="b").children.add(name="c")
    theirs.left.name = "d"
    tree = message_named(order, "shop.Tree")
    decoded = decode(tree, theirs.SerializeToString()).array
    assert decoded.type.field("children").type == pa.list_(pa.field("element", pa.binary()))
    (value,) = decoded.to_pylist()
    assert value["left"] == theirs.left.SerializeToString()
    assert decode(tree, value["children"][0]).array.to_pylist()[0]["name"] == "b"
    assert Encoder(tree, decoded.type).encode(decoded, b"").array.to_pylist() == [theirs.SerializeToString()]


def test_times_and_boxed_values_are_simple_columns(order: File) -> None:
    theirs = GOOGLE(a_uint64=2**64 - 1)
    theirs.at.FromDatetime(datetime.datetime(1969, 12, 31, 23, 59, 59, 999999))
    theirs.took.FromMicroseconds(-1_500_000)
    theirs.boxed.value = 0
    decoded = decode(message_named(order, "shop.Order"), theirs.SerializeToString()).array
    (value,) = decoded.to_pylist()
    assert value["at"] == EPOCH - datetime.timedelta(microseconds=1)
    assert value["took"] == datetime.timedelta(seconds=-1.5)
    assert (value["boxed"], value["boxed_text"]) == (0, None)
    assert value["a_uint64"] == Decimal(2**64 - 1)


def test_columns_choose_the_fields(order: File) -> None:
    message = message_named(order, "shop.Order")
    data = GOOGLE(a_int32=5, a_string="x").SerializeToString()
    decoder = Decoder(message, ["a_string", "a_int32"])
    array = decoder.decode(pa.array([data]), np.zeros(1, np.int64), np.zeros(1, np.int32)).array
    assert array.to_pylist() == [{"a_string": "x", "a_int32": 5}]
    assert list(array.to_pylist()[0]) == ["a_string", "a_int32"]
    with pytest.raises(InvalidSchema, match=r"'shop.Order' has no field 'a_strin' .did you mean 'a_string'"):
        Decoder(message, ["a_strin"])


HEAD = 'syntax = "proto3"; '


def test_what_protoc_accepts_anywhere() -> None:
    text = (
        'edition = "2023"; /* " */ message/*a*/A{ // }\n'
        "reserved old, older; reserved 5 to 0x10; # not C\n"
        'string /**/ s = /* 9 */ 0x2 /**/ [default = "// \\" /* 0x10 reserved a; */"]; }'
    )
    (message,) = parse(text).messages
    assert [(each.name, each.number) for each in message.fields] == [("s", 2)]


@pytest.mark.sampled
@pytest.mark.parametrize("piece", ["/*", '"', "'\\", "reserved a,", "0x"])
def test_hostile_text_is_read_in_linear_time(piece: str) -> None:
    """Quadratic time would be hours."""
    assert simplify("message A { " + piece * (4_000_000 // len(piece)))


def test_hexadecimal_and_octal_numbers_have_the_values_of_protoc() -> None:
    text = (
        "message A { optional int32 x = 0x1F; optional int32 y = 0100; map<int32, int32> m = 0X2;"
        "optional group G = 03 { optional int32 a = 0x1FFFFFFF; } oneof o { int32 z = 04; }"
        "optional fixed64 f = 12 [default = 0xFFFFFFFFFFFFFFFF]; enum E { ZERO = 00; MINUS = -0x10; OCTAL = 017; } }"
    )
    found = parse(text)
    (message,) = found.messages
    assert {each.name: each.number for each in message.fields} == {"x": 31, "y": 64, "m": 2, "g": 3, "z": 4, "f": 12}
    assert [each.number for each in message_named(found, "A.G").fields] == [(1 << 29) - 1]
    kind = found.types["A.E"]
    assert isinstance(kind, Enum)
    assert kind.numbers == {"ZERO": 0, "MINUS": -16, "OCTAL": 15}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('syntax = "proto3"; message A { int32 ', "line 1, column"),
        ("not; proto", "line 1, column 1"),
        (HEAD + 'import "x.proto";', "import 'x.proto': no reference has this name"),
        (HEAD + "message A { B b = 1; }", "A.b: unknown type 'B'"),
        (HEAD + "message A { } message A { }", "'A' is defined twice"),
        (HEAD + "message A { int32 x = 1; int32 y = 1; }", "A: two fields have the number 1"),
        (HEAD + "message A { int32 x = 1; int32 x = 2; }", "A: two fields have the name x"),
        (HEAD + "message A { int32 x = 0; }", "A.x: field number 0 is not valid"),
        (HEAD + "message A { int32 x = 0x20000000; }", "A.x: field number 536870912 is not valid"),
        (HEAD + "message A { int32 x = 09; }", "line 1, column 43"),
        (HEAD + "message A { map<double, int32> x = 1; }", "line 1, column 36"),
        (HEAD + "message A { " * 200 + "}" * 200, "nested 200 deep, the limit is 100"),
        (" " * (5 << 20), "characters, the limit is"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_faults_of_files_are_named(source: str, message: str) -> None:
    with pytest.raises(InvalidSchema, match=message):
        parse(source)


def test_a_text_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.schemas.protobuf.parsing.MAX_CPU_S", 0.5)
    slow = HEAD + "option a.b.c.d.e.f = g;" * 50_000
    before = time.thread_time()
    with pytest.raises(InvalidSchema, match=r"slow.proto: line 1: parsing takes more than 0.5 s; register the"):
        parse(HEAD + 'import "slow.proto";', {"slow.proto": slow})
    assert time.thread_time() - before < 5  # all of it would be 200


def test_imports_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.schemas.protobuf.parsing.MAX_CPU_S", 0.5)
    texts = {f"{i}.proto": HEAD + "option a.b.c.d.e.f = g;" * 40 for i in range(100)}  # 0.2 s each
    with pytest.raises(InvalidSchema, match="parsing takes more than"):
        parse(HEAD + "".join(f'import "{name}";' for name in texts), texts)


@pytest.mark.slow
def test_a_field_that_is_there_twice_among_many_is_found_at_once() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", syntax="proto3")
    message = file.message_type.add(name="M")
    for i in range(30_000):
        message.field.add(name=f"f{i}", number=i + 1, type=5, label=1)
    message.field.add(name="last", number=30_000, type=5, label=1)
    before = time.thread_time()
    with pytest.raises(InvalidSchema, match="two fields have the number 30000"):
        parse(base64.b64encode(file.SerializeToString()).decode())
    assert time.thread_time() - before < 10


def test_types_that_grow_without_end_are_refused() -> None:
    text = HEAD + "".join(f"message M{i} {{ M{i + 1} a = 1; M{i + 1} b = 2; }} " for i in range(40)) + "message M40 { }"
    with pytest.raises(InvalidSchema, match="more than 100000 fields"):
        Decoder(parse(text).messages[0])


def nested(depth: int) -> str:
    """Return a file whose message M0 has a message M1, and so on; each one in the field of the one before it."""
    fields = "".join(f"message M{i} {{ M{i + 1} a = 1; }} " for i in range(depth))
    return HEAD + fields + f"message M{depth} {{ int32 x = 1; }}"


def test_messages_are_nested_up_to_the_limit() -> None:
    Decoder(parse(nested(99)).messages[0])  # 100 messages
    with pytest.raises(InvalidSchema, match="messages nested more than 100 deep"):
        Decoder(parse(nested(100)).messages[0])


def test_declarations_are_nested_up_to_the_limit() -> None:
    def text(depth: int) -> str:
        return HEAD + "".join(f"message M{i} {{ " for i in range(depth)) + "int32 x = 1; " + "} " * depth

    def descriptor(depth: int) -> str:
        file = descriptor_pb2.FileDescriptorProto(name="a.proto")
        message = file.message_type.add(name="M0")
        for i in range(1, depth + 1):
            message = message.nested_type.add(name=f"M{i}")
        return base64.b64encode(file.SerializeToString()).decode()

    parse(text(MAX_NESTED_BRACES))
    with pytest.raises(InvalidSchema, match=f"nested {MAX_NESTED_BRACES + 1} deep, the limit is {MAX_NESTED_BRACES}"):
        parse(text(MAX_NESTED_BRACES + 1))
    parse(descriptor(MAX_DEPTH))
    with pytest.raises(InvalidSchema, match=f"nested more than {MAX_DEPTH} deep"):
        parse(descriptor(MAX_DEPTH + 1))


def test_an_unknown_feature_of_a_descriptor_is_not_set() -> None:
    """The value is then that of edition 2023: explicit presence, and length prefixes."""
    unknown = {"message_encoding": "MESSAGE_ENCODING_UNKNOWN"}
    file = edition_file(unknown, {"field_presence": "FIELD_PRESENCE_UNKNOWN"})
    message = message_named(parse(base64.b64encode(file.SerializeToString()).decode()), "M")
    (found,) = decode(message, bytes.fromhex("1a 02 08 01")).array.to_pylist()
    assert (found["number"], found["one"]) == (None, {"x": 1})


def test_fixed_numbers_may_end_the_message() -> None:
    (node,) = [build_node(parse(HEAD + "message M { int32 a = 1; }").messages[0])]
    assert read_message(node, b"\x08\x05\x15\0\0\0\0") == {"a": 5}
    assert read_message(node, b"\x08\x05\x11\0\0\0\0\0\0\0\0") == {"a": 5}
    for cut in (b"\x15\0\0\0", b"\x11\0\0\0\0\0\0\0"):
        with pytest.raises(DecodeError, match=f"{4 if cut[0] == 0x15 else 8} bytes expected"):
            read_message(node, b"\x08\x05" + cut)


@pytest.mark.parametrize("count", [63, 64, 65, 66])
def test_each_of_many_oneofs_has_one_member(count: int) -> None:
    oneofs = "".join(f"oneof o{i} {{ int32 a{i} = {2 * i + 1}; int32 b{i} = {2 * i + 2}; }} " for i in range(count))
    message = parse(HEAD + f"message M {{ {oneofs} }}").messages[0]
    whole = {f"{'ab'[i % 2]}{i}": i for i in range(count)}
    kind = pa.struct([(f"{which}{i}", pa.int32()) for i in range(count) for which in "ab"])
    array = pa.array([{name: whole.get(name) for name in (each.name for each in kind)}], kind)
    encoded = Encoder(message, kind).encode(array, b"")
    assert encoded.errors == []
    assert decode(message, *encoded.array.to_pylist()).array.to_pylist() == array.to_pylist()
    both = pa.array([{**array.to_pylist()[0], "a0": 1, "b0": 2}], kind)
    assert [error.row for error in Encoder(message, kind).encode(both, b"").errors] == [0]


def test_names_are_looked_up_from_the_innermost_scope() -> None:
    text = (
        'syntax = "proto3"; package a.b;'
        "message M { message N { int32 inner = 1; } N n = 1; .a.b.N outer = 2; b.N c = 3; }"
        "message N { int32 outer = 1; }"
    )
    kind = Decoder(parse(text).messages[0]).type
    assert [kind.field(i).type.field(0).name for i in range(3)] == ["inner", "outer", "outer"]


def test_presence_of_editions() -> None:
    text = 'edition = "2023"; message M { int32 a = 1; int32 b = 2 [features.field_presence = IMPLICIT]; }'
    assert decode(parse(text).messages[0], b"").array.to_pylist() == [{"a": None, "b": 0}]


EDITION_FEATURES = {
    "field_presence": ("EXPLICIT", "IMPLICIT"),
    "repeated_field_encoding": ("PACKED", "EXPANDED"),
    "message_encoding": ("LENGTH_PREFIXED", "DELIMITED"),
}


def edition_file(features: dict[str, str], of_field: dict[str, str]) -> descriptor_pb2.FileDescriptorProto:
    """Return a file of edition 2023 with features of the file, and of each field of one message."""
    file = descriptor_pb2.FileDescriptorProto(name="e.proto", syntax="editions", edition="EDITION_2023")
    for name, value in features.items():
        setattr(file.options.features, name, value)
    message = file.message_type.add(name="M")
    entry = message.nested_type.add(name="MapEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=5)
    entry.field.add(name="value", number=2, label=1, type=11, type_name=".N")
    file.message_type.add(name="N").field.add(name="x", number=1, label=1, type=5)
    made = [
        message.field.add(name="number", number=1, label=1, type=5),
        message.field.add(name="numbers", number=2, label=3, type=5),
        message.field.add(name="one", number=3, label=1, type=11, type_name=".N"),
        message.field.add(name="many", number=4, label=3, type=11, type_name=".N"),
    ]
    message.field.add(name="map", number=5, label=3, type=11, type_name=".M.MapEntry")
    targets = {"field_presence": made[:1], "repeated_field_encoding": made[1:2], "message_encoding": made[2:]}
    for name, value in of_field.items():
        for each in targets[name]:
            setattr(each.options.features, name, value)
    return file


def edition_text(features: dict[str, str], of_field: dict[str, str], *, as_message: bool) -> str:
    """Return the same file as text."""

    def options(*names: str) -> str:
        given = {name: of_field[name] for name in names if name in of_field}
        if as_message:
            return f" [features = {{ {' '.join(f'{n}: {v}' for n, v in given.items())} }}]" if given else ""
        return f" [{', '.join(f'features.{n} = {v}' for n, v in given.items())}]" if given else ""

    head = "".join(f"option features.{name} = {value};" for name, value in features.items())
    if as_message and features:
        head = f"option features = {{ {', '.join(f'{n}: {v}' for n, v in features.items())} }};"
    return f"""edition = "2023"; {head} message N {{ int32 x = 1; }}
        message M {{
            int32 number = 1{options("field_presence")}; repeated int32 numbers = 2{options("repeated_field_encoding")};
            N one = 3{options("message_encoding")}; repeated N many = 4{options("message_encoding")};
            map<int32, N> map = 5;
        }}"""


@pytest.mark.parametrize("form", ["text", "text with messages", "descriptor"])
@pytest.mark.parametrize("of_field", [False, True])
@pytest.mark.parametrize("choice", [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1)])
def test_features_of_a_file_and_of_fields_are_those_of_google_protobuf(
    form: str, of_field: bool, choice: tuple[int, int, int]
) -> None:
    chosen = {name: values[i] for (name, values), i in zip(EDITION_FEATURES.items(), choice, strict=True)}
    others = {name: values[1 - i] for (name, values), i in zip(EDITION_FEATURES.items(), choice, strict=True)}
    features, own = (others, chosen) if of_field else (chosen, dict[str, str]())  # a field's come before the file's
    file = edition_file(features, own)
    text = base64.b64encode(file.SerializeToString()).decode()
    if form != "descriptor":
        text = edition_text(features, own, as_message=form == "text with messages")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    theirs = message_factory.GetMessageClass(pool.FindMessageTypeByName("M"))
    value = theirs(number=0, numbers=[1, 2, 3], one={"x": 1}, many=[{"x": 2}, {}], map={7: {"x": 3}})
    ours = message_named(parse(text), "M")
    data = value.SerializeToString()
    decoded = decode(ours, data)
    assert not decoded.errors
    (found,) = decoded.array.to_pylist()
    absent = 0 if features["field_presence"] == "IMPLICIT" else None  # N.x has the file's
    assert found == {
        "number": 0,
        "numbers": [1, 2, 3],
        "one": {"x": 1},
        "many": [{"x": 2}, {"x": absent}],
        "map": [(7, {"x": 3})],
    }
    (encoded,) = Encoder(ours, decoded.array.type).encode(decoded.array, b"").array.to_pylist()
    if absent is None:  # else the 0 of N.x is one that was not there
        assert encoded == data
    assert theirs.FromString(encoded) == value


def test_imports_of_options_need_no_reference() -> None:
    text = 'edition = "2024"; import option "custom.proto"; import option \'a/b.proto\' ; message M { int32 a = 1; }'
    assert [each.name for each in parse(text).messages[0].fields] == ["a"]
    assert simplify("\"import option 'x';\"") == "\"import option 'x';\""


@pytest.mark.parametrize("seconds", [-1, 0, 1])
@pytest.mark.parametrize("nanos", [0, 1, 999, 1000, 1001, 1999, 999_999_999])
def test_durations_below_a_microsecond_round_as_google_protobuf_does(seconds: int, nanos: int) -> None:
    given = [duration_pb2.Duration(seconds=seconds, nanos=nanos if seconds > 0 else -nanos)]
    given += [duration_pb2.Duration(seconds=0, nanos=nanos), duration_pb2.Duration(seconds=0, nanos=-nanos)]
    text = HEAD + 'import "google/protobuf/duration.proto"; message M { google.protobuf.Duration d = 1; }'
    message = parse(text).messages[0]
    data = [b"\x0a" + bytes([each.ByteSize()]) + each.SerializeToString() for each in given]
    plain = read_message(build_node(message), data[0])["d"]
    found = decode(message, *data).array.field("d").cast(pa.int64()).to_pylist()
    assert found == [each.ToMicroseconds() for each in given]
    assert plain == found[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a_int32": 1, "nope": 2}, "nope: the schema has no such field"),
        ({"item": {"nope": 2}}, "item.nope: the schema has no such field"),
    ],
)
def test_a_column_without_a_field_is_an_error(order: File, value: Any, message: str) -> None:
    with pytest.raises(EncodeError, match=message):
        Encoder(message_named(order, "shop.Order"), pa.array([value]).type)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a_uint32": -1}, "a_uint32: -1 is not in the range of uint32"),
        ({"a_status": "SENT"}, "a_status: 'SENT' is not a value of enum shop.Status"),
        ({"strings": ["a", None]}, "strings: a list with null"),
        ({"number": 1, "text": "x"}, "text: oneof 'choice' has a value already, 'number'"),
    ],
)
def test_values_that_do_not_fit_are_errors_of_their_rows(order: File, value: Any, message: str) -> None:
    array = pa.array([{}, value], pa.array([value]).type)
    encoded = Encoder(message_named(order, "shop.Order"), array.type).encode(array, b"p")
    assert encoded.array.to_pylist() == [b"p", None]
    (error,) = encoded.errors
    assert (error.row, message in error.what) == (1, True), error


def test_deep_values_end(order: File) -> None:
    tag = b"\x9b\x06"  # the start of an unknown group
    decoded = decode(message_named(order, "shop.Order"), tag * 100_000, tag * 5 + b"\x9c\x06" * 5)
    assert decoded.array.to_pylist()[0] is None
    assert decoded.array.to_pylist()[1] is not None
    assert [error.what for error in decoded.errors] == ["messages nested more than 100 deep"]
