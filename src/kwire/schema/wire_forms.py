"""Comparable wire forms of a definition's positional fields in one version.

Two versions are compatible if their bytes are the same, whatever their definitions call them:

    bytes, records                        one form: a length and the bytes
    a plain struct                        its fields, one after the other; in a flexible version a tag section follows
    an array of structs of one primitive  an array of that primitive, where no tag section follows each struct

Names of fields and structs are not on the wire. Tagged fields are not among the positional ones; they are
compared by their numbers.
"""

from __future__ import annotations

from collections.abc import Hashable

from kwire.schema.model import Field, Message, Struct

_MEASURED = ("string", "bytes", "records")  # types with their length in front

FieldPath = tuple[Field, ...]
"""The path of a positional field: the plain structs around it, outermost first, and the field."""


def positional(message: Message, struct: Struct, version: int, around: FieldPath = ()) -> list[FieldPath]:
    """Return the positional fields of a struct in a version, in wire order."""
    return [
        (*around, field)
        for field in struct.fields
        if version in field.versions and (field.tag is None or version not in field.tagged)
    ]


def is_plain(message: Message, field: Field, version: int) -> bool:
    """Whether a struct is only its fields: not repeated, never null, without a tag section."""
    is_struct = field.struct is not None and not field.is_array
    return is_struct and version not in field.nullable and version not in message.flexible


class WireForms:
    """Wire forms of fields within one comparison; equal forms have equal bytes."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Hashable, ...], int] = {}
        self._structs: dict[tuple[Struct, int], tuple[Hashable, ...]] = {}

    def pair(
        self, old: Message, a: Struct, new: Message, b: Struct, version: int
    ) -> list[tuple[FieldPath, FieldPath]] | None:
        """Pair the positional fields of two structs with the same bytes, expanding plain structs where necessary.

        Returns None if the bytes differ.
        """
        mine, other = positional(old, a, version)[::-1], positional(new, b, version)[::-1]
        pairs: list[tuple[FieldPath, FieldPath]] = []
        while mine or other:
            if mine and other and self.form(old, mine[-1][-1], version) == self.form(new, other[-1][-1], version):
                pairs.append((mine.pop(), other.pop()))
                continue
            if not any([_expand(old, mine, version), _expand(new, other, version)]):
                return None
        return pairs

    def form(self, message: Message, field: Field, version: int) -> Hashable:
        """Return the form of a positional field, with nullability and the width of its length."""
        return version in field.nullable, self._is_compact(message, field, version), self.value(message, field, version)

    def value(self, message: Message, field: Field, version: int) -> Hashable:
        """Return the form of a field apart from those two: it changes only with the type or the encoding."""
        if field.struct is not None:
            inner = self._number(self._struct(message, field.struct, version))
            return ("array", inner) if field.is_array else inner
        type_ = field.wire_type(version)
        type_ = "bytes" if type_ == "records" else type_
        if not field.is_array:
            return type_
        compact = field.type in _MEASURED and version in message.flexible
        return "array", self._number(((False, compact, type_),))

    def _is_compact(self, message: Message, field: Field, version: int) -> bool:
        return (field.is_array or field.type in _MEASURED) and field.is_flexible(message, version)

    def _struct(self, message: Message, struct: Struct, version: int) -> tuple[Hashable, ...]:
        key = (struct, version)
        if key not in self._structs:
            forms: list[Hashable] = []
            for (field,) in positional(message, struct, version):
                if is_plain(message, field, version):
                    assert field.struct is not None
                    forms += self._struct(message, field.struct, version)
                else:
                    forms.append(self.form(message, field, version))
            self._structs[key] = (*forms, "tag section") if version in message.flexible else tuple(forms)
        return self._structs[key]

    def _number(self, form: tuple[Hashable, ...]) -> int:
        return self._numbers.setdefault(form, len(self._numbers))


def _expand(message: Message, waiting: list[FieldPath], version: int) -> bool:
    """Replace the next field, if it is a plain struct, with the fields in it. waiting: the next one last."""
    if not waiting or not is_plain(message, waiting[-1][-1], version):
        return False
    path = waiting.pop()
    assert path[-1].struct is not None
    waiting += positional(message, path[-1].struct, version, path)[::-1]
    return True
