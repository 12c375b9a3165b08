"""The wire layout of versions: slots, widths, runs of equal versions, changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests import golden
from tests.schema.writing import field, message, request, tagged

from kwire.messages import registry
from kwire.schema import Message, parse
from kwire.schema.layout import Layout, Mark, Marked, Slot, Width, compare, layout, layouts
from kwire.schema.versions import Versions
from kwire.schema.wire_size import smallest_message
from kwire.wire.varint import read_unsigned_varint


def slots(found: Layout) -> dict[str, Slot]:
    """Return every slot by its path; tag sections are `Path.*`."""

    def walk(inner: tuple[Slot, ...]) -> list[tuple[str, Slot]]:
        return [
            pair
            for slot in inner
            for pair in [(".".join((*slot.path, *([] if slot.field else ["*"]))), slot), *walk(slot.slots)]
        ]

    return dict(walk(found.slots))


def changes(before: Layout, after: Layout) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the changes that compare marks, by path; tag sections are `Path.*`."""

    def walk(marked: tuple[Marked, ...]) -> list[tuple[str, tuple[str, tuple[str, ...]]]]:
        return [
            pair
            for m in marked
            for pair in [
                (".".join((*m.slot.path, *([] if m.slot.field else ["*"]))), (m.mark.value, m.what)),
                *walk(m.inner),
            ]
        ]

    return {path: change for path, change in walk(compare(before, after)) if change[0] != Mark.SAME}


TYPES = [  # type, nullable, version 0 (not flexible), version 1 (flexible)
    ("bool", False, "1", "1"),
    ("int8", False, "1", "1"),
    ("uint16", False, "2", "2"),
    ("int32", False, "4", "4"),
    ("int64", False, "8", "8"),
    ("float64", False, "8", "8"),
    ("uuid", False, "16", "16"),
    ("string", False, "2-32769", "1-32770"),
    ("string", True, "2-32769", "1-32770"),
    ("bytes", False, "4+", "1+"),
    ("records", True, "4+", "1+"),
    ("[]int32", False, "4+", "1+"),
    ("[]string", True, "4+", "1+"),
]


@pytest.mark.parametrize(("type_", "nullable", "plain", "compact"), TYPES)
def test_the_width_of_a_field_depends_on_type_and_version(type_: str, nullable: bool, plain: str, compact: str) -> None:
    spec = parse(message(field(type_, nullableVersions="0+" if nullable else None)))
    assert [str(slots(layout(spec, v))["Amount"].width) for v in (0, 1)] == [plain, compact]


@pytest.mark.requirement("W-14", "W-15", "W-20")
def test_a_struct_is_a_presence_byte_its_fields_and_a_tag_section() -> None:
    inner = [field("int32", "A"), field("string", "B", "2+")]
    spec = parse(message(field("Item", "Item", fields=inner, nullableVersions="3+")))
    assert [str(layout(spec, v).width) for v in range(4)] == ["4", "6+", "7+", "2+"]
    last = slots(layout(spec, 3))
    assert list(last) == ["Item", "Item.A", "Item.B", "Item.*", "*"]
    assert (last["Item"].head, last["Item"].form) == (last["Item"].head, "byte 1, or -1 for null")
    assert last["Item"].head is not None
    assert last["Item"].head.width == Width(1, 1)


def test_a_tagged_field_starts_with_tag_and_size() -> None:
    spec = parse(message(*(tagged(n) for n in range(128)), tagged(128, type="uuid")))
    section = layout(spec, 1).slots[-1]
    assert [(slot.tag, str(slot.tag_width), str(slot.width)) for slot in section.slots[126:]] == [
        (126, "2-6", "4"),
        (127, "2-6", "4"),
        (128, "3-7", "16"),
    ]
    assert str(section.width) == "1+"  # any number of tags that nobody knows yet
    assert layout(spec, 0).slots == ()


def test_a_field_can_keep_its_non_compact_form_in_a_flexible_version() -> None:
    client_id = slots(layout(registry.get("RequestHeader").SPEC, 2))["ClientId"]
    assert (client_id.form, str(client_id.width)) == ("length as int16, -1 is null", "2-32769")


def test_the_smallest_body_of_every_version_is_its_default_object() -> None:
    for name in registry.names():
        cls = registry.get(name)
        for run in layouts(cls.SPEC):
            for version in run.versions:
                found = layout(cls.SPEC, version)
                assert found.slots == run.layout.slots
                assert found.width.least == smallest_message(cls.SPEC, version), (name, version)


def read(slots: tuple[Slot, ...], buf: bytes, pos: int) -> int:
    """Read a struct by its slots; return the position after it. Every part must be within its width."""
    for slot in slots:
        pos = read_tags(slot, buf, pos) if slot.field is None else read_slot(slot, buf, pos)
    return pos


def read_tags(section: Slot, buf: bytes, pos: int) -> int:
    known = {slot.tag: slot for slot in section.slots}
    count, pos = read_unsigned_varint(buf, pos)
    for _ in range(count):
        start = pos
        tag, pos = read_unsigned_varint(buf, pos)
        size, pos = read_unsigned_varint(buf, pos)
        if tag in known:
            assert within(pos - start, known[tag].tag_width)
            assert read_slot(known[tag], buf, pos) == pos + size
        pos += size
    return pos


def read_slot(slot: Slot, buf: bytes, pos: int) -> int:
    start, number = pos, 0
    if slot.head is not None:
        bits = 8 * slot.head.width.least
        number, pos = (
            read_unsigned_varint(buf, pos)
            if slot.compact
            else (int.from_bytes(buf[pos : pos + bits // 8], "big", signed=True), pos + bits // 8)
        )
        number -= slot.compact
        assert within(pos - start, slot.head.width)
    present = slot.nullable and slot.head is not None and slot.head.what == "presence" and number > 0
    times = max(number, 0) if slot.is_array else 1 if present or slot.head is None else 0
    if slot.body and slot.body[-1].what == "content" and not slot.is_array:
        pos += max(number, 0)
    else:
        for _ in range(times):
            pos = read(slot.slots, buf, pos) if slot.slots else read_body(slot, buf, pos)
    assert within(pos - start, slot.width)
    return pos


def read_body(slot: Slot, buf: bytes, pos: int) -> int:
    """Read an element, or a value of one width."""
    if len(slot.body) == 1:
        return pos + slot.body[0].width.least
    length, content = slot.body
    assert (length.what, content.what) == ("length", "content")
    if slot.compact:
        n, pos = read_unsigned_varint(buf, pos)
        return pos + n - 1
    least = length.width.least
    return pos + least + int.from_bytes(buf[pos : pos + least], "big")


def within(size: int, width: Width) -> bool:
    return width.least <= size and (width.most is None or size <= width.most)


@pytest.mark.requirement("W-12", "W-13")
@pytest.mark.parametrize("release", ["3.9.1", "4.4.0"])
def test_the_layout_suffices_to_read_kafkas_bytes(release: str) -> None:
    seen = 0
    for case in golden.cached(f"messages-{release}.jsonl.gz"):
        spec: Message = registry.get(case["message"], kafka=release).SPEC
        buf = golden.unpack(case["b64"])
        assert buf is not None
        assert read(layout(spec, case["version"]).slots, buf, 0) == len(buf), (case["message"], case["version"])
        seen += 1
    assert seen > 600


def test_versions_of_the_same_layout_form_one_run() -> None:
    spec = registry.get("MetadataResponse").SPEC
    assert [str(run.versions) for run in layouts(spec)] == [
        "0",
        "1",
        "2",
        "3-4",
        "5-6",
        "7",
        "8",
        "9",
        "10",
        "11",
        "12",
        "13",
    ]
    assert layouts(parse(message(validVersions="none"))) == []


def test_a_different_header_version_starts_a_new_run() -> None:
    runs = layouts(registry.get("ControlledShutdownRequest", kafka="2.8.2").SPEC)
    assert (str(runs[0].versions), runs[0].layout.header_version) == ("0", 0)
    spec = parse(request(field(), validVersions="0-9", flexibleVersions="none", headerVersions={"0-3": "1", "4+": "2"}))
    assert [str(run.versions) for run in layouts(spec)] == ["0-3", "4-9"]


def test_thousands_of_equal_versions_are_one_layout() -> None:
    spec = parse(
        message(field(), field(name="Late", versions="30000+"), validVersions="0-32766", flexibleVersions="none")
    )
    assert [str(run.versions) for run in layouts(spec)] == ["0-29999", "30000-32766"]


def test_a_change_is_reported_by_its_type() -> None:
    spec = parse(
        message(
            field("string", "Name", nullableVersions="2+"),
            field("[]int32", "Ids"),
            field("int32", "Moved", "0+", tag=0, taggedVersions="1+"),
            field("int32", "Old", "0"),
            field("int32", "Old2", "0-1"),
            field("[]Item", "Items", "0+", fields=[field("int8", "A"), field("int8", "B", "2+")]),
            field("Extra", "Extra", "2+", fields=[field("int8", "C")]),
        )
    )
    versions = [layout(spec, version) for version in range(4)]
    assert changes(versions[0], versions[1]) == {
        "Name": ("changed", ("length as varint, was int16",)),
        "Ids": ("changed", ("count as varint, was int32",)),
        "Old": ("removed", ()),
        "Items": ("changed", ("count as varint, was int32",)),
        "Items.*": ("new", ()),
        "*": ("new", ()),
        "Moved": ("changed", ("tag 0, was positional",)),
    }
    assert changes(versions[1], versions[2]) == {
        "Name": ("changed", ("may be null",)),
        "Old2": ("removed", ()),
        "Items.B": ("new", ()),
        "Extra": ("new", ()),
    }
    assert changes(versions[2], versions[3]) == {}


def test_a_tagged_field_missing_from_a_later_definition_leaves_its_section() -> None:
    old, new = (parse(message(tagged(0), *more)) for more in ([tagged(1)], []))
    assert changes(layout(old, 1), layout(new, 1)) == {"Tagged1": ("removed", ())}


def test_fields_of_a_new_tag_section_are_marked_as_new() -> None:
    spec = parse(message(tagged(0), tagged(1, versions="2+", taggedVersions="2+")))
    assert changes(layout(spec, 0), layout(spec, 1)) == {"*": ("new", ()), "Tagged0": ("new", ())}
    assert changes(layout(spec, 1), layout(spec, 2)) == {"Tagged1": ("new", ())}


def test_removed_fields_keep_their_position() -> None:
    spec = parse(message(field(name="A"), field(name="B", versions="0"), field(name="C")))
    marked = compare(layout(spec, 0), layout(spec, 1))
    assert [(m.slot.name, m.mark.value) for m in marked] == [
        ("A", "same"),
        ("B", "removed"),
        ("C", "same"),
        ("", "new"),
    ]


def test_the_first_version_marks_no_changes() -> None:
    spec = registry.get("FetchResponse").SPEC
    assert {m.mark for top in compare(None, layout(spec, 12)) for m in top.walk()} == {Mark.SAME}


def test_an_encoding_defines_the_bytes_of_its_versions() -> None:
    spec = parse(message(field("int64")))
    ranges = {"0": "fixed32", "1": "packed32", "2": "upacked64", "3+": "packed16"}
    encodings = tuple((Versions.parse(range_), name) for range_, name in ranges.items())
    amount = replace(spec.struct.fields[0], encodings=encodings)
    spec = replace(spec, struct=replace(spec.struct, fields=(amount,)))
    found = [layout(spec, version) for version in range(4)]
    assert [(str(one.slots[0].width), one.slots[0].form) for one in found] == [
        ("4", "big-endian"),
        ("1-5", "zigzag varint"),
        ("1-10", "unsigned varint"),
        ("1-3", "zigzag varint"),
    ]
    assert len(layouts(spec)) == 4
    assert changes(found[1], found[2]) == {"Amount": ("changed", ("upacked64, was packed32",))}
