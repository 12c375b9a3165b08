"""Random definitions and changes of them: allowed ones, and forbidden ones with the violated rule.

A draft is the JSON content of a definition. A step changes a draft in place; it is chosen among those that apply to it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from kwire import schema
from kwire.schema.versions import Versions

Draft = dict[str, Any]
DrawFn = Callable[[st.SearchStrategy[Any]], Any]

PRIMITIVES = ["bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid", "string", "bytes"]
NULLABLE = ("string", "bytes")
DEFAULTS = {"bool": "true", "float64": "2.5", "uuid": "AAAAAAAAAAAAAAAAAAAAAQ", "string": "text"}


def text(draft: Draft) -> str:
    return json.dumps(draft, indent=1)


@st.composite
def drafts(draw: DrawFn) -> Draft:
    """A strategy of valid definitions whose versions are all released."""
    highest = draw(st.integers(0, 4))
    start = draw(st.integers(0, highest + 1))
    flexible = Versions(start, 32767) if start <= highest else Versions(0, -1)
    kind = draw(st.sampled_from(["request", "response", "header", "data", "metadata", "coordinator-value"]))
    draft: Draft = {
        "type": kind,
        "name": {"request": "OrderRequest", "response": "OrderResponse"}.get(kind, "Order"),
        "validVersions": f"0-{highest}",
        "flexibleVersions": str(flexible),
    }
    if kind not in ("header", "data"):
        draft["apiKey"] = 9000
    names = (f"Field{i}" for i in range(10_000))
    draft["fields"] = draw(_fields(names, Versions(0, highest), flexible, 2))
    return draft


@st.composite
def _fields(draw: DrawFn, names: Iterator[str], around: Versions, flexible: Versions, depth: int) -> list[Draft]:
    fields: list[Draft] = []
    tags = 0
    for _ in range(draw(st.integers(1, 4))):
        low = draw(st.integers(around.lowest, around.highest))
        open_ended = draw(st.booleans())
        versions = Versions(low, 32767 if open_ended else draw(st.integers(low, around.highest)))
        field: Draft = {"name": next(names), "versions": str(versions)}
        shape = draw(st.sampled_from(["primitive", "array", "struct", "structs"] if depth else ["primitive", "array"]))
        if shape in ("primitive", "array"):
            base = draw(st.sampled_from(PRIMITIVES))
            field["type"] = f"[]{base}" if shape == "array" else base
        else:
            name = f"Struct{field['name'][5:]}"
            field["type"] = f"[]{name}" if shape == "structs" else name
            field["fields"] = draw(_fields(names, versions.intersect(around), flexible, depth - 1))
        may_be_null = shape == "array" or field["type"] in NULLABLE
        tagged = versions.intersect(flexible)
        if open_ended and tagged and draw(st.booleans()):
            field |= {"tag": tags, "taggedVersions": str(tagged)}
            tags += 1
            if may_be_null and draw(st.booleans()):
                field["nullableVersions"] = str(versions)
        elif may_be_null and draw(st.booleans()):
            start = draw(st.integers(low, min(around.highest, versions.highest)))
            field["nullableVersions"] = str(Versions(start, versions.highest))
        if shape == "primitive" and field["type"] != "bytes" and draw(st.integers(0, 3)) == 0:
            field["default"] = DEFAULTS.get(field["type"], "7")
        fields.append(field)
    return fields


@dataclass(frozen=True)
class Place:
    """A field of a draft: its struct's fields, and the released versions in which the struct is on the wire."""

    siblings: list[Draft]
    index: int
    around: Versions

    @property
    def field(self) -> Draft:
        return self.siblings[self.index]

    @property
    def versions(self) -> Versions:
        return Versions.parse(self.field["versions"])

    @property
    def released(self) -> Versions:
        return self.versions.intersect(self.around)

    @property
    def tagged(self) -> Versions:
        return Versions.parse(self.field.get("taggedVersions", "none")).intersect(self.around)

    @property
    def positional(self) -> list[int]:
        return [version for version in self.released if version not in self.tagged]


def places(draft: Draft) -> list[Place]:
    """Return every field."""
    found: list[Place] = []
    waiting: list[tuple[list[Draft], Versions]] = [(draft["fields"], Versions.parse(draft["validVersions"]))]
    while waiting:
        siblings, around = waiting.pop()
        for i, field in enumerate(siblings):
            place = Place(siblings, i, around)
            found.append(place)
            if "fields" in field:
                waiting.append((field["fields"], place.released))
    return found


def highest(draft: Draft) -> int:
    return Versions.parse(draft["validVersions"]).highest


def bump(draft: Draft) -> int:
    """Add a new version that equals the previous one."""
    draft["validVersions"] = f"0-{highest(draft) + 1}"
    return highest(draft)


# Legal steps: what they need of a draft, and what they do to it


def _new_field(draft: Draft, draw: DrawFn) -> None:
    version = bump(draft)
    index = draw(st.integers(0, len(draft["fields"])))
    draft["fields"].insert(index, {"name": "New", "type": draw(st.sampled_from(PRIMITIVES)), "versions": f"{version}+"})


def _new_tagged_field(draft: Draft, draw: DrawFn) -> None:
    flexible, valid = Versions.parse(draft["flexibleVersions"]), Versions.parse(draft["validVersions"])
    if not flexible:
        return
    siblings = draft["fields"]
    tag = sum("tag" in field for field in siblings)
    start = draw(st.integers(flexible.intersect(valid).lowest, valid.highest))
    new = {"name": "New", "type": "string", "versions": f"{start}+", "tag": tag, "taggedVersions": f"{start}+"}
    siblings.insert(draw(st.integers(0, len(siblings))), new)


def _cap_a_field(draft: Draft, draw: DrawFn) -> None:
    able = [field for field in draft["fields"] if field["versions"].endswith("+") and "tag" not in field]
    if able:
        field = draw(st.sampled_from(able))
        field["versions"] = f"{field['versions'][:-1]}-{highest(draft)}"
    bump(draft)


def _rename(draft: Draft, draw: DrawFn) -> None:
    draw(st.sampled_from(places(draft))).field["name"] = "Renamed"


def _rename_a_struct(draft: Draft, draw: DrawFn) -> None:
    able = [place.field for place in places(draft) if "fields" in place.field]
    if able:
        field = draw(st.sampled_from(able))
        field["type"] = "[]Renamed" if field["type"].startswith("[]") else "Renamed"


def _make_a_struct_common(draft: Draft, draw: DrawFn) -> None:
    able = [p.field for p in places(draft) if "fields" in p.field and not any("fields" in f for f in p.field["fields"])]
    if able:
        field = draw(st.sampled_from(able))
        struct = {
            "name": field["type"].removeprefix("[]"),
            "versions": field["versions"],
            "fields": field.pop("fields"),
        }
        draft["commonStructs"] = [struct]


def _tag_a_field_in_a_new_version(draft: Draft, draw: DrawFn) -> None:
    version = bump(draft)
    if draft["flexibleVersions"] == "none":
        draft["flexibleVersions"] = f"{version}+"
    tags = sum("tag" in field for field in draft["fields"])
    for field in draft["fields"]:
        null = field.get("nullableVersions", "0+")
        if field["versions"].endswith("+") and null.endswith("+") and "tag" not in field:
            field |= {"tag": tags, "taggedVersions": f"{version}+"}
            return


def _null_in_a_new_version(draft: Draft, draw: DrawFn) -> None:
    version = bump(draft)
    for field in draft["fields"]:
        positional = field["versions"].endswith("+") and "tag" not in field
        if field["type"] in NULLABLE and positional and "nullableVersions" not in field:
            field["nullableVersions"] = f"{version}+"


def _ignore(draft: Draft, draw: DrawFn) -> None:
    draw(st.sampled_from(places(draft))).field["ignorable"] = True


LEGAL: list[Callable[[Draft, DrawFn], object]] = [
    lambda draft, draw: bump(draft),
    _new_field,
    _new_tagged_field,
    _cap_a_field,
    _rename,
    _rename_a_struct,
    _make_a_struct_common,
    _tag_a_field_in_a_new_version,
    _null_in_a_new_version,
    _ignore,
]


@st.composite
def legal_steps(draw: DrawFn) -> tuple[str, str]:
    """A strategy of (old definition, new definition) with one allowed change."""
    old = draw(drafts())
    new = copy.deepcopy(old)
    draw(st.sampled_from(LEGAL))(new, draw)
    return text(old), text(new)


# Illegal steps: each returns the rule it breaks, or None if it does not apply to the draft


def _pick(draft: Draft, draw: DrawFn, fits: Callable[[Place], object]) -> Place | None:
    able = [place for place in places(draft) if fits(place)]
    return draw(st.sampled_from(able)) if able else None


def _another_type(draft: Draft, draw: DrawFn) -> str | None:
    place = _pick(draft, draw, lambda place: place.field["type"] in ("int8", "uint16", "bool") and place.released)
    if place is None:
        return None
    place.field["type"] = "float64"
    place.field.pop("default", None)
    return "V-51" if place.positional else "V-44"


def _another_default(draft: Draft, draw: DrawFn) -> str | None:
    place = _pick(draft, draw, lambda place: place.field["type"] in ("int16", "int64"))
    if place is None:
        return None
    place.field["default"] = "99"
    return "V-50"


def _remove(draft: Draft, draw: DrawFn) -> str | None:
    place = _pick(draft, draw, lambda place: place.positional and "tag" not in place.field)
    if place is None:
        return None
    del place.siblings[place.index]
    return "V-23"


def _join(draft: Draft, draw: DrawFn) -> str | None:
    place = draw(st.sampled_from(places(draft)))
    new = {"name": "New", "type": "string", "versions": f"{place.around.highest}+"}
    place.siblings.insert(place.index, new)
    return "V-21"


def _swap(draft: Draft, draw: DrawFn) -> str | None:
    def has_bytes(place: Place) -> bool:  # a struct has none in a version without any of its fields
        return "fields" not in place.field or place.field["type"].startswith("[]")

    def overlaps_the_next(place: Place) -> bool:
        behind = [Place(place.siblings, place.index + 1, place.around)] if place.index + 1 < len(place.siblings) else []
        return has_bytes(place) and any(
            has_bytes(other) and set(place.positional) & set(other.positional) for other in behind
        )

    place = _pick(draft, draw, overlaps_the_next)
    if place is None:
        return None
    i = place.index
    place.siblings[i : i + 2] = reversed(place.siblings[i : i + 2])
    return "V-48"


def _drop_the_highest(draft: Draft, draw: DrawFn) -> str | None:
    if highest(draft) == 0 or any(p.released.lowest == highest(draft) for p in places(draft)):
        return None
    draft["validVersions"] = f"0-{highest(draft) - 1}"
    return "V-04"


def _drop_the_lowest(draft: Draft, draw: DrawFn) -> str | None:
    if highest(draft) == 0 or any(p.released.highest == 0 for p in places(draft)):
        return None
    draft["validVersions"] = f"1-{highest(draft)}"
    return "V-53"


def _another_key(draft: Draft, draw: DrawFn) -> str | None:
    if "apiKey" not in draft:
        return None
    draft["apiKey"] = 9001
    return "V-01"


def _less_flexible(draft: Draft, draw: DrawFn) -> str | None:
    if draft["flexibleVersions"] == "none" or any("tag" in place.field for place in places(draft)):
        return None
    draft["flexibleVersions"] = "none"
    return "V-03"


def _more_flexible(draft: Draft, draw: DrawFn) -> str | None:
    if draft["flexibleVersions"] == "0+":
        return None
    draft["flexibleVersions"] = "0+"
    return "V-42"


def _reuse_a_tag(draft: Draft, draw: DrawFn) -> str | None:
    place = _pick(draft, draw, lambda place: place.tagged)
    if place is None:
        return None
    kept = {key: place.field[key] for key in ("tag", "taggedVersions")}
    other = "float64" if place.field["type"] != "float64" else "uuid"
    place.siblings[place.index] = kept | {"name": "Other", "type": other, "versions": kept["taggedVersions"]}
    return "V-43"


def _flip_null(draft: Draft, draw: DrawFn) -> str | None:
    place = _pick(draft, draw, lambda place: place.field["type"] in NULLABLE and place.released)
    if place is None:
        return None
    if place.field.pop("nullableVersions", None) is None:
        place.field["nullableVersions"] = place.field["versions"]
        return "V-15" if place.positional else "V-44"
    return "V-14" if place.positional else "V-44"


def _cap_too_low(draft: Draft, draw: DrawFn) -> str | None:
    def primitive(place: Place) -> bool:
        return "fields" not in place.field and "tag" not in place.field and len(place.released) > 1

    place = _pick(draft, draw, primitive)
    if place is None:
        return None
    place.field["versions"] = str(Versions(place.released.lowest, place.released.highest - 1))
    return "V-12"


ILLEGAL: list[Callable[[Draft, DrawFn], str | None]] = [
    _another_type,
    _another_default,
    _remove,
    _join,
    _swap,
    _drop_the_highest,
    _drop_the_lowest,
    _another_key,
    _less_flexible,
    _more_flexible,
    _reuse_a_tag,
    _flip_null,
    _cap_too_low,
]


@st.composite
def illegal_steps(draw: DrawFn) -> tuple[str, str, str]:
    """A strategy of (old definition, new definition, rule) with one forbidden change."""
    old = draw(drafts())
    for step in draw(st.permutations(ILLEGAL)):
        new = copy.deepcopy(old)
        rule = step(new, draw)
        if rule is not None:
            return text(old), text(new), rule
    raise AssertionError("a field can always join")


@st.composite
def wild_steps(draw: DrawFn) -> tuple[str, str]:
    """A strategy of (old definition, new definition) with several changes of any kind."""
    old = draw(drafts())
    new = copy.deepcopy(old)
    for step in draw(st.lists(st.sampled_from([*LEGAL, *ILLEGAL]), min_size=1, max_size=3)):
        step(new, draw)
    message, errors = schema.check(text(new))
    assume(message is not None and not errors)
    return text(old), text(new)
