"""Match the fields of an old and a new struct, to distinguish a renamed field from a removed and an added one.

Names are not on the wire, so a rename is allowed (V-25), while a removal and an addition are not. `FieldMatcher.match`
has three steps. Each of them matches fields that the steps before did not.

1. By position. In blocks in which the positional fields of both structs are the same bytes, the fields at one position
   match, whatever their names. Such a block does not count if one of the names is at another position of the other
   struct: swapping two fields of one type keeps the bytes and changes their meaning.
2. By name.
3. By form. Two fields match if they have the same wire form in every block, and either the same tag or a place between
   the same two matched fields.

A set of blocks is an int with one bit per block, see `released`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from kwire.schema.evolution.released import Released
from kwire.schema.model import ENCODABLE, Field, Message, Struct
from kwire.schema.wire_forms import FieldPath, WireForms

FieldPair = tuple[Field, Field]
"""An old field and the new field that it matches."""
PathPair = tuple[FieldPath, FieldPath]
"""An old and a new positional field with the same bytes. A path of several fields leads into a plain struct."""


@dataclass(frozen=True, slots=True)
class MatchedFields:
    """The result for two structs.

    pairs: the matched fields, in the old order. removed, added: the other fields of the old and of the new struct.
    equal_blocks: the blocks in which the positional fields of both structs are the same bytes.
    moved: fields at the same position in these blocks, of which one is inside a plain struct and the other is not, or
    in another one.
    """

    pairs: list[FieldPair]
    removed: list[Field]
    added: list[Field]
    equal_blocks: int
    moved: list[FieldPair]


class FieldMatcher:
    """Matches the fields of structs of two definitions.

    In its methods, `shared` is the blocks in which both structs are on the wire, and `matches` has the new field for
    each name of an old field that is matched.
    """

    def __init__(self, old: Message, new: Message, released: Released) -> None:
        self.old, self.new, self.released = old, new, released
        self.forms = WireForms()
        self._alike_structs: dict[tuple[Struct, Struct, int], bool] = {}

    def match(self, old: Struct, new: Struct, shared: int) -> MatchedFields:
        """Match the fields of two structs."""
        positions = self.pair_positions(old, new, shared)
        matches = self.match_by_position(positions, shared)
        matches |= match_by_name(old, new, matches)
        if len(matches) < min(len(old.fields), len(new.fields)):
            matches |= self.match_by_form(old, new, matches, shared)
        matched = names_of(matches)
        return MatchedFields(
            pairs=[(field, matches[field.name]) for field in old.fields if field.name in matches],
            removed=[field for field in old.fields if field.name not in matches],
            added=[field for field in new.fields if field.name not in matched],
            equal_blocks=sum(positions),
            moved=[(a[-1], b[-1]) for a, b in dict.fromkeys(chain(*positions.values())) if len(a) > 1 or len(b) > 1],
        )

    # Step 1: by position

    def pair_positions(self, old: Struct, new: Struct, shared: int) -> dict[int, list[PathPair]]:
        """Return the pairs of positional fields, by block, of the blocks in which both structs are the same bytes."""
        positions: dict[int, list[PathPair]] = {}
        for block, version in self.released.split(shared):
            pairs = self.forms.pair(self.old, old, self.new, new, version)
            if pairs is not None and not has_moved_name(pairs):
                positions[block] = pairs
        return positions

    def match_by_position(self, positions: dict[int, list[PathPair]], shared: int) -> dict[str, Field]:
        """Match renamed fields: those that are at the same position in every block that has one of them.

        Removes blocks from positions that would need other renames: a field cannot have one new name in some blocks and
        another, or none, in the rest. Fewer blocks can rule out more renames, so this repeats until nothing changes.
        """
        while True:
            pairs = {(a[0], b[0]) for a, b in chain(*positions.values()) if is_direct(a, b)}
            other_blocks = shared & ~sum(positions)
            consistent = {
                (a, b)
                for a, b in pairs
                if not (self.released.positional(a) | self.released.positional(b)) & other_blocks
                and all((a is c) == (b is d) for c, d in pairs)
            }
            refuted = [
                block
                for block, paths in positions.items()
                if any(is_direct(a, b) and a[0].name != b[0].name and (a[0], b[0]) not in consistent for a, b in paths)
            ]
            if not refuted:
                return {a.name: b for a, b in consistent if a.name != b.name}
            for block in refuted:
                del positions[block]

    # Step 3: by form

    def match_by_form(self, old: Struct, new: Struct, matches: dict[str, Field], shared: int) -> dict[str, Field]:
        """Match the remaining fields that are alike and have one tag, or a place between the same two matched fields.

        Matched fields whose order has changed do not limit a place: `anchors` are the others.
        """
        places = {field.name: i for i, field in enumerate(new.fields)}
        taken = names_of(matches)
        positional = [f for f in old.fields if f.name in matches and self.released.positional(f) & shared]
        in_order = longest_increasing([places[matches[f.name].name] for f in positional])
        anchors = {positional[i].name: places[matches[positional[i].name].name] for i in in_order}
        renamed: dict[str, Field] = {}
        lowest = 0  # places from lowest up to highest are between the anchors before and after the field
        for i, field in enumerate(old.fields):
            if field.name in anchors:
                lowest = anchors[field.name] + 1
                continue
            if field.name in matches or not self.released.mask(field.versions) & shared:
                continue
            highest = next((anchors[f.name] for f in old.fields[i + 1 :] if f.name in anchors), len(new.fields))
            is_only_tagged = field.tag is not None and not self.released.positional(field) & shared
            for candidate in new.fields:
                place = places[candidate.name]
                if candidate.name in taken or not (is_only_tagged or lowest <= place < highest):
                    continue
                if self.are_alike(field, candidate, shared):
                    renamed[field.name] = candidate
                    taken.add(candidate.name)
                    if not is_only_tagged:
                        lowest = place + 1
                    break
        return renamed

    def are_alike(self, old: Field, new: Field, shared: int) -> bool:
        """Whether two fields have the same wire form in every block, apart from the names of fields and structs."""
        released = self.released
        present = released.mask(old.versions) & shared
        tagged = released.tagged(old) & shared
        return (
            present == released.mask(new.versions) & shared
            and tagged == released.tagged(new) & shared
            and (not tagged or old.tag == new.tag)
            and released.mask(old.nullable) & present == released.mask(new.nullable) & present
            and (old.flexible, released.flexible(self.old, old) & present)
            == (new.flexible, released.flexible(self.new, new) & present)
            and self.have_same_type(old, new, present)
        )

    def have_same_type(self, old: Field, new: Field, present: int) -> bool:
        """Whether the types of two fields have the same wire form. present: the blocks that have the fields."""
        if old.is_array != new.is_array:
            return False
        if old.struct is not None and new.struct is not None:
            return old.type == new.type or self.are_structs_alike(old.struct, new.struct, present)
        if old.type == new.type or (old.type in ENCODABLE and new.type in ENCODABLE):
            return not self.released.encodings_differ(old, new, present)
        return {old.type, new.type} == {"bytes", "records"}  # two types with one form; V-51 reports the type

    def are_structs_alike(self, old: Struct, new: Struct, shared: int) -> bool:
        """Whether two structs have the same number of fields, which are alike one by one."""
        key = (old, new, shared)
        if key not in self._alike_structs:  # nested common structs would be compared many times
            old_fields = [field for field in old.fields if self.released.mask(field.versions) & shared]
            new_fields = [field for field in new.fields if self.released.mask(field.versions) & shared]
            self._alike_structs[key] = len(old_fields) == len(new_fields) and all(
                self.are_alike(a, b, shared) for a, b in zip(old_fields, new_fields, strict=True)
            )
        return self._alike_structs[key]


def match_by_name(old: Struct, new: Struct, matches: dict[str, Field]) -> dict[str, Field]:
    """Match the remaining fields that have the same name (step 2)."""
    taken = names_of(matches)
    by_name = {field.name: field for field in new.fields if field.name not in taken}
    return {f.name: by_name[f.name] for f in old.fields if f.name in by_name and f.name not in matches}


def names_of(matches: dict[str, Field]) -> set[str]:
    """Return the new names of matched fields."""
    return {field.name for field in matches.values()}


def is_direct(old: FieldPath, new: FieldPath) -> bool:
    """Whether neither of two fields is inside a plain struct."""
    return len(old) == len(new) == 1


def has_moved_name(pairs: Sequence[PathPair]) -> bool:
    """Whether a name is in both structs, at different positions."""
    old_names, new_names = {a[-1].name for a, _ in pairs}, {b[-1].name for _, b in pairs}
    return any(a[-1].name != b[-1].name and (a[-1].name in new_names or b[-1].name in old_names) for a, b in pairs)


def longest_increasing(places: Sequence[int]) -> list[int]:
    """Return the indexes of a longest increasing subsequence: the fields that have not moved, if the fewest have."""
    # By the length of a subsequence: its last index, and the place there, of the one that ends lowest.
    last_indexes: list[int] = []
    last_places: list[int] = []
    previous: list[int] = []  # by index: the index before it in its subsequence
    for i, place in enumerate(places):
        length = bisect_left(last_places, place)
        previous.append(last_indexes[length - 1] if length else -1)
        last_indexes[length : length + 1], last_places[length : length + 1] = [i], [place]
    subsequence: list[int] = []
    i = last_indexes[-1] if last_indexes else -1
    while i >= 0:
        subsequence.append(i)
        i = previous[i]
    return subsequence[::-1]
