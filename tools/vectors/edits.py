"""Odd and invalid bodies: bytes of Kafka with one described change.

The change needs the places of fields, which `kwire decode --annotate` finds. What it means is for Kafka's classes to
say: an edit has no verdict, only a flag for what the protocol forbids although Kafka reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from kwire.messages import registry
from kwire.plan import Note, codec
from kwire.schema.model import INTEGERS, Field
from tools.vectors.releases import Layout

__all__ = ["Edit", "edits", "varint"]

WIDTHS = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q"}
TAGS = "count of tagged fields"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Bytes with one change. forbidden: what the protocol says against it, if Kafka might read it all the same."""

    case: str
    data: bytes
    reason: str
    source: str = ""
    forbidden: str = ""


def varint(value: int) -> bytes:
    """Return an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def edits(layout: Layout, data: bytes) -> Iterator[Edit]:
    """Return the edits of a body in which every field is set."""
    cls = registry.get(layout.name, kafka=layout.maker)
    annotation = codec(cls.SPEC, layout.version, cls, kernels=False).annotate(data, lenient=True)
    if annotation.error is not None or not data:
        return
    body = _Body(layout, data, annotation.notes)
    yield from body.ends()
    yield from body.lengths()
    yield from body.contents()
    if layout.is_flexible:
        yield from body.varints()
        yield from body.tags()


class _Body:
    def __init__(self, layout: Layout, data: bytes, notes: tuple[Note, ...]) -> None:
        self.layout, self.data, self.notes = layout, data, notes
        self.flexible = layout.is_flexible
        self.fields = {note: _field(layout, note) for note in notes}

    def replaced(self, start: int, end: int, by: bytes) -> bytes:
        return self.data[:start] + by + self.data[end:]

    def first(self, *types: str, nullable: bool | None = None) -> Note | None:
        """Return the first note of a type, of a field that may or may not be null; not of tagged fields."""
        for note in self.notes:
            field = self.fields[note]
            if note.type not in types or field is None or self.layout.version in field.tagged:
                continue
            if nullable is None or nullable == (self.layout.version in field.nullable):
                return note
        return None

    def ends(self) -> Iterator[Edit]:
        data = self.data
        yield Edit(
            case="cut-last", data=data[:-1], reason=f"{_place(self.notes[-1])}: the last byte is missing", source="W-40"
        )
        yield Edit(case="cut-all", data=b"", reason="no bytes at all", source="W-40")
        wide = [note for note in self.notes if note.end - note.start > 1]
        for number, note in enumerate(wide[:: max(1, len(wide) // 3)][:3]):
            reason = f"{_place(note)}: the bytes end inside it"
            yield Edit(case=f"cut-inside-{number + 1}", data=data[: note.end - 1], reason=reason, source="W-40")
        yield Edit(
            case="trailing",
            data=data + b"\0",
            reason="one more byte after the message",
            source="W-06",
            forbidden="nothing follows a body; Kafka's generated classes leave the rest to their callers",
        )

    def length(self, note: Note, value: int) -> tuple[int, bytes]:
        """Return the end of a note's length and another length. -1 is null."""
        if self.flexible and (field := self.fields[note]) is not None and field.flexible is None:
            end = note.start
            while self.data[end] & 0x80:
                end += 1
            return end + 1, varint((value + 1) % 2**32)
        width = 2 if note.type == "string" else 4
        return note.start + width, struct.pack(">h" if width == 2 else ">i", value)

    def lengths(self) -> Iterator[Edit]:
        for kind, types in (("string", ("string",)), ("bytes", ("bytes", "records")), ("array", ("count",))):
            required, optional = self.first(*types, nullable=False), self.first(*types, nullable=True)
            if required is not None:
                end, null = self.length(required, -1)
                where = _place(required)
                yield Edit(
                    case=f"null-{kind}",
                    data=self.replaced(required.start, end if kind == "array" else required.end, null),
                    reason=f"{where}: null, but the {kind} is not nullable",
                    source="W-41",
                )
                if not self.flexible:
                    end, negative = self.length(required, -2)
                    changed = self.replaced(required.start, end, negative)
                    yield Edit(case=f"negative-{kind}", data=changed, reason=f"{where}: length -2", source="W-41")
            if optional is not None and not self.flexible and kind != "array":
                end, negative = self.length(optional, -2)
                yield Edit(
                    case=f"null-{kind}-2",
                    data=self.replaced(optional.start, optional.end, negative),
                    reason=f"{_place(optional)}: length -2 for null",
                    source="W-14",
                    forbidden="null has the length -1",
                )
            note = required or optional
            if note is None:
                continue
            end, _ = self.length(note, 0)
            left = len(self.data) - end
            most = 32767 if kind == "string" else 2**31 - 2 if self.flexible else 2**31 - 1
            for case, value in (("long", left + 1), ("longest", most)):
                if value > most:
                    continue
                changed = self.replaced(note.start, *self.length(note, value))
                reason = (
                    f"{_place(note)}: {value} {'elements' if kind == 'array' else 'bytes'}, and {left} bytes are left"
                )
                yield Edit(
                    case=f"{case}-{kind}", data=changed, reason=reason, source="W-45" if kind == "array" else "W-43"
                )
            if kind == "string" and self.flexible:
                longer = self.replaced(note.start, note.end, varint(32769) + b"s" * 32768)
                if self.is_newest_text():
                    reason = f"{_place(note)}: a string of 32768 bytes"
                    yield Edit(case="string-32768", data=longer, reason=reason, source="W-42")

    def is_newest_text(self) -> bool:
        """Return whether the case with 32 KB is wanted: for a few messages is enough."""
        return self.layout.version == self.layout.spec.valid.highest and self.layout.name < "B"

    def contents(self) -> Iterator[Edit]:
        if (note := self.first("bool")) is not None:
            changed = self.replaced(note.start, note.end, b"\2")
            reason = f"{_place(note)}: 2; every byte but 0 is true"
            yield Edit(case="bool-2", data=changed, reason=reason, source="W-52; Kafka's protocol guide, BOOLEAN")
        note = self.first("string")
        if note is not None and note.value:
            end, _ = self.length(note, 0)
            for case, content in (("ff", b"\xff"), ("surrogate", b"\xed\xa0\x80"), ("overlong", b"\xc0\x80")):
                if note.end - end < len(content):
                    continue
                yield Edit(
                    case=f"utf8-{case}",
                    data=self.replaced(end, end + len(content), content),
                    reason=f"{_place(note)}: not UTF-8",
                    source="W-46; T-13",
                    forbidden="a string is UTF-8; Java reads replacement characters",
                )

    def varints(self) -> Iterator[Edit]:
        note = self.first("count", "string", "bytes")
        if note is not None and self.fields[note].flexible is None:
            end, _ = self.length(note, 0)
            number = self.data[note.start : end]
            long = number[:-1] + bytes([number[-1] | 0x80, 0])
            reason = f"{_place(note)}: the length has one byte more than it needs"
            yield Edit(
                case="long-varint",
                data=self.replaced(note.start, end, long),
                reason=reason,
                source="W-10",
                forbidden=self.inside_a_tag(note),
            )
            endless = self.replaced(note.start, end, b"\xff\xff\xff\xff\xff\x01")
            reason = f"{_place(note)}: the length is a varint of six bytes"
            yield Edit(case="varint-6", data=endless, reason=reason, source="W-10")

    def inside_a_tag(self, note: Note) -> str:
        """Return what is wrong if the length of a note changes: a tagged field around it has a size."""
        names = {field.attr for field in self.layout.spec.struct.fields if self.layout.version in field.tagged}
        if note.path[0] not in names:
            return ""
        return "the tagged field around it has the size of before, which Kafka ignores"

    def tags(self) -> Iterator[Edit]:
        sections = [note for note in self.notes if note.type == TAGS]
        if not sections or sections[-1].path:
            return
        last = sections[-1]
        number, entries = last.value, self.data[last.end :]

        def with_tags(more: int, added: bytes) -> bytes:
            return self.data[: last.start] + varint(number + more) + entries + added

        tag = varint(2000)
        yield Edit(
            case="tags-missing",
            data=with_tags(1, b""),
            reason="tag section: one tagged field is missing",
            source="W-40",
        )
        yield Edit(case="tag-cut", data=with_tags(1, tag), reason="tag 2000: its size is missing", source="W-40")
        yield Edit(
            case="tag-size",
            data=with_tags(1, tag + b"\x05\0"),
            reason="tag 2000: 5 bytes, and 1 is left",
            source="W-49",
        )
        huge = tag + varint(2**31 - 1)
        yield Edit(
            case="tag-huge",
            data=with_tags(1, huge),
            reason="tag 2000: 2147483647 bytes, and none are left",
            source="W-49",
        )
        order = "tags ascend, each at most once"
        yield Edit(
            case="tag-twice",
            data=with_tags(2, (tag + b"\1\1") * 2),
            reason="tag 2000 twice",
            source="KIP-482; W-51",
            forbidden=order,
        )
        yield Edit(
            case="tags-descend",
            data=with_tags(2, varint(2001) + b"\1\1" + tag + b"\1\1"),
            reason="tag 2001 before tag 2000",
            source="KIP-482; W-51",
            forbidden=order,
        )
        if number == 0:
            yield from self.defaults_of_tags(last)
            return
        size = next(note for note in self.notes if note.start >= last.end)
        end = size.start + 2  # known tags are below 128, and so are the sizes that are changed here
        if size.type.startswith("tag ") and 0 < self.data[size.start + 1] < 128:
            value = self.data[end : end + self.data[size.start + 1]]
            again = self.data[: last.start] + varint(number + 1) + self.data[size.start : end] + value + entries
            yield Edit(
                case="known-tag-twice",
                data=again,
                reason=f"{size.type.split(',')[0]} twice, with one value",
                source="KIP-482; W-51",
                forbidden=order,
            )
            short = self.replaced(size.start + 1, end, bytes([self.data[size.start + 1] - 1]))
            yield Edit(
                case="known-tag-size",
                data=short,
                reason=f"{size.type.split(',')[0]}: the size is one byte less than the value",
                source="W-50; T-14",
                forbidden="the size is that of the value; Kafka ignores the size of a known tag",
            )
            yield from self.defaults_of_tags(last)

    def defaults_of_tags(self, last: Note) -> Iterator[Edit]:
        """Send a known tag with its default, which writers leave out."""
        for field in sorted(self.layout.spec.struct.fields, key=lambda each: each.tag or 0):
            if (
                self.layout.version in field.tagged
                and field.tag is not None
                and (value := _default_bytes(field)) is not None
            ):
                section = b"\1" + varint(field.tag) + varint(len(value)) + value
                yield Edit(
                    case=f"default-of-{field.json_name}",
                    data=self.data[: last.start] + section,
                    reason=f"tag {field.tag} ({field.json_name}) is sent with its default",
                    source="W-21",
                )


def _default_bytes(field: Field) -> bytes | None:
    if field.is_array:
        return b"\1" if field.default == () else b"\0" if field.default is None else None
    if field.type in INTEGERS and isinstance(field.default, int):
        return struct.pack(WIDTHS[field.type], field.default)
    if field.type == "bool":
        return bytes([bool(field.default)])
    if field.type == "string":
        text = None if field.default is None else str(field.default).encode()
        return b"\0" if text is None else varint(len(text) + 1) + text
    return None


def _field(layout: Layout, note: Note) -> Field | None:
    """Return the field of a note; None for parts of the structure."""
    struct_, found = layout.spec.struct, None
    for step in note.path:
        if isinstance(step, int):
            continue
        if struct_ is None:
            return None
        found = next((field for field in struct_.fields if field.attr == step), None)
        if found is None:
            return None
        struct_ = found.struct  # type: ignore[assignment]
    return found


def _place(note: Note) -> str:
    return ".".join(map(str, note.path)) or note.type
