"""The layout of a version as inline SVG: fields as boxes in wire order, structs as boxes around boxes.

Every box has the field's name, its type and size, and a strip with one cell per byte:

    tag, size    the two numbers before a tagged field
    head         count, length or presence; the optional bytes of a varint are pale
    value        optional bytes of a varint are pale, unbounded values fade out

Differences from the previous version have a color and a sign (+ new, ~ changed, − removed). Each diagram is drawn for a
wide and for a narrow page, because a scaled one could not be read on a phone; the page shows one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kwire.pages.markup import Markup, element, join
from kwire.schema.layout import Mark, Marked, Slot, Width

__all__ = ["NARROW", "WIDE", "draw", "size_text", "width_text"]

WIDE, NARROW = 880, 344  # units of the viewBox, about pixels

GAP, PAD, INDENT = 5, 9, 10
NAME_WIDTH, SUB_WIDTH = 7.6, 6.4  # of a monospace character at 12.5 and 10.5 pixels
NAME_LINE, SUB_LINE = 15, 13
CELL, STRIP_HEIGHT = 7, 7
FADE = 6  # cells of an unbounded value
WHOLE_ROW = 0.6  # rows filled more than this are stretched to the full width
SIGNS = {Mark.SAME: "", Mark.NEW: "+ ", Mark.CHANGED: "~ ", Mark.REMOVED: "− "}


def draw(slots: Sequence[Marked], width: int, title: str) -> Markup:
    """Return the slots of one version as an SVG of that width."""
    marks: list[Markup] = []
    bottom = _flow(slots, 1, 1, width - 2, marks)
    if not slots:
        marks.append(element("text", "no bytes", x=1, y=16, class_="sub"))
        bottom = 22
    return element(
        "svg",
        element("title", title),
        *marks,
        viewBox=f"0 0 {width} {_number(bottom + 4)}",
        role="img",
        class_=f"layout {'wide-drawing' if width == WIDE else 'narrow-drawing'}",
    )


def width_text(width: Width) -> str:
    """Return a width as text: `4 bytes`, `1 byte`, `1-5 bytes`, `2+ bytes`."""
    return f"{width} {'byte' if (width.least, width.most) == (1, 1) else 'bytes'}"


def size_text(slot: Slot) -> str:
    """Return the size of a field: `4 bytes`, `2 + n bytes` of a string, `4 + n × 8 bytes` of an array of numbers."""
    head = slot.head
    if slot.field is None:
        assert head is not None
        return f"count {width_text(head.width)}"
    if slot.field.struct is not None:
        if slot.is_array:
            assert head is not None
            return f"count {width_text(head.width)}, each {width_text(slot.element)}"
        return f"1 byte, then {width_text(slot.element)} unless null" if head else width_text(slot.width)
    if slot.is_array:
        assert head is not None
        each = f"({slot.body[0].width} + m)" if len(slot.body) == 2 else str(slot.element)
        return f"{head.width} + n × {each} bytes"
    return f"{head.width} + n bytes" if head is not None else width_text(slot.width)


def _type_text(slot: Slot) -> str | None:
    if slot.field is None:
        return None
    encoding = f" as {slot.encoding}" if slot.encoding is not None else ""
    return f"{slot.field.type_text}{encoding}{' or null' if slot.nullable else ''}"


@dataclass(slots=True)
class _Box:
    """A box before its placement. cells: (CSS class, count) from left to right."""

    marked: Marked
    name: str
    subs: list[str]
    cells: list[tuple[str, int]]
    width: float
    height: float


def _box(marked: Marked, width: float) -> _Box:
    """Return the box of a field, at most `width` wide."""
    slot = marked.slot
    name = SIGNS[marked.mark] + (slot.name if slot.field is not None else "tag section")
    tag = f"tag {slot.tag}" if slot.tag is not None else None
    parts = [part for part in (tag, _type_text(slot), size_text(slot)) if part is not None]
    if slot.field is None:
        parts += ["then tag, size, value of each"] if slot.slots else ["none defined"]
    room = width - 2 * PAD
    subs = _wrapped(parts, int(room / SUB_WIDTH))
    cells = _cells(slot)
    cell_width = CELL * sum(n for _, n in cells)
    natural = max(len(name) * NAME_WIDTH, max(map(len, subs)) * SUB_WIDTH, cell_width) + 2 * PAD
    height = 6 + NAME_LINE + SUB_LINE * len(subs) + (STRIP_HEIGHT + 10 if cells else 6)
    name = _cut(name, int(room / NAME_WIDTH))
    return _Box(marked, name, subs, cells, min(natural, width), height)


def _wrapped(parts: Iterable[str], most: int) -> list[str]:
    """Wrap parts into lines of at most `most` characters."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 3 + len(part) <= most:
            lines[-1] += f" · {part}"
        else:
            lines.append(_cut(part, most))
    return lines


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(most - 1, 1)] + "…"


def _cells(slot: Slot) -> list[tuple[str, int]]:
    cells: list[tuple[str, int]] = []
    if slot.tag is not None:
        cells += [("tag", slot.tag_width.least), ("tag pale", 4)]
    if slot.head is not None:
        cells += _width_cells("head", slot.head.width)
    for piece in slot.body:
        cells += _width_cells("value" if piece.what in ("value", "content") else "head", piece.width)
    if slot.body and slot.is_array:
        cells += _fading()
    return [(kind, n) for kind, n in cells if n]


def _width_cells(kind: str, width: Width) -> list[tuple[str, int]]:
    if width.most is None or width.most > 16:
        return _fading()
    return [(kind, width.least), (f"{kind} pale", width.most - width.least)]


def _fading() -> list[tuple[str, int]]:
    return [("value fade1", FADE // 3), ("value fade2", FADE // 3), ("value fade3", FADE // 3)]


def _flow(items: Sequence[Marked], x: float, y: float, width: float, marks: list[Markup]) -> float:
    """Draw items in rows from (x, y) on; returns the bottom."""
    row: list[_Box] = []
    for marked in items:
        if marked.inner:
            y = _row(row, x, y, width, marks)
            row = []
            y = _container(marked, x, y, width, marks) + GAP
            continue
        box = _box(marked, width)
        if row and sum(b.width + GAP for b in row) + box.width > width:
            y = _row(row, x, y, width, marks)
            row = []
        row.append(box)
    return _row(row, x, y, width, marks) - GAP


def _row(row: Sequence[_Box], x: float, y: float, width: float, marks: list[Markup]) -> float:
    """Draw boxes side by side; returns where the next row starts."""
    if not row:
        return y
    natural = sum(box.width for box in row)
    room = width - GAP * (len(row) - 1)
    stretch = room / natural if natural > WHOLE_ROW * room else 1
    height = max(box.height for box in row)
    for box in row:
        marks.append(_drawn(box, x, y, box.width * stretch, height))
        x += box.width * stretch + GAP
    return y + height + GAP


def _drawn(box: _Box, x: float, y: float, width: float, height: float, class_: str = "box", *more: Markup) -> Markup:
    """Return a placed box. more: the contents of the box, already placed."""
    slot = box.marked.slot
    classes = f"{class_} {box.marked.mark.value}{' section' if slot.field is None else ''}"
    lines = [element("text", box.name, x=_number(x + PAD), y=_number(y + 6 + 11), class_="name")]
    lines += [
        element("text", sub, x=_number(x + PAD), y=_number(y + 6 + NAME_LINE + 10 + i * SUB_LINE), class_="sub")
        for i, sub in enumerate(box.subs)
    ]
    top = y + 6 + NAME_LINE + SUB_LINE * len(box.subs) + 4 + STRIP_HEIGHT / 2
    return element(
        "g",
        element("title", _tip(box.marked)),
        element("rect", x=_number(x), y=_number(y), width=_number(width), height=_number(height), rx=4),
        *lines,
        *_strip(box.cells, x + PAD, top),
        *more,
        class_=classes,
    )


def _strip(cells: Sequence[tuple[str, int]], x: float, y: float) -> Iterable[Markup]:
    """Yield a line per kind of byte; the style sheet dashes it into cells."""
    for kind, n in cells:
        yield element("path", d=f"M{_number(x)} {_number(y)}h{n * CELL - 1}", class_=f"bytes {kind}")
        x += n * CELL


def _container(marked: Marked, x: float, y: float, width: float, marks: list[Markup]) -> float:
    """Draw a box around the boxes inside; returns its bottom."""
    repeats = marked.slot.is_array
    outer = width - 3 if repeats else width
    box = _box(marked, outer)
    indent = INDENT if outer > 160 else 0  # boxes keep a width at any depth
    inner: list[Markup] = []
    bottom = _flow(marked.inner, x + indent, y + box.height + 2, outer - 2 * indent, inner) + INDENT
    if repeats:  # the edge of the next element
        edge = f"M{_number(x + 4)} {_number(bottom + 3)}h{_number(outer - 5)}q4 0 4 -4V{_number(y + 4)}"
        marks.append(element("path", d=edge, class_="next"))
    marks.append(_drawn(box, x, y, outer, bottom - y, "box around", join(*inner)))
    return bottom + (3 if repeats else 0)


def _tip(marked: Marked) -> str:
    slot = marked.slot
    name = ".".join(slot.path) or "message"
    if slot.field is None:
        return f"tag section of {name}: {slot.form}"
    tag = f", tag {slot.tag}" if slot.tag is not None else ""
    change = {Mark.NEW: " (new)", Mark.REMOVED: " (removed)"}.get(
        marked.mark, f" ({'; '.join(marked.what)})" if marked.what else ""
    )
    return f"{name}: {_type_text(slot)}{tag}, {width_text(slot.width)}, {slot.form}{change}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
