"""Pair the fields of an old and a new struct.

In versions in which both structs have the same bytes, fields are paired by position, unless the other struct has the
name at another position (swapping two fields of one type keeps the bytes and changes their meaning). The next criterion
is the name. A removed and an added field are then a renamed one if they have the same wire form in every released
version and the same place: the same tag, or the same neighbours among the positional fields. Names are not on the wire
(V-25), so this distinguishes a rename, which is allowed, from a removal and an addition, which are not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from kwire.schema.evolution.released import Released
from kwire.schema.model import ENCODABLE, Field, Message, Struct
from kwire.schema.wire_forms import FieldPath, WireForms

Pair = tuple[Field, Field]


@dataclass(frozen=True, slots=True)
class Pairs:
    """The matched fields of two structs.

    pairs: in the old order. same: the blocks in which the positional fields are the same bytes.
    moved: fields at the same position in those blocks, of which one is inside a plain struct.
    """

    pairs: list[Pair]
    removed: list[Field]
    added: list[Field]
    same: int
    moved: list[Pair]


class Pairing:
    """Matches the structs of two definitions."""

    def __init__(self, old: Message, new: Message, released: Released) -> None:
        self.old, self.new, self.released = old, new, released
        self.forms = WireForms()
        self._same: dict[tuple[Struct, Struct, int], bool] = {}

    def match(self, old: Struct, new: Struct, here: int) -> Pairs:
        """Match the fields of two structs. here: the blocks in which both are on the wire."""
        places = self.same_bytes(old, new, here)
        partner = self.renamed_in_place(places, here)
        taken = {field.name for field in partner.values()}
        by_name = {field.name: field for field in new.fields if field.name not in taken}
        partner |= {f.name: by_name[f.name] for f in old.fields if f.name in by_name and f.name not in partner}
        taken = {field.name for field in partner.values()}
        if len(taken) < len(new.fields) and len(partner) < len(old.fields):
            partner |= self.renamed(old, new, partner, here)
            taken = {field.name for field in partner.values()}
        return Pairs(
            pairs=[(field, partner[field.name]) for field in old.fields if field.name in partner],
            removed=[field for field in old.fields if field.name not in partner],
            added=[field for field in new.fields if field.name not in taken],
            same=sum(places),
            moved=[(a[-1], b[-1]) for a, b in dict.fromkeys(chain(*places.values())) if len(a) > 1 or len(b) > 1],
        )

    def same_bytes(self, old: Struct, new: Struct, here: int) -> dict[int, list[tuple[FieldPath, FieldPath]]]:
        """Pair positional fields, by block, in the blocks in which those of the two structs are the same bytes."""
        found: dict[int, list[tuple[FieldPath, FieldPath]]] = {}
        for mask, version in self.released.split(here):
            beside = self.forms.pair(self.old, old, self.new, new, version)
            if beside is None:
                continue
            names = {a[-1].name for a, _ in beside}, {b[-1].name for _, b in beside}
            # A name at another position: two swapped fields of one type are the same bytes with another meaning.
            if not any(
                a[-1].name != b[-1].name and (a[-1].name in names[1] or b[-1].name in names[0]) for a, b in beside
            ):
                found[mask] = beside
        return found

    def renamed_in_place(self, places: dict[int, list[tuple[FieldPath, FieldPath]]], here: int) -> dict[str, Field]:
        """Map old names to new fields that are at the same position in every block with either.

        Blocks in which another field would have to be renamed are removed from places.
        """
        while True:
            beside = {(a[0], b[0]) for a, b in chain(*places.values()) if len(a) == len(b) == 1}
            elsewhere = here & ~sum(places)
            renamed = {
                (a, b)
                for a, b in beside
                if not (self.released.positional(a) | self.released.positional(b)) & elsewhere
                and all((a is c) == (b is d) for c, d in beside)
            }
            other = [
                block
                for block, pairs in places.items()
                if any(
                    a[-1].name != b[-1].name and len(a) == len(b) == 1 and (a[0], b[0]) not in renamed for a, b in pairs
                )
            ]
            if not other:
                return {a.name: b for a, b in renamed if a.name != b.name}
            for block in other:
                del places[block]

    def renamed(self, old: Struct, new: Struct, partner: dict[str, Field], here: int) -> dict[str, Field]:
        """Map old names to the new fields of renamed ones."""
        places = {field.name: i for i, field in enumerate(new.fields)}
        taken = {field.name for field in partner.values()}
        positional = [f for f in old.fields if f.name in partner and self.released.positional(f) & here]
        anchors = in_order([places[partner[f.name].name] for f in positional])
        fixed = {positional[i].name for i in anchors}
        found: dict[str, Field] = {}
        lowest = 0  # a renamed field is between the last anchor and the next
        for i, field in enumerate(old.fields):
            if field.name in fixed:
                lowest = places[partner[field.name].name] + 1
                continue
            if field.name in partner or not self.released.mask(field.versions) & here:
                continue
            following = (f.name for f in old.fields[i + 1 :] if f.name in fixed)
            highest = next((places[partner[name].name] for name in following), len(new.fields))
            for candidate in new.fields:
                place = places[candidate.name]
                by_tag = field.tag is not None and not self.released.positional(field) & here
                if candidate.name in taken or not (by_tag or lowest <= place < highest):
                    continue
                if self.alike(field, candidate, here):
                    found[field.name] = candidate
                    taken.add(candidate.name)
                    if not by_tag:
                        lowest = place + 1
                    break
        return found

    def alike(self, old: Field, new: Field, here: int) -> bool:
        """Whether two fields have one wire form in every block of here, apart from names of fields and structs."""
        released = self.released
        on = released.mask(old.versions) & here
        tagged = released.tagged(old) & here
        return (
            on == released.mask(new.versions) & here
            and tagged == released.tagged(new) & here
            and (not tagged or old.tag == new.tag)
            and released.mask(old.nullable) & on == released.mask(new.nullable) & on
            and (old.flexible, released.flexible(self.old, old) & on)
            == (new.flexible, released.flexible(self.new, new) & on)
            and self.same_type(old, new, on)
        )

    def same_type(self, old: Field, new: Field, on: int) -> bool:
        """Whether two fields have the same wire form in the versions `on`, a bit mask."""
        if old.is_array != new.is_array:
            return False
        if old.struct is not None and new.struct is not None:
            return old.type == new.type or self.same_fields(old.struct, new.struct, on)
        if old.type == new.type or (old.type in ENCODABLE and new.type in ENCODABLE):
            return not self.released.encodings_differ(old, new, on)
        return {old.type, new.type} == {"bytes", "records"}  # two types with one form; V-51 reports the type

    def same_fields(self, old: Struct, new: Struct, on: int) -> bool:
        """Whether the fields of two structs are alike, one by one."""
        key = (old, new, on)
        if key not in self._same:  # nested common structs would be compared many times
            self._same[key] = self._same_fields(old, new, on)
        return self._same[key]

    def _same_fields(self, old: Struct, new: Struct, on: int) -> bool:
        mine = [field for field in old.fields if self.released.mask(field.versions) & on]
        other = [field for field in new.fields if self.released.mask(field.versions) & on]
        return len(mine) == len(other) and all(self.alike(a, b, on) for a, b in zip(mine, other, strict=True))


def in_order(places: Sequence[int]) -> list[int]:
    """Return the indexes of a longest increasing subsequence: the smallest number of other fields has moved."""
    tails: list[int] = []  # for each length, the index of the smallest last place; lasts: that place
    lasts: list[int] = []
    before: list[int] = []
    for i, place in enumerate(places):
        at = bisect_left(lasts, place)
        before.append(tails[at - 1] if at else -1)
        tails[at : at + 1], lasts[at : at + 1] = [i], [place]
    run: list[int] = []
    i = tails[-1] if tails else -1
    while i >= 0:
        run.append(i)
        i = before[i]
    return run[::-1]
