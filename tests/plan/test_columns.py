"""Columns hold what the objects of the same messages hold."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from tests import golden
from tests.plan.definitions import PRIMITIVES, Everything, Probe, compiled, field

from kwire import native, plan
from kwire.errors import DecodeError, Malformed, OptionError, Truncated, UnsupportedVersion
from kwire.messages import registry
from kwire.plan.columns import ColumnReader

Metadata: Any = registry.get("MetadataResponse")


def rows(messages: list[Any], paths: list[str]) -> list[tuple[Any, ...]]:
    """The same through objects: one row for each element of the innermost array."""
    deepest = max((path.split(".") for path in paths), key=lambda steps: sum(step.endswith("[]") for step in steps))
    arrays = [step for step in deepest if step.endswith("[]") or step in deepest]
    last = max((i for i, step in enumerate(arrays) if step.endswith("[]")), default=-1)
    line = tuple(deepest[: last + 1])

    def descend(obj: Any, done: tuple[str, ...], found: dict[tuple[str, ...], Any]) -> list[dict[tuple[str, ...], Any]]:
        found = {**found, done: obj}
        if done == line:
            return [found]
        step = line[len(done)]
        value = getattr(obj, step.removesuffix("[]")) if obj is not None else None
        if not step.endswith("[]"):
            return descend(value, (*done, step), found)
        return [x for element in value or () for x in descend(element, (*done, step), found)]

    out = []
    for message in messages:
        for found in descend(message, (), {}):
            row = []
            for path in paths:
                steps = tuple(path.split("."))
                base = max((k for k in found if steps[: len(k)] == k), key=len)
                value = found[base]
                for step in steps[len(base) :]:
                    value = None if value is None else getattr(value, step)
                row.append(value.bytes if isinstance(value, UUID) else value)
            out.append(tuple(row))
    return out


def check(cls: Any, version: int, messages: list[Any], paths: list[str]) -> pa.Table:
    """The table of the messages, compared with `rows`."""
    codec = plan.codec(cls.SPEC, version, cls, kernels=True)
    wires = [codec.encode(message) for message in messages]
    table = ColumnReader(cls.SPEC, version, paths).read_all(wires)
    assert table.column_names == paths
    table.validate(full=True)
    made = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert made == rows([codec.decode(wire) for wire in wires], paths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "LEVEL", None)
        assert ColumnReader(cls.SPEC, version, paths).read_all(wires).equals(table)
    return table


def metadata(seed: int) -> Any:
    draw = random.Random(seed)
    partition = Metadata.MetadataResponsePartition
    return Metadata(
        cluster_id=draw.choice([None, "c", ""]),
        controller_id=draw.randrange(5),
        topics=[
            Metadata.MetadataResponseTopic(
                name=f"topic-{seed}-{t}-ü",
                topic_id=UUID(int=draw.getrandbits(128)),
                is_internal=draw.random() < 0.5,
                partitions=[
                    partition(
                        partition_index=i,
                        error_code=draw.randrange(-5, 100),
                        leader_id=draw.choice([-1, 1, 2**31 - 1]),
                        replica_nodes=[draw.randrange(9) for _ in range(draw.randrange(4))],
                    )
                    for i in range(draw.randrange(4))
                ],
            )
            for t in range(draw.randrange(4))
        ],
    )


@pytest.mark.parametrize("version", [0, 1, 8, 9, 12])
def test_partitions_of_metadata_responses(version: int) -> None:
    paths = [
        "topics[].partitions[].partition_index",
        "topics[].name",
        "topics[].partitions[].replica_nodes",
        "topics[].partitions[].error_code",
        "topics[].is_internal",
        "cluster_id",
        "topics[].topic_id",
        "controller_id",
        "topics[].partitions[].leader_epoch",
    ]
    messages = []
    for seed in range(50):
        message = metadata(seed)
        for topic in message.topics:
            topic.topic_id = topic.topic_id if version >= 10 else UUID(int=0)  # ignorable; what is read is its default
        messages.append(message)
    table = check(Metadata, version, messages, paths)
    assert table.schema.field("topics[].name").type == pa.dictionary(pa.int32(), pa.string())
    assert table.num_rows == sum(len(t.partitions) for m in messages for t in m.topics)


def test_a_table_of_the_messages_themselves() -> None:
    table = check(
        Metadata, 9, [metadata(seed) for seed in range(20)], ["controller_id", "cluster_id", "throttle_time_ms"]
    )
    assert table.num_rows == 20


@pytest.mark.parametrize("version", [0, 1, 3])
def test_every_type_at_its_limits(version: int) -> None:
    limits: dict[str, list[Any]] = {
        "bool": [True, False],
        "int8": [-128, 127],
        "int16": [-(2**15), 2**15 - 1],
        "uint16": [0, 65535],
        "int32": [-(2**31), 2**31 - 1],
        "uint32": [0, 2**32 - 1],
        "int64": [-(2**63), 2**63 - 1],
        "float64": [float("inf"), -0.0],
        "uuid": [UUID(int=2**128 - 1), UUID(int=1)],
        "string": ["", "ünï\0" * 100],
        "bytes": [b"", bytes(range(256)) * 20],
    }
    messages = []
    for place in (0, 1):
        values = {f"one{kind}": values[place] for kind, values in limits.items()}
        values |= {f"many{kind}": values[: place + 1] for kind, values in limits.items()}
        if version and place:
            values |= {f"tagged{kind}": values[place] for kind, values in limits.items()}
        messages.append(Everything(**values))
    lists = [kind for kind in PRIMITIVES if kind not in ("string", "bytes", "uuid")]
    paths = [f"one{kind}" for kind in PRIMITIVES] + [f"many{kind}" for kind in lists]
    check(Everything, version, messages, paths + [f"tagged{kind}" for kind in PRIMITIVES])


Tagged: Any = compiled(
    field("Before", "int32"),
    field("Es", "[]E", fields=[
        field("Id", "int32"),
        field("T", "Ts", "1+", tag=0, taggedVersions="1+", fields=[
            field("A", "int32", "1+", default=-7),
            field("B", "string", "1+", default="dflt"),
            field("L", "[]int16", "1+")]),
        field("N", "Ns", "1+", nullableVersions="1+", fields=[
            field("A", "int64", "1+"), field("B", "string", "1+", nullableVersions="1+"), field("L", "[]int16", "1+")]),
        field("O", "Os", "1+", nullableVersions="1+", tag=1, taggedVersions="1+", default="null", fields=[
            field("A", "uuid", "1+"), field("B", "bytes", "1+"),
            field("D", "string", "1+", default="x", tag=0, taggedVersions="1+")]),
        field("P", "float64", "1+", tag=2, taggedVersions="1+", default="2.5"),
        field("S", "string", "1+", nullableVersions="1+", tag=3, taggedVersions="1+", default="null"),
        field("Inside", "[]I", "1+", tag=4, taggedVersions="1+", fields=[field("X", "int8", "1+")]),
    ]),
    field("After", "int32"),
)  # fmt: skip


def drawn(seed: int) -> Any:
    draw = random.Random(seed)

    def maybe(value: Any, other: Any) -> Any:
        return value if draw.random() < 0.5 else other

    def element(i: int) -> Any:
        return Tagged.E(
            id=i,
            t=maybe(Tagged.Ts(a=i, b=maybe("set", "dflt"), l=[1] * draw.randrange(3)), Tagged.Ts()),
            n=maybe(Tagged.Ns(a=i, b=maybe(None, "b"), l=[2, 3]), None),
            o=maybe(Tagged.Os(a=UUID(int=i), b=b"b" * i, d=maybe("y", "x")), None),
            p=maybe(1.5, 2.5),
            s=maybe("s", None),
            inside=[Tagged.I(x=k) for k in range(draw.randrange(3))],
            unknown_tagged_fields=maybe([(9, b"unknown")], []),
        )

    return Tagged(before=seed, after=-seed, es=[element(i) for i in range(draw.randrange(5))])


TAGGED_PATHS = [
    *("before", "es[].id", "es[].t.a", "es[].t.b", "es[].t.l", "es[].n.a", "es[].n.b", "es[].n.l"),
    *("es[].o.a", "es[].o.b", "es[].o.d", "es[].p", "es[].s", "after"),
]


def test_tagged_fields_and_structs_that_may_be_null() -> None:
    messages = [drawn(seed) for seed in range(200)]
    check(Tagged, 1, messages, TAGGED_PATHS)
    for path in TAGGED_PATHS:
        check(Tagged, 1, messages, [path])


def test_a_tagged_array_is_unfolded_too() -> None:
    check(Tagged, 1, [drawn(seed) for seed in range(100)], ["es[].inside[].x", "es[].id", "before", "es[].t.b"])


def test_fields_that_the_version_lacks_have_their_default() -> None:
    messages = [Tagged(before=1, es=[Tagged.E(id=5), Tagged.E(id=6)])]
    table = check(Tagged, 0, messages, ["es[].id", "es[].t.a", "es[].t.b", "es[].t.l", "es[].p", "es[].s"])
    assert table["es[].t.a"].to_pylist() == [-7, -7]


def test_paths_through_several_structs_that_may_be_null_and_to_arrays_of_strings() -> None:
    cls: Any = compiled(
        field("Out", "Outer", nullableVersions="0+", fields=[
            field("Words", "[]string"),
            field("In", "Inner", nullableVersions="0+", fields=[
                field("X", "int32", default=7),
                field("L", "[]int16"),
                field("Later", "int8", "1+", default=3),
                field("Ys", "[]Y", fields=[field("Z", "string")]),
            ]),
        ]),
    )  # fmt: skip
    inner = cls.Inner(x=1, l=[1, 2], ys=[cls.Y(z="a"), cls.Y(z="b")])
    messages = [cls(out=None), cls(out=cls.Outer(words=["u", ""], in_=None)), cls(out=cls.Outer(in_=inner))]
    paths = ["out.words", "out.in_.x", "out.in_.l", "out.in_.later"]
    table = check(cls, 0, messages, paths)
    assert table["out.in_.later"].to_pylist() == [None, None, 3]
    check(cls, 0, messages, ["out.in_.ys[].z", *paths])


def test_no_messages_and_messages_without_elements() -> None:
    reader = ColumnReader(Tagged.SPEC, 1, TAGGED_PATHS)
    assert reader.read(b"", [0]).num_rows == 0
    assert reader.read_all([]).num_rows == 0
    assert check(Tagged, 1, [Tagged(before=3)] * 5, TAGGED_PATHS).num_rows == 0


def test_bytes_between_messages_are_passed_over_and_lengths_grow() -> None:
    codec = plan.codec(Tagged.SPEC, 1, Tagged, kernels=True)
    one = codec.encode(Tagged(es=[Tagged.E(id=1)] * 5000))
    reader = ColumnReader(Tagged.SPEC, 1, ["es[].id"])
    assert reader.read(memoryview(one + one), np.array([0, len(one), 2 * len(one)])).num_rows == 10_000


@pytest.mark.parametrize(
    "paths",
    [
        ["nothing"],
        ["topics[].nothing"],
        ["topics"],
        ["topics[]"],
        ["topics.name"],
        ["controller_id[]"],
        ["controller_id.x"],
        ["topics[].partitions[].isr_nodes[]"],
        ["topics[].name", "brokers[].host"],
        [""],
    ],
)
def test_paths_that_make_no_table_are_refused(paths: list[str]) -> None:
    with pytest.raises(OptionError, match=paths[-1].split(".")[0].removesuffix("[]") or "field"):
        ColumnReader(Metadata.SPEC, 9, paths)


def test_versions_and_starts_are_checked() -> None:
    with pytest.raises(UnsupportedVersion):
        ColumnReader(Metadata.SPEC, 99, ["controller_id"])
    reader = ColumnReader(Probe.SPEC, 0, ["a"])
    for starts in ([0, 4], [-1, 3], [3, 0], [0, 2**62]):
        with pytest.raises(OptionError):
            reader.read(b"\0\0\0", starts)


def test_errors_say_which_message_and_where() -> None:
    codec = plan.codec(Tagged.SPEC, 1, Tagged, kernels=True)
    good = codec.encode(drawn(3))
    bad = codec.encode(Tagged(es=[Tagged.E(id=1)]))[:7]
    reader = ColumnReader(Tagged.SPEC, 1, TAGGED_PATHS)
    with pytest.raises(Truncated, match=rf"in message 1.* at byte {len(good) + 4}") as caught:
        reader.read_all([good, bad, good])
    assert caught.value.path == ("es",)


def test_columns_have_the_limits_of_messages() -> None:
    numbers = compiled(field("Numbers", "[]int8"), flexible="1+")
    codec = plan.codec(numbers.SPEC, 1, numbers, kernels=True)
    reader = ColumnReader(numbers.SPEC, 1, ["numbers"])
    most = codec.encode(numbers(numbers=[7] * 1_000_000, unknown_tagged_fields=[(tag, b"") for tag in range(10_000)]))
    assert reader.read_all([most]).num_rows == 1
    for more, path in (
        (numbers(numbers=[7] * 1_000_001), ("numbers",)),
        (numbers(unknown_tagged_fields=[(tag, b"") for tag in range(10_001)]), ()),
    ):
        with pytest.raises(Malformed, match="the maximum of") as caught:
            reader.read_all([codec.encode(more)])
        assert caught.value.path[-1:] == path


def test_text_that_is_no_utf_8_is_an_error() -> None:
    codec = plan.codec(Tagged.SPEC, 1, Tagged, kernels=True)
    good = codec.encode(Tagged(es=[Tagged.E(id=1, s="abc")]))
    with pytest.raises(Malformed, match=r"UTF-8.*in message 1"):
        ColumnReader(Tagged.SPEC, 1, ["es[].s"]).read_all([good, good.replace(b"abc", b"a\xffc")])


@pytest.mark.slow
def test_mutated_messages_are_read_as_the_codec_reads_them_or_refused() -> None:
    draw = random.Random(1)
    codec = plan.codec(Tagged.SPEC, 1, Tagged, kernels=True)
    reader = ColumnReader(Tagged.SPEC, 1, TAGGED_PATHS)
    for seed in range(1500):
        data = bytearray(codec.encode(drawn(seed)))
        for _ in range(draw.choice((1, 2))):
            data[draw.randrange(len(data))] = draw.choice((0, 1, 2, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        try:
            expected = rows([codec.decode(bytes(data))], TAGGED_PATHS)
        except DecodeError:
            expected = None
        if expected is None:
            with pytest.raises(DecodeError):
                reader.read_all([bytes(data)])
        else:
            table = reader.read_all([bytes(data)])
            made = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
            assert repr(made) == repr(expected)


@pytest.mark.slow
def test_golden_messages_of_every_version() -> None:
    """All fields that can be columns of their own, of every message that Kafka wrote."""
    tried = 0
    for line in golden.lines("messages-3.9.1.jsonl.gz"):
        if line["case"] != "random":
            continue
        cls = registry.get(line["message"], kafka="3.9.1")
        paths = [
            f.attr for f in cls.SPEC.struct.fields if f.struct is None and (not f.is_array or f.type in plan_lists())
        ]
        wire = golden.unpack(line["b64"])
        assert wire is not None
        if not paths:
            continue
        table = ColumnReader(cls.SPEC, line["version"], paths).read_all([wire, wire])
        expected = rows([plan.codec(cls.SPEC, line["version"], cls, kernels=True).decode(wire)] * 2, paths)
        assert repr(list(zip(*(c.to_pylist() for c in table.columns), strict=True))) == repr(expected)
        tried += 1
    assert tried > 500


def plan_lists() -> set[str]:
    """Element types of arrays that can be a column."""
    return {kind for kind in PRIMITIVES if kind not in ("string", "bytes", "uuid")}
