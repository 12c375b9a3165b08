"""Bodies of every message in every version, as Kafka's classes write them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kwire.schema.model import Field, Struct
from tools.vectors import values
from tools.vectors.releases import Layout, layouts

__all__ = ["Body", "bodies"]

BODIES_A_VERSION = 22
"""Random values fill up to this number of distinct bodies, where the message has so many."""
RANDOM_TRIES = 16

LONG = (126, 127, 128)
"""Around the length at which a compact length takes two bytes: it is one more than the number of bytes."""
VERY_LONG = (16382, 16383, 16384)
"""Around the length at which it takes three; for one message in LONG_EACH, because they are large."""
LONG_EACH = 6

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A value to write. tags: unknown tagged fields, with the path of the struct that gets them."""

    layout: Layout
    case: str
    value: dict[str, Any]
    tags: tuple[dict[str, Any], ...] = ()
    reason: str
    source: str = ""
    is_spare: bool = field(default=False)
    """Whether it is dropped once its version has enough bodies."""


def bodies() -> Iterator[Body]:
    """Return the bodies of all layouts, spare ones last for each."""
    newest = {(each.name, each.is_flexible): each.version for each in layouts()}
    for layout in layouts():
        yield from _bodies(layout, newest[layout.name, layout.is_flexible] == layout.version)


def _bodies(layout: Layout, is_newest: bool) -> Iterator[Body]:
    def body(case: str, style: values.Style, reason: str, **more: Any) -> Body:
        return Body(
            layout=layout,
            case=case,
            value=values.of(layout.spec, layout.version, style),
            reason=reason,
            **more,
        )

    fields = list(_fields(layout, layout.spec.struct, ()))
    leaves = [each for each, _ in fields]
    yield body("default", values.Defaults(), "every field has its default")
    yield body("full", values.Full(), "every field is set")
    yield body("nulls", values.Nulls(), "every nullable field is null", source="W-14")
    yield body("empty", values.Empty(), "empty strings, bytes and arrays, not null")
    yield body("smallest", values.Extreme(False), "smallest integers")
    yield body("largest", values.Extreme(True), "largest integers")
    if any(each.type in ("string", "bytes") for each in leaves):
        for length in LONG:
            yield body(
                f"text-{length}", values.LongText(length), f"strings and bytes of {length} bytes", source="KIP-482"
            )
    texts = [each for each in leaves if each.type in ("string", "bytes")]
    if is_newest and texts and zlib.crc32(layout.name.encode()) % LONG_EACH == 0:
        for length in VERY_LONG:
            style = values.LongText(length, texts[0])
            yield body(f"text-{length}", style, f"{texts[0].json_name} has {length} bytes", source="KIP-482")
    arrays = [(each, around) for each, around in fields if each.is_array]
    for each, around in arrays[: 2 if is_newest else 1]:
        for number in (126, 127, 128) if is_newest else (127,):
            style = values.ManyElements(each, number, frozenset(around))
            yield body(f"{each.json_name}-{number}", style, f"{each.json_name} has {number} elements", source="KIP-482")
    if layout.is_flexible:
        yield from _tagged(layout, body, fields)
    for number in range(RANDOM_TRIES):
        style = values.Random(f"{layout.name} {layout.version} {layout.since} {number}")
        yield body(f"random-{number + 1}", style, "drawn at random", is_spare=True)


def _tagged(layout: Layout, body: Any, fields: list[tuple[Field, Path]]) -> Iterator[Body]:
    for each, around in fields:
        if layout.version in each.tagged:
            style = values.OneTag(each, frozenset(map(str, around)))
            yield body(
                f"tag-{each.json_name}", style, f"of the tagged fields only {each.json_name} is set", source="W-21"
            )
    full = values.of(layout.spec, layout.version, values.Full())
    for case, tag, size, reason in (
        ("unknown-tag", 1000, 2, "an unknown tagged field in every struct"),
        ("unknown-tag-127", 127, 0, "an unknown tagged field 127 without content in every struct"),
        ("unknown-tag-128", 128, 127, "an unknown tagged field 128 of 127 bytes in every struct"),
        ("unknown-tag-16384", 16384, 128, "an unknown tagged field 16384 of 128 bytes in every struct"),
    ):
        tags = tuple({"path": list(path), "tag": tag, "hex": "ab" * size} for path in _structs(full, ()))
        yield body(case, values.Full(), reason, tags=tags, source="KIP-482; W-26")
    twice = ({"path": [], "tag": 1001, "hex": "01"}, {"path": [], "tag": 1002, "hex": ""})
    yield body(
        "unknown-tags", values.Defaults(), "two unknown tagged fields after the defaults", tags=twice, source="W-26"
    )


def _structs(value: Any, path: Path) -> Iterator[Path]:
    """Return the paths of all structs of a value."""
    if isinstance(value, dict):
        yield path
        for key, each in value.items():
            yield from _structs(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _structs(each, (*path, index))


def _fields(layout: Layout, struct: Struct, around: Path) -> Iterator[tuple[Field, Path]]:
    """Return the fields of the version, each with the names of those around it."""
    for each in struct.fields:
        if layout.version in each.versions:
            yield each, around
            if each.struct is not None:
                yield from _fields(layout, each.struct, (*around, each.json_name))
