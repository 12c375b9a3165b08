"""Wire layout of a version of a message, with widths in bytes, and its changes from the previous version.

    layout(message, 9)           Layout: the slots of version 9 in wire order
    layouts(message)             runs of versions with the same layout, each with it
    compare(before, after)       the later layout with each slot marked: same, new, changed or removed

A slot is a field, or the tag section after the fields of a flexible struct. Its bytes, in order:

    tag, size    tagged fields only: the number, and the bytes of all that follows
    head         the count of an array, the length of a string or bytes, the presence of a nullable struct
    body         the value itself; of an array, one element, which repeats
    slots        the fields inside a struct, or of each struct of an array; the tagged fields of a tag section

A pure function of the definition, independent of values and files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kwire.schema.model import Field, Message, Struct, blocks
from kwire.schema.versions import Versions
from kwire.schema.wire_size import FIXED_BYTES
from kwire.wire.integer_encoding import ENCODINGS

__all__ = ["Layout", "Mark", "Marked", "Piece", "Run", "Slot", "Width", "compare", "layout", "layouts"]


@dataclass(frozen=True, slots=True)
class Width:
    """A range of sizes in bytes; most is None if only the frame limits it."""

    least: int
    most: int | None

    def __add__(self, other: Width) -> Width:
        most = None if self.most is None or other.most is None else self.most + other.most
        return Width(self.least + other.least, most)

    def __str__(self) -> str:
        if self.most is None:
            return f"{self.least}+"
        return str(self.least) if self.least == self.most else f"{self.least}-{self.most}"


NOTHING = Width(0, 0)
ONE = Width(1, 1)
VARINT = Width(1, 5)
SHORT_VARINT = Width(1, 3)  # a string has at most 32767 bytes, so its length + 1 takes no more


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a slot. what: count, length, presence, content (of a string or bytes) or value."""

    what: str
    width: Width


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A field of a version, or a tag section (field is None). path: names from the message down.

    compact: its count or length is a varint. encoding: of KIP-625, or None for the fixed encoding of the type; that of
    an array is of its elements. head, body, slots: see the module.
    """

    field: Field | None
    path: tuple[str, ...]
    tag: int | None = None
    nullable: bool = False
    compact: bool = False
    encoding: str | None = None
    head: Piece | None = None
    body: tuple[Piece, ...] = ()
    slots: tuple[Slot, ...] = ()

    @property
    def name(self) -> str:
        """The field's name; empty for a tag section."""
        return self.field.name if self.field is not None else ""

    @property
    def is_array(self) -> bool:
        """Whether body and slots repeat."""
        return self.field is not None and self.field.is_array

    @property
    def tag_width(self) -> Width:
        """Bytes of a tagged field before its value: tag and size."""
        return NOTHING if self.tag is None else Width(_varint_bytes(self.tag) + 1, _varint_bytes(self.tag) + 5)

    @property
    def element(self) -> Width:
        """Bytes after the head, of one element, the struct's fields or the value."""
        return sum((piece.width for piece in self.body), sum((_in_struct(slot) for slot in self.slots), NOTHING))

    @property
    def width(self) -> Width:
        """Bytes of the value, without tag and size."""
        head = NOTHING if self.head is None else self.head.width
        if self.field is None or self.is_array:
            return Width(head.least, None)  # any number of elements or unknown tags
        whole = head + self.element
        return Width(head.least, whole.most) if self.nullable else whole

    @property
    def form(self) -> str:
        """Description of the value's encoding."""
        head = self.head
        if self.field is None:
            return "count, then tag, size and value of each that is not its default"
        if head is None:
            if self.encoding is not None and not self.encoding.startswith("fixed"):
                return _integer_form(self.encoding)
            if self.field.struct is not None:
                return "its fields"
            return "one byte" if self.width == ONE else "big-endian"
        if head.what == "presence":
            return "varint 1, or 0 for null" if self.tag is not None else "byte 1, or -1 for null"
        elements = f", then {_integer_form(self.encoding)}s" if self.encoding is not None else ""
        if self.compact:
            return f"{head.what} + 1 as unsigned varint" + (", 0 is null" if self.nullable else "") + elements
        return f"{head.what} as int{8 * head.width.least}" + (", -1 is null" if self.nullable else "") + elements


def _integer_form(encoding: str) -> str:
    """Describe an encoding of KIP-625."""
    if encoding.startswith("fixed"):
        return "big-endian number"
    return "unsigned varint" if encoding.startswith("u") else "zigzag varint"


def _in_struct(slot: Slot) -> Width:
    return slot.tag_width + slot.width


def _varint_bytes(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One version. header_version: of a request or response, else None."""

    version: int
    is_flexible: bool
    header_version: int | None
    slots: tuple[Slot, ...]

    @property
    def width(self) -> Width:
        """Bytes of the whole body."""
        return sum((_in_struct(slot) for slot in self.slots), NOTHING)


def layout(message: Message, version: int) -> Layout:
    """Return the layout of a valid version."""
    has_header = message.kind in ("request", "response")
    return Layout(
        version=version,
        is_flexible=version in message.flexible,
        header_version=message.header_version(version) if has_header else None,
        slots=tuple(_struct_slots(message, message.struct, version, ())),
    )


def _struct_slots(message: Message, struct: Struct, version: int, path: tuple[str, ...]) -> Iterator[Slot]:
    """Yield the positional fields in order, then the tag section."""
    here = [field for field in struct.fields if version in field.versions]
    for field in here:
        if version not in field.tagged:
            yield _slot(message, field, version, path)
    if version in message.flexible:
        tagged = sorted((field for field in here if version in field.tagged), key=lambda field: field.tag or 0)
        slots = tuple(_slot(message, field, version, path) for field in tagged)
        yield Slot(field=None, path=path, compact=True, head=Piece("count", VARINT), slots=slots)


def _slot(message: Message, field: Field, version: int, path: tuple[str, ...]) -> Slot:
    compact = field.is_flexible(message, version)
    nullable = version in field.nullable
    encoding = field.encoding(version)
    body: tuple[Piece, ...] = ()
    if field.struct is None:
        body = _value(field.type, compact, encoding)
    head = None
    if field.is_array:
        head = Piece("count", VARINT if compact else Width(4, 4))
    elif field.struct is not None:
        head = Piece("presence", ONE) if nullable else None
    elif len(body) == 2:
        head, body = body[0], body[1:]
    here = (*path, field.name)
    return Slot(
        field=field,
        path=here,
        tag=field.tag if version in field.tagged else None,
        nullable=nullable,
        compact=compact and head is not None and head.what != "presence",
        encoding=encoding,
        head=head,
        body=body,
        slots=() if field.struct is None else tuple(_struct_slots(message, field.struct, version, here)),
    )


def _value(type_: str, compact: bool, encoding: str | None) -> tuple[Piece, ...]:
    """Return the parts of a value of a primitive type: its length, if it has one, and the value."""
    if encoding is not None:
        return (Piece("value", Width(ENCODINGS[encoding].least_bytes, ENCODINGS[encoding].most_bytes)),)
    if type_ in FIXED_BYTES:
        return (Piece("value", Width(FIXED_BYTES[type_], FIXED_BYTES[type_])),)
    if type_ == "string":
        return Piece("length", SHORT_VARINT if compact else Width(2, 2)), Piece("content", Width(0, 32767))
    return Piece("length", VARINT if compact else Width(4, 4)), Piece("content", Width(0, None))


@dataclass(frozen=True, slots=True)
class Run:
    """Versions with the same bytes and the same header. layout: of the lowest."""

    versions: Versions
    layout: Layout


def layouts(message: Message) -> list[Run]:
    """Return the runs of versions with the same layout, lowest first."""
    runs: list[Run] = []
    for versions in blocks(message.valid, message):
        new = layout(message, versions.lowest)
        old = runs[-1].layout if runs else None
        if old is not None and (old.header_version, old.slots) == (new.header_version, new.slots):
            runs[-1] = Run(Versions(runs[-1].versions.lowest, versions.highest), runs[-1].layout)
        else:
            runs.append(Run(versions, new))
    return runs


class Mark(StrEnum):
    """Change of a slot in a version."""

    SAME = "same"
    NEW = "new"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Marked:
    """A slot compared with that of the previous version. what: the changes of its bytes, as phrases.

    inner: the slots inside; slots of a new or removed field are marked as same.
    """

    slot: Slot
    mark: Mark
    what: tuple[str, ...]
    inner: tuple[Marked, ...]

    def walk(self) -> Iterator[Marked]:
        """Yield this slot and all inside, in wire order."""
        yield self
        for marked in self.inner:
            yield from marked.walk()


def compare(before: Layout | None, after: Layout) -> tuple[Marked, ...]:
    """Mark the slots of after; removed slots of before keep their positions. before: None for the first version."""
    if before is None:
        return tuple(_unmarked(slot) for slot in after.slots)
    return _compare(before.slots, after.slots)


def _unmarked(slot: Slot, mark: Mark = Mark.SAME) -> Marked:
    return Marked(slot, mark, (), tuple(_unmarked(inner) for inner in slot.slots))


def _compare(before: Sequence[Slot], after: Sequence[Slot]) -> tuple[Marked, ...]:
    """The slots of one struct."""
    old = {slot.name: slot for slot in _with_tagged(before)}
    kept = {slot.name for slot in _with_tagged(after)}
    marked = [
        _mark_section(old, before, slot, kept) if slot.field is None else _mark(old.get(slot.name), slot)
        for slot in after
    ]
    return tuple(_with_removed(before, marked, kept))


def _with_tagged(slots: Sequence[Slot]) -> Iterator[Slot]:
    """Yield the fields of a struct, positional and tagged, and its tag section."""
    for slot in slots:
        yield slot
        if slot.field is None:
            yield from slot.slots


def _mark(old: Slot | None, new: Slot) -> Marked:
    if old is None:
        return _unmarked(new, Mark.NEW)
    what = tuple(_differences(old, new))
    return Marked(new, Mark.CHANGED if what else Mark.SAME, what, _compare(old.slots, new.slots))


def _mark_section(old: dict[str, Slot], before: Sequence[Slot], new: Slot, kept: set[str]) -> Marked:
    inner = [_mark(old.get(slot.name), slot) for slot in new.slots]
    if "" not in old:
        return Marked(new, Mark.NEW, (), tuple(inner))
    section = next(slot for slot in before if slot.field is None)
    return Marked(new, Mark.SAME, (), tuple(_with_removed(section.slots, inner, kept)))


def _with_removed(before: Sequence[Slot], marked: list[Marked], kept: set[str]) -> list[Marked]:
    """Return marked with each removed slot after the slot that it followed."""
    for at, slot in enumerate(before):
        if slot.name in kept:
            continue
        left = {previous.name for previous in before[:at]}
        place = max((i + 1 for i, m in enumerate(marked) if m.slot.name in left), default=0)
        marked.insert(place, _unmarked(slot, Mark.REMOVED))
    return marked


def _differences(old: Slot, new: Slot) -> Iterator[str]:
    if old.tag != new.tag:
        now = "positional" if new.tag is None else f"tag {new.tag}"
        yield f"{now}, was {'positional' if old.tag is None else f'tag {old.tag}'}"
    if old.nullable != new.nullable:
        yield "may be null" if new.nullable else "may not be null any more"
    if old.encoding != new.encoding:
        yield f"{'elements ' * new.is_array}{new.encoding or 'fixed'}, was {old.encoding or 'fixed'}"
    if old.compact != new.compact and new.head is not None and old.head is not None:
        widths = [f"int{8 * slot.head.width.least}" for slot in (old, new) if slot.head and not slot.compact]
        yield f"{new.head.what} as varint, was {widths[0]}" if new.compact else f"{new.head.what} as {widths[0]} again"
