"""Plans: the rows of definitions, as people read them."""

from __future__ import annotations

import pytest
from tests.plan.definitions import FooResponse, Moved, compiled, field

from kwire import plan
from kwire.errors import UnsupportedVersion
from kwire.messages import registry
from kwire.plan import rows as r
from kwire.plan.compiler import compile_frame, compile_message
from kwire.plan.rows import disassemble


def listing(cls: object, version: int) -> list[list[str]]:
    """Operation and whatever else stands in each line, without the row numbers."""
    return [line.split()[1:] for line in disassemble(compile_message(cls.SPEC, version)).splitlines()]  # type: ignore[attr-defined]


def test_a_version_without_tags() -> None:
    assert listing(FooResponse, 8) == [
        ["STRUCT", "0", "3", "FooResponse"],
        ["ARRAY", "0", "7", "2", "foos"],
        ["STRUCT", "0", "3", "foos[]", "Foo"],
        ["FIXED", "0x3", "1", "2", "foos[].baz"],
        ["ABSENT", "0", "2", "1", "foos[].bar"],
        ["ABSENT", "0", "foos[]"],
        ["NEXT", "2", "foos[]"],
        ["ABSENT", "0", "2", "1", "user_agent"],
        ["ABSENT", "0"],
        ["END", "0"],
    ]


def test_operations_of_a_version_with_tags() -> None:
    operations = [line[0] for line in listing(FooResponse, 9)]
    assert operations == [
        *("STRUCT", "ARRAY", "STRUCT", "FIXED"),
        *("TAGS", "TAG_STEP", "ENTRY", "STRING", "TAG_END", "NEXT"),
        *("TAGS", "TAG_STEP", "ENTRY", "STRING", "TAG_END", "END"),
    ]


def test_fields_out_of_class_order_are_sought_and_put_back() -> None:
    operations = [line[0] for line in listing(Moved, 1)]
    assert operations.count("MARK") == operations.count("PERMUTE") == 2
    assert operations.count("SEEK") == operations.count("BACK") == 3
    assert "MARK" not in [line[0] for line in listing(Moved, 2)]


def test_numbers_side_by_side_are_one_row_up_to_fifteen() -> None:
    cls = compiled(*(field(f"F{i}", "int16") for i in range(31)))
    rows = [row for row in compile_message(cls.SPEC, 1).rows if row[0] == r.FIXED]
    assert [(row[2], row[3]) for row in rows] == [(15, 30), (15, 30), (1, 2)]


def test_a_frame_is_a_length_and_a_pair() -> None:
    header, body = registry.get("RequestHeader").SPEC, registry.get("MetadataRequest").SPEC
    frame = compile_frame(header, 2, body, 9)
    assert [row[0] for row in frame.rows[:3]] == [r.LENGTH, r.STRUCT, r.STRUCT]
    assert frame.rows[1][2] == 2
    with pytest.raises(UnsupportedVersion, match="RequestHeader"):
        compile_frame(header, 9, body, 9)
    with pytest.raises(UnsupportedVersion, match="MetadataRequest"):
        compile_frame(header, 2, body, 99)


@pytest.mark.requirement("E-37", "W-04")
def test_a_struct_that_the_version_lacks_makes_the_version_unsupported() -> None:
    """The definition checker refuses such a definition; a plan of one would read what nobody wrote."""
    spec = registry.get("MetadataRequest").SPEC
    with pytest.raises(UnsupportedVersion):
        compile_message(spec, spec.valid.highest + 1)


def test_every_message_and_version_has_a_plan_that_the_kernels_can_run() -> None:
    count = depth = 0
    for name in registry.names():
        spec = registry.get(name).SPEC
        for version in spec.valid:
            made = compile_message(spec, version)
            depth = max(depth, made.depth)
            assert made.rows[-1][0] == r.END
            assert all(0 <= x < len(made.rows) for row in made.rows if row[0] == r.NEXT for x in row[1:2])
            count += 1
    assert count > 850
    assert depth == 10


def test_defaults_of_the_classes_are_those_of_the_definitions() -> None:
    """Decoders leave trailing values out and count on it."""
    import msgspec

    from kwire.schema.model import default_row

    pack = msgspec.msgpack.Encoder(uuid_format="bytes").encode
    for name in registry.names():
        cls = registry.get(name)
        assert pack(cls()) == pack(default_row(cls.SPEC.struct)), name
        for struct in cls.SPEC.structs:
            assert pack(getattr(cls, struct.name)()) == pack(default_row(struct)), f"{name}.{struct.name}"


def test_the_package_offers_the_listing() -> None:
    codec = plan.codec(FooResponse.SPEC, 9, FooResponse, kernels=False)
    assert plan.disassemble(codec.plan).startswith("   0  STRUCT")
