"""Nested columns hold what the objects of the same messages hold, and turn into the same bytes again."""

from __future__ import annotations

import base64
import itertools
import random
import subprocess
import sys
from collections import defaultdict
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from tests import golden
from tests.compiled import needs_compiled_code
from tests.plan.definitions import PRIMITIVES, Everything, Moved, MovedOld, Probe, compiled, field
from tests.waiting import HANG_S

from kwire import native, plan
from kwire.errors import DecodeError, EncodeError, Malformed, OptionError, Truncated, UnsupportedVersion
from kwire.messages import registry
from kwire.plan.nested_columns import NestedReader, message_bounds, version_type
from kwire.plan.nested_writing import NestedWriter
from kwire.schema.model import Struct

Metadata: Any = registry.get("MetadataResponse")


def plain(obj: Any, struct: Struct, version: int) -> Any:
    """An object as Arrow gives its struct back."""
    if obj is None:
        return None
    found = {}
    for f in struct.fields:
        if version not in f.versions:
            continue
        value = getattr(obj, f.attr)
        if f.struct is not None:
            inner = f.struct
            value = [plain(x, inner, version) for x in value] if f.is_array and value is not None else (
                value if f.is_array else plain(value, inner, version))  # fmt: skip
        elif f.type == "uuid":
            value = [kafka_uuid(x) for x in value] if f.is_array and value is not None else (
                value if f.is_array else kafka_uuid(value))  # fmt: skip
        elif f.is_array and value is not None:
            value = list(value)
        found[f.attr] = value
    return found


def kafka_uuid(value: UUID) -> str:
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def check(cls: Any, version: int, wires: list[bytes]) -> pa.StructArray:
    """The column of the messages, compared with their objects."""
    codec = plan.codec(cls.SPEC, version, cls, kernels=True)
    array = NestedReader(cls.SPEC, version).read(wires)
    array.validate(full=True)
    assert array.type == version_type(cls.SPEC, version)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "LEVEL", None)
        without_compiled_code = NestedReader(cls.SPEC, version).read(wires)
    assert without_compiled_code.type == array.type
    assert repr(without_compiled_code.to_pylist()) == repr(array.to_pylist())  # NaN is not equal to itself
    assert array.to_pylist() == [plain(codec.decode(wire), cls.SPEC.struct, version) for wire in wires]
    return array


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("release", ["3.9.1", "4.4.0"])
def test_every_message_of_kafka_in_every_version(release: str) -> None:
    wires: dict[tuple[str, int], list[bytes]] = defaultdict(list)
    with_unknown: set[bytes] = set()
    for line in golden.lines(f"messages-{release}.jsonl.gz"):
        wire = golden.unpack(line["b64"])
        assert wire is not None
        wires[line["message"], line["version"]].append(wire)
        if line.get("unknown_tags"):
            with_unknown.add(wire)
    for (name, version), messages in wires.items():
        cls = registry.get(name, kafka=release)
        array = check(cls, version, messages)
        written = NestedWriter(cls.SPEC, version, cls).write(array).to_pylist()
        for before, after in zip(messages, written, strict=True):
            if before in with_unknown:  # they are left out
                assert len(after) < len(before)
            else:
                assert after == before, f"{name} version {version}"
    assert len(wires) > 100


def limits(place: int) -> dict[str, Any]:
    """A value of each type at one of its ends."""
    values: dict[str, tuple[Any, Any]] = {
        "bool": (True, False),
        "int8": (-128, 127),
        "int16": (-(2**15), 2**15 - 1),
        "uint16": (0, 65535),
        "int32": (-(2**31), 2**31 - 1),
        "uint32": (0, 2**32 - 1),
        "int64": (-(2**63), 2**63 - 1),
        "float64": (float("inf"), -0.0),
        "uuid": (UUID(int=2**128 - 1), UUID(int=1)),
        "string": ("", "ünï\0€🎉" * 100),
        "bytes": (b"", bytes(range(256)) * 20),
    }
    return {kind: value[place] for kind, value in values.items()}


@pytest.mark.parametrize("version", [0, 1, 3])
def test_every_type_at_its_limits_null_and_left_out(version: int) -> None:
    messages = []
    for place, tagged in itertools.product((0, 1), (False, True)):
        values = limits(place)
        given = {f"one{kind}": value for kind, value in values.items()}
        given |= {f"many{kind}": [value] * (2 * place) for kind, value in values.items()}
        if version and tagged:
            given |= {f"tagged{kind}": value for kind, value in values.items()}
        messages.append(Everything(**given))
    if version >= 2:
        messages.append(Everything(**{f"many{kind}": None for kind in PRIMITIVES}))
    wires = [message.encode(version=version) for message in messages]
    array = check(Everything, version, wires)
    assert NestedWriter(Everything.SPEC, version, Everything).write(array).to_pylist() == wires


def test_structs_and_arrays_that_may_be_null_stay_null() -> None:
    deep: Any = compiled(
        field("Outer", "Out", nullableVersions="0+", fields=[
            field("Inner", "In", nullableVersions="0+", fields=[field("X", "int32", default=7)]),
            field("Ys", "[]Y", nullableVersions="0+", fields=[field("Z", "string", nullableVersions="0+")]),
            field("Words", "[]string", nullableVersions="0+")]),
        field("Maybe", "Out2", "1+", nullableVersions="1+", tag=0, taggedVersions="1+", default="null", fields=[
            field("N", "int16", "1+", default=3), field("Empty", "Nothing", "1+", fields=[field("Old", "int8", "0")])]),
    )  # fmt: skip
    out, inner, y = deep.Out, deep.In, deep.Y
    messages = [
        deep(outer=None),
        deep(outer=out(inner=None, ys=None, words=None)),
        deep(outer=out(inner=inner(x=1), ys=[], words=[]), maybe=deep.Out2(n=9)),
        deep(outer=out(inner=inner(), ys=[y(z=None), y(z="a")], words=["", "b"]), maybe=None),
    ]
    for version in (0, 1):
        chosen = [m for m in messages if version or m.maybe is None]
        wires = [m.encode(version=version) for m in chosen]
        array = check(deep, version, wires)
        assert NestedWriter(deep.SPEC, version, deep).write(array).to_pylist() == wires


@pytest.mark.parametrize("cls", [Probe, Moved, MovedOld])
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_tagged_fields_that_moved_between_versions(cls: Any, version: int) -> None:
    message = cls()
    if hasattr(message, "plain"):
        message.plain, message.last = -5, 6
    wires = [message.encode(version=version)]
    if cls is Moved and version:
        wires.append(Moved(first="f", inner=Moved.In(x=2, y=[3] if version > 1 else [], z="z")).encode(version=version))
    check(cls, version, wires)


def test_packed_integers_have_the_type_of_the_field() -> None:
    packed: Any = compiled(
        *(
            field(f"F{kind}{name}", kind, encoding={"0-1": name, "2+": f"fixed{kind[3:]}"})
            for kind, name in (
                ("int16", "packed16"),
                ("int16", "upacked16"),
                ("int32", "packed32"),
                ("int32", "upacked32"),
                ("int64", "packed64"),
                ("int64", "upacked64"),
            )
        )
    )
    names = [f.attr for f in packed.SPEC.struct.fields]
    messages = [packed(**dict.fromkeys(names, value)) for value in (-300, -1, 0, 1, 32767)]
    for version in (0, 1, 3):
        check(packed, version, [m.encode(version=version) for m in messages])


def metadata(seed: int) -> Any:
    draw = random.Random(seed)
    return Metadata(
        cluster_id=draw.choice([None, "c", ""]),
        topics=[
            Metadata.MetadataResponseTopic(
                name=f"topic-{seed}-{t}-ü",
                topic_id=UUID(int=draw.getrandbits(128)),
                partitions=[
                    Metadata.MetadataResponsePartition(
                        leader_id=draw.choice([-1, 2**31 - 1]), isr_nodes=[draw.randrange(9)] * draw.randrange(4)
                    )
                    for _ in range(draw.randrange(4))
                ],
            )
            for t in range(draw.randrange(4))
        ],
    )


def test_a_message_that_cannot_be_read_is_an_error_with_row_and_path_or_null() -> None:
    wires: list[bytes | None] = [metadata(seed).encode(version=12) for seed in range(40)]
    good = NestedReader(Metadata.SPEC, 12).read(wires).to_pylist()
    wires[3] = None
    broken = Metadata(topics=[Metadata.MetadataResponseTopic(name="xyz")]).encode(version=12)
    wires[7], wires[20], wires[39] = broken[:-1], b"", broken.replace(b"xyz", b"x\xffz")
    reader = NestedReader(Metadata.SPEC, 12)
    with pytest.raises(Truncated, match=r"in row 7 of MetadataResponse version 12") as caught:
        reader.read(wires)
    assert caught.value.position == len(broken) - 1
    with pytest.raises(Malformed, match=r"topics\[0\].name: invalid UTF-8 .* in row 19 of"):
        reader.read(wires[20:40:1][0:0] + [metadata(1).encode(version=12)] * 19 + [wires[39]])
    read = reader.read(wires, permissive=True)
    read.validate(full=True)
    assert read.null_count == 4
    for row, value in enumerate(read.to_pylist()):
        assert value == (None if row in (3, 7, 20, 39) else good[row])


def test_bytes_with_any_error_are_read_as_the_walker_reads_them() -> None:
    """A message is a null here exactly if the walker refuses it."""
    draw = random.Random(5)
    for cls, version, seeds in (
        (Metadata, 9, [metadata(seed).encode(version=9) for seed in range(6)]),
        (Metadata, 1, [metadata(seed).encode(version=1) for seed in range(6)]),
        (Probe, 3, [Probe(t1="x", t2=Probe.Ns(p="y"), ls=[Probe.El(k=3)], isr=[1, 2]).encode(version=3)]),
        (Moved, 2, [Moved(first="f", inner=Moved.In(x=2, y=[3], z="z")).encode(version=2)]),
    ):
        changed = []
        for _ in range(600):
            data = bytearray(draw.choice(seeds))
            for _ in range(draw.randrange(1, 4)):
                data[draw.randrange(len(data))] = draw.choice([0, 1, 2, 0x7F, 0x80, 0xFF, draw.randrange(256)])
            changed.append(
                bytes(data[: draw.randrange(len(data) // 2, len(data) + 1)] if draw.random() < 0.2 else data)
            )
        codec = plan.codec(cls.SPEC, version, cls, kernels=False)
        expected = []
        for data in changed:
            try:
                expected.append(plain(codec.decode(data), cls.SPEC.struct, version))
            except DecodeError:
                expected.append(None)
        read = NestedReader(cls.SPEC, version).read(changed, permissive=True)
        read.validate(full=True)
        assert 50 < read.null_count < 590
        assert repr(read.to_pylist()) == repr(expected)  # NaN is not equal to itself


@pytest.mark.parametrize("level", [native.LEVEL, None])
def test_unreadable_messages_leave_no_trace(level: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that fails after its tagged field was read: the next one, which lacks the field, has the default."""
    monkeypatch.setattr(native, "LEVEL", level)
    cls: Any = compiled(
        field("Es", "[]E", fields=[field("T", "int32", tag=0, taggedVersions="0+", default=5)]),
        field("Last", "int8"),
        field("Top", "string", tag=0, taggedVersions="0+", default="d"),
        flexible="0+",
    )
    short = cls(es=[cls.E(t=7), cls.E(t=8)], top="set").encode(version=0)[:-1]
    wires = [short, cls(es=[cls.E(), cls.E()]).encode(version=0), short, cls(es=[cls.E(t=1)]).encode(version=0)]
    assert NestedReader(cls.SPEC, 0).read(wires, permissive=True).to_pylist() == [
        None,
        {"es": [{"t": 5}, {"t": 5}], "last": 0, "top": "d"},
        None,
        {"es": [{"t": 1}], "last": 0, "top": "d"},
    ]


@pytest.mark.parametrize("level", [native.LEVEL, None])
def test_errors_are_the_same_without_compiled_code(level: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "LEVEL", level)
    wire = metadata(3).encode(version=9)
    with pytest.raises(Truncated) as caught:
        NestedReader(Metadata.SPEC, 9).read([wire, None, wire[:-1], b""])
    assert str(caught.value) == (
        "count of tagged fields: unsigned varint ends early, in row 2 of MetadataResponse version 9, "
        f"at byte {len(wire) - 1}"
    )


@pytest.mark.parametrize(
    "sizes",
    [
        [0] * 1000 + [3000],  # far more rows than the messages before let expect
        [3000] + [0] * 1000,
        [1000] * 3,
        [i % 7 for i in range(1000)],
        [40 * (i % 8 == 0) for i in range(1024)],  # the messages that are counted have all the rows, or none
        [40 * (i % 8 != 0) for i in range(1024)],
        [0] * 300,
    ],
)
def test_rows_are_estimated_too_high_and_too_low(sizes: list[int]) -> None:
    cls: Any = compiled(field("Xs", "[]X", fields=[field("N", "int32"), field("Ys", "[]string")]))
    wires = [cls(xs=[cls.X(n=n, ys=["ab"] * (n % 3)) for n in range(size)]).encode(version=0) for size in sizes]
    read = NestedReader(cls.SPEC, 0).read(wires)
    read.validate(full=True)
    xs = read.field("xs")
    assert np.diff(xs.offsets.to_numpy()).tolist() == sizes
    assert xs.values.field("n").to_pylist() == [n for size in sizes for n in range(size)]
    assert xs.values.field("ys").to_pylist() == [["ab"] * (n % 3) for size in sizes for n in range(size)]


@pytest.mark.requirement("T-13", "W-46")
def test_utf8_is_what_python_takes_for_it() -> None:
    text_message: Any = compiled(field("S", "string"))
    leads, followers = (0x00, 0x7F, 0x80, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF), (
        *(0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF),
    )  # fmt: skip
    texts = [
        bytes([lead, *more]) for lead in leads for n in range(4) for more in itertools.product(followers, repeat=n)
    ]
    texts += [b"12345678" * 3 + text + tail for text in texts[:2000] for tail in (b"", b"1234567", b"12345678")]
    wires = [len(text).to_bytes(2, "big") + text for text in texts]
    read = NestedReader(text_message.SPEC, 0).read(wires, permissive=True)
    read.validate(full=True)
    for text, value in zip(texts, read.to_pylist(), strict=True):
        try:
            assert value == {"s": text.decode("utf-8")}
        except UnicodeDecodeError:
            assert value is None


def test_arrays_may_be_slices_large_or_empty() -> None:
    wires = [metadata(seed).encode(version=9) for seed in range(20)]
    reader = NestedReader(Metadata.SPEC, 9)
    expected = reader.read(wires)
    for kind in (pa.binary(), pa.large_binary()):
        array = pa.array([b"", *wires, None], kind)
        assert reader.read(array.slice(1, 20)).equals(expected)
        assert reader.read(array.slice(5, 3)).equals(expected.slice(4, 3))
        assert reader.read(array.slice(21)).to_pylist() == [None]
        empty = reader.read(pa.array([], kind))
        assert (len(empty), empty.type) == (0, reader.type)
        assert reader.read(pa.array([None, None], kind)).to_pylist() == [None, None]
    writer = NestedWriter(Metadata.SPEC, 9, Metadata)
    assert writer.write(expected.slice(3, 9)).to_pylist() == wires[3:12]
    with pytest.raises(OptionError, match="messages are int64, not binary"):
        reader.read(pa.array([1]))
    data, bounds = message_bounds(pa.array(wires))
    bounds[4, 1] += 10**6
    with pytest.raises(OptionError, match="outside the data"):
        reader.read_bounds(data, bounds)


def test_frames_are_read_without_their_header() -> None:
    header, request = registry.get("RequestHeader"), registry.get("MetadataRequest")
    codec = plan.frame_codec(header.SPEC, 2, header, request.SPEC, 12, request, kernels=True)
    topic = request.MetadataRequestTopic
    bodies = [request(topics=[topic(name="a"), topic(name="b")]), request(topics=None)]
    frames = [codec.encode((header(client_id=name), body)) for name, body in zip(("me", None), bodies, strict=True)]
    array = NestedReader(request.SPEC, 12, header=(header.SPEC, 2)).read(frames)
    assert array.to_pylist() == [plain(body, request.SPEC.struct, 12) for body in bodies]
    with pytest.raises(DecodeError, match="row 0"):
        NestedReader(request.SPEC, 12, header=(header.SPEC, 2)).read([frames[0] + b"\0"])


def test_what_does_not_fit_a_version_is_an_error_with_row_and_path() -> None:
    writer = NestedWriter(Metadata.SPEC, 9, Metadata)
    topics = [{"name": "a", "partitions": [{"leader_id": 5}]}, {"name": None, "partitions": []}]
    with pytest.raises(EncodeError, match=r"topics\[1\].name: .*MetadataResponse version 9\), in row 1") as caught:
        writer.write(pa.array([{"topics": topics[:1]}, {"topics": topics}]))
    assert caught.value.path == ("topics", 1, "name")
    with pytest.raises(OptionError, match=r"MetadataResponse\.topics: unknown field nam"):
        writer.write(pa.array([{"topics": [{"nam": "a"}]}]))
    for wrong, told in (
        ({"topics": 5}, "topics: int64 is not a list"),
        ({"controller_id": {"a": 1}}, "controller_id: .* cannot hold int32"),
        ({"topics": [1]}, "topics: int64 is not a struct"),
    ):
        with pytest.raises(OptionError, match=told):
            writer.write(pa.array([wrong]))
    with pytest.raises(EncodeError, match=r"topic_id.*row 0"):
        NestedWriter(Metadata.SPEC, 12, Metadata).write(pa.array([{"topics": [{"topic_id": "short", "name": "a"}]}]))
    assert writer.write(pa.array([{"controller_id": 4}, None])).to_pylist() == [
        Metadata(controller_id=4).encode(version=9),
        None,
    ]


def test_the_type_of_all_versions_has_all_fields() -> None:
    every = version_type(Metadata.SPEC, None)
    assert set(version_type(Metadata.SPEC, 0).names) < set(version_type(Metadata.SPEC, 13).names) <= set(every.names)
    values = NestedReader(Metadata.SPEC, 9).read([metadata(3).encode(version=9)]).to_pylist()
    written = NestedWriter(Metadata.SPEC, 9, Metadata).write(pa.array(values, every))
    assert written.to_pylist() == [metadata(3).encode(version=9)]
    with pytest.raises(UnsupportedVersion, match="99"):
        NestedReader(Metadata.SPEC, 99)


@pytest.mark.slow
@needs_compiled_code
def test_nothing_outside_a_message_is_touched() -> None:
    """In a process of its own: a step over the end kills it."""
    command = [sys.executable, "-m", "tests.fuzz.guarded_columns", "600", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stdout}{done.stderr}"
