"""Names of fields in other releases, which Kafka's JSON form of those releases contains.

Two fields of different names are the same field if they have the same position in the same version, or the same tag.
Versions whose bytes differ between releases are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwire.schema.model import Field, Message, Struct
from kwire.schema.wire_forms import WireForms

FormerName = tuple[str, str, int, int]
"""Key in the JSON form, attribute of the class, lowest and highest version with that key."""

_Renamed = tuple[str, str, str, int]  # struct, key, attribute, version


def former_names(message: Message, others: Iterable[Message]) -> dict[str, tuple[FormerName, ...]]:
    """Find the former names of fields, by struct. others: the message in other releases."""
    renamed: dict[_Renamed, None] = {}
    for other in others:
        if (other.kind, other.api_key) != (message.kind, message.api_key):
            continue
        forms = WireForms()
        for version in other.valid.intersect(message.valid):
            renamed |= dict.fromkeys(_renamed(forms, other, other.struct, message, message.struct, version))
    names: dict[str, list[FormerName]] = {}
    for struct, key, attr, version in sorted(renamed):
        known = names.setdefault(struct, [])
        if known and known[-1][:2] == (key, attr) and known[-1][3] + 1 == version:
            known[-1] = (key, attr, known[-1][2], version)
        else:
            known.append((key, attr, version, version))
    return {struct: tuple(known) for struct, known in names.items()}


def _renamed(
    forms: WireForms, old: Message, was: Struct, new: Message, now: Struct, version: int
) -> Iterator[_Renamed]:
    for a, b in _same_fields(forms, old, was, new, now, version):
        if a.json_name != b.json_name:
            yield now.name, a.json_name, b.attr, version
        if a.struct is not None and b.struct is not None:
            yield from _renamed(forms, old, a.struct, new, b.struct, version)


def _same_fields(
    forms: WireForms, old: Message, was: Struct, new: Message, now: Struct, version: int
) -> Iterator[tuple[Field, Field]]:
    for a, b in forms.pair(old, was, new, now, version) or ():
        if len(a) == len(b) == 1:  # the JSON form shows plain structs, so a field is not moved into one or out of it
            yield a[0], b[0]
    by_tag = {field.tag: field for field in now.fields if field.tag is not None and version in field.tagged}
    for field in was.fields:
        same = by_tag.get(field.tag) if field.tag is not None and version in field.tagged else None
        if same is not None and same.type_text == field.type_text:
            yield field, same
